"""Which requests failed, and why each of them may have: only a worker that was killed may lose what it held."""

import collections
import glob
import os
import re

import record

SLACK = 0.5  # seconds: a client may notice late when its answer came


class Death:
    """A process that the soak has killed, or made hang until the watchdog did.

    From `stopped` on it accepted nothing more, and `ports` are the clients that it held then. Where it went on for a
    moment, for it was to crash by itself, is_loose is set, and it may have accepted those in `queued`, and later ones.
    The same tells of a worker that is told to leave, which closes what is idle within a second.
    """

    def __init__(self, kind, pid, what):
        self.kind = kind
        self.pid = pid
        self.what = what  # its title
        self.stopped = self.died = 0.0
        self.ports = frozenset()
        self.queued = frozenset()
        self.is_loose = False
        self.before = frozenset()  # of one that hangs by a request: what it held before it went on to that

    def explains(self, one):
        if one.ended < self.stopped:
            return False
        if one.port in self.ports and one.opened <= self.stopped:
            return True
        return self.is_loose and one.opened <= self.died and (one.port in self.queued or one.opened >= self.stopped)

    def may_hold_line_of(self, one):
        """A worker collects its lines and writes them when it returns to its loop: a kill before that takes them."""
        end = self.died if self.is_loose else self.stopped
        # It was answered at some time from sent to ended; a client may be late to notice.
        if one.sent > end + SLACK or one.ended < self.stopped - SLACK:
            return False
        # Connections of more than one request were still there.
        return one.kind in (record.FRESH, record.SLOW) or self.is_loose or \
            one.port in self.ports or one.port in self.before

    def __str__(self):
        state = "accepting a moment more, " if self.is_loose else ""
        return (f"{self.what} (pid {self.pid}) by {self.kind}: stopped at {self.stopped:.3f}, {state}gone at "
                f"{self.died:.3f}, held {sorted(self.ports | self.before)}")


def reason(one, deaths, leaves, drain):
    """Why this record may be what it is, or None."""
    for death in deaths.get(one.port, ()):
        if death.explains(one):
            return f"in flight in a process killed by {death.kind}" if one.number else \
                "connection of a killed process"
    for death in deaths[None]:
        if death.explains(one):
            return "taken by a worker in the moment of its crash"
    # RFC 9112, 9.5: either side may close an idle connection at any time, and does after timeouts.drain.
    if one.outcome == record.CLOSED_IDLE and one.ended - one.idle_since >= drain - SLACK:
        return "connection idle for longer than timeouts.drain"
    if one.outcome == record.LOST and one.sent - one.idle_since >= drain - SLACK:
        return "raced: sent as the server closed what was idle for timeouts.drain"
    if any(leave.explains(one) for leave in leaves):
        if one.outcome == record.CLOSED_IDLE:
            return "idle connection of a worker that was told to leave"
        if one.outcome == record.LOST and one.sent - one.idle_since >= SLACK:
            return "raced: sent as a worker that was told to leave closed what was idle"
    return None


def by_port(deaths):
    """None: those that explain ports that nobody knows."""
    table = collections.defaultdict(list)
    table[None] = [death for death in deaths if death.is_loose]
    for death in deaths:
        for port in death.ports:
            table[port].append(death)
    return table


def describe(one, start):
    return (f"{record.OUTCOMES[one.outcome]}: number {one.number}, {record.KINDS[one.kind]}, port {one.port}, opened "
            f"at {one.opened - start:.3f} s, sent at {one.sent - start:.3f} s, ended at {one.ended - start:.3f} s")


class Verdict:
    def __init__(self):
        self.outcomes = collections.Counter()  # (kind, outcome)
        self.reasons = collections.Counter()
        self.faults = []
        self.requests = self.answered = self.failed = self.explained = 0
        self.slowest = self.gap = self.gap_at = 0.0

    def fault(self, text):
        self.faults.append(text)


def judge_records(verdict, records, killer, drain, start, stopped):
    """The load went from start to stopped. Returns how each request ended, by its number."""
    table = by_port(killer.deaths)
    final = {}
    last = start
    for one in records:
        verdict.outcomes[one.kind, one.outcome] += 1
        if one.number and one.outcome in record.REQUEST:
            if one.number in final:
                verdict.fault(f"a bug of the soak: {one.number} ended twice: {describe(one, start)}")
            final[one.number] = one
        if one.outcome == record.ANSWERED:
            verdict.slowest = max(verdict.slowest, one.ended - one.sent)
            if one.ended - last > verdict.gap and one.ended < stopped:
                verdict.gap, verdict.gap_at = one.ended - last, last - start
            last = max(last, one.ended)
        elif one.outcome in record.BAD:
            why = reason(one, table, killer.leaves, drain)
            verdict.failed += bool(one.number)
            verdict.explained += bool(one.number and why)
            if why:
                verdict.reasons[why] += 1
            else:
                verdict.fault("unexplained: " + describe(one, start))
    verdict.requests = len(final)
    verdict.answered = sum(one.outcome == record.ANSWERED for one in final.values())
    for one in records:
        if one.outcome == record.DEFERRED and one.number not in final:
            verdict.fault(f"a bug of the soak: never sent again: {describe(one, start)}")
    return final


def count_lines(folder):
    lines = collections.Counter()
    for name in glob.glob(os.path.join(folder, "access*")):
        with open(name, "rb") as file:
            lines.update(map(int, re.findall(rb"[?]n=(\d+) HTTP/1", file.read())))
    return lines


def judge_lines(verdict, final, lines, deaths, start):
    """Each answered request has one line, unless its worker died before it had written what it had collected."""
    for number, one in final.items():
        found = lines.get(number, 0)
        if found == 1 or (found == 0 and one.outcome != record.ANSWERED):
            continue
        if found == 0 and any(death.may_hold_line_of(one) for death in deaths):
            verdict.reasons["answered, but its line died with its worker"] += 1
            continue
        verdict.fault(f"{found} lines in the access logs: {describe(one, start)}")
    for number in lines.keys() - final.keys():
        verdict.fault(f"a line in the access logs for request {number}, which was never sent")


# Lines of a process that died, of those of a generation that failed as it was to, and of one dismissed with that.
DIED = re.compile(r"\(pid (\d+)\).*?(killed by SIG|exited with status [^0])")
MEANT = re.compile(r"killed by SIGABRT .*answering GET /hello from unknown|\(the (upgrade|reload) failed\)")


def judge_deaths(verdict, folder, deaths):
    """Nobody died whom the soak has not killed, or made crash before it served."""
    ours = {death.pid for death in deaths}
    for name in glob.glob(os.path.join(folder, "log*")):
        with open(name, errors="replace") as file:
            for line in file:
                found = DIED.search(line)
                if found and int(found[1]) not in ours and not MEANT.search(line):
                    verdict.fault("died without being killed: " + line.strip())


def show(verdict):
    print(f"\n{'requests by outcome':<46}" + "".join(f"{name:>14}" for name in record.KINDS))
    for outcome, name in enumerate(record.OUTCOMES):
        counts = [verdict.outcomes[kind, outcome] for kind in range(len(record.KINDS))]
        if any(counts):
            print(f"{name:<46}" + "".join(f"{count:>14}" for count in counts))
    print(f"\n{'requests':<46}{verdict.requests:>10}")
    print(f"{'answered right':<46}{verdict.answered:>10}")
    print(f"{'failed':<46}{verdict.failed:>10}")
    print(f"{'  of these explained':<46}{verdict.explained:>10}")
    print(f"{'  unexplained':<46}{verdict.failed - verdict.explained:>10}")
    print(f"{'longest time without any answer':<46}{verdict.gap:>10.3f} s, at {verdict.gap_at:.1f} s")
    print(f"{'slowest answer':<46}{verdict.slowest:>10.3f} s")
    print("\nexplanations")
    for why, count in verdict.reasons.most_common():
        print(f"  {count:>8}  {why}")
