#!/usr/bin/env python3
"""Ten minutes of load on a hayate to which everything happens, and an account of every request.

Starts HAYATE ($HAYATE, else ./hayate) on free loopback ports, loads it, and meanwhile reloads it (well and badly),
replaces its binary (well and badly), kills its workers, makes them hang, rotates its logs and asks for its status, at
random. Only what a killed worker held may fail. See README.md.

Exit: 0 as it should be, 1 not, 2 usage.
"""

import argparse
import collections
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import hayate
import judge
import kill
import operate
import record

GROWN = 512  # kB that the master may have more than after the warm-up


def log(text):
    print(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}", flush=True)


class Watcher:
    """Asks for status and health all the while."""

    def __init__(self, server, killer):
        self.server = server
        self.killer = killer
        self.counts = collections.Counter()
        self.faults = []
        self.requests = 0

    def look(self):
        begin = time.monotonic()
        try:
            status = self.server.status()
        except (hayate.Failed, ValueError, subprocess.TimeoutExpired) as error:
            self.faults.append(f"status: {error}")
            return
        self.counts["status"] += 1
        if status["requests"] < self.requests:
            self.faults.append(f"status: requests went from {self.requests} back to {status['requests']}")
        self.requests = status["requests"]
        if status["pid"] != self.server.pid:
            self.faults.append(f"status: pid {status['pid']}, not {self.server.pid}")
        done = self.server.probe()
        self.counts["probe"] += 1
        # Its connection may be in a worker that dies, or wait while every worker is away.
        if done.returncode != 0:
            if any(death.died == 0 or death.died > begin - 10 for death in self.killer.deaths):
                self.counts["probe that a kill made fail"] += 1
            else:
                self.faults.append(f"probe: {done.returncode}: {done.stderr.strip()}")

    def run(self, is_over):
        while not is_over.wait(0.5):
            self.look()


def kill_at_random(killer, rng, has_faults):
    """One event; its name, or None when the process that was meant had gone."""
    children = killer.server.children()
    if not children:
        return None
    pid = rng.choice(children)
    choices = ["SIGKILL", "SIGSEGV", "SIGTERM", "several", "hang"] + (["crash", "abort", "loop", "block"] * has_faults)
    what = rng.choice(choices)
    if what == "several":
        pids = rng.sample(children, rng.randint(2, len(children))) if len(children) > 1 else children
        count = killer.kill(pids, signal.SIGKILL)
        return f"{what} killed at once" if count else None
    if what == "hang":
        return "hang: SIGSTOP" if killer.hang(pid) else None
    if what == "SIGTERM":
        return "told to leave: SIGTERM" if killer.dismiss(pid) else None
    if what in ("crash", "abort", "loop", "block"):
        hangs = what in ("loop", "block")
        return f"{'hang' if hangs else 'crash'} by a request: {what}" if killer.fault(what, hangs) else None
    return f"killed: {what}" if killer.kill([pid], getattr(signal, what)) else None


class Thread(threading.Thread):
    """Runs until it is told; what it raises is a fault."""

    def __init__(self, name, run, faults):
        super().__init__(name=name, daemon=True)
        self.body = run
        self.faults = faults

    def run(self):
        try:
            self.body()
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(f"{self.name}: {type(error).__name__}: {error}")


class Soak:
    def __init__(self, options):
        self.options = options
        folder = tempfile.mkdtemp(prefix="hayate-soak.")
        os.chmod(folder, 0o755)
        self.events = collections.Counter()
        self.faults = []
        self.is_over = threading.Event()
        self.server = hayate.Server(options.hayate, folder)
        self.killer = kill.Killer(self.server)
        self.operator = operate.Operator(self.server, self.killer, random.Random(options.seed), options.has_faults)
        self.watcher = Watcher(self.server, self.killer)
        self.load = None

    def kill(self):
        rng = random.Random(self.options.seed + 1)
        while not self.is_over.wait(rng.uniform(0.5, 4)):
            what = kill_at_random(self.killer, rng, self.options.has_faults)
            self.events[what or "kill of a process that had just gone"] += 1

    def repeat(self):
        """One action, so many times and nothing else, a second apart."""
        for _ in range(self.options.times):
            if self.is_over.wait(1):
                return
            self.operator.ACTIONS[self.options.only](self.operator)
        self.is_over.wait(1)
        self.is_over.set()

    def operate(self):
        while not self.is_over.wait(self.operator.rng.uniform(0.1, 2)):
            self.operator.act()

    def rest(self):
        """What the master has when nothing happens, after a reload to the plain configuration."""
        self.operator.restore()
        self.server.settle(2)
        return self.server.descriptors(), hayate.memory(self.server.pid)

    def warm_up(self):
        """Each kind once, so that what is allocated once has been: a socket of each worker stays, too."""
        self.operator.reload("worker count", workers=operate.MOST_WORKERS)
        for action in self.operator.GOOD:
            action(self.operator)
        self.killer.kill(self.server.children()[:1], signal.SIGKILL)
        return self.rest()

    def run(self):
        before = self.warm_up()
        start = time.monotonic()
        records = self.server.path("records")
        self.load = load = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(__file__), "load.py"),
                                 str(self.server.port), records, "--rate", str(self.options.rate),
                                             "--seed", str(self.options.seed + 2)])
        rows = (("operations", self.operate), ("kills", self.kill), ("status", lambda: self.watcher.run(self.is_over)))
        if self.options.only:
            rows = (("operations", self.repeat),)
        threads = [Thread(*row, self.faults) for row in rows]
        for thread in threads:
            thread.start()
        end = start + self.options.seconds
        while not self.is_over.is_set() and time.monotonic() < end \
                and load.poll() is None and self.server.process.poll() is None:
            self.is_over.wait(min(1, max(0, end - time.monotonic())))
        self.is_over.set()
        for thread in threads:
            thread.join(3 * hayate.WAIT)
            if thread.is_alive():
                self.faults.append(f"{thread.name}: hangs")
        stopped = time.monotonic()
        load.send_signal(signal.SIGTERM)
        status = load.wait(2 * record.OVERDUE)
        if status != 0:
            self.faults.append(f"load.py ended with {status}")
        self.finish(before)
        return self.judge(start, stopped, records)

    def finish(self, before):
        """Everything as at the start, and an orderly end."""
        after = self.rest()
        for child in self.server.children():
            if hayate.stat(child)[0] == "Z":
                self.faults.append(f"zombie: {child}")
        print(f"\n{'master':<24}{'warm':>10}{'at the end':>12}")
        print(f"{'descriptors':<24}{len(before[0]):>10}{len(after[0]):>12}")
        print(f"{'memory of its own, kB':<24}{before[1]:>10}{after[1]:>12}")
        if before[0] != after[0]:
            self.faults.append(f"descriptors: {before[0]} became {after[0]}")
        if after[1] > before[1] + GROWN:
            self.faults.append(f"{after[1] - before[1]} kB more than at the start")
        status = self.server.stop()
        print(f"{'exit status':<24}{status:>10}")
        if status != 0:
            self.faults.append(f"exit status {status}")
        for text in self.server.leftovers():
            self.faults.append(f"left over: {text}")

    def judge(self, start, stopped, path):
        verdict = judge.Verdict()
        deaths = self.killer.deaths
        with open(self.server.path("deaths"), "w") as file:
            file.writelines(f"{death}\n" for death in deaths + self.killer.leaves)
        final = judge.judge_records(verdict, record.read(path), self.killer, hayate.DRAIN, start, stopped)
        lines = judge.count_lines(self.server.folder)
        judge.judge_lines(verdict, final, lines, deaths, start)
        judge.judge_deaths(verdict, self.server.folder, deaths)
        judge.show(verdict)
        print(f"\n{'lines in the access logs':<46}{sum(lines.values()):>10}")
        events = self.events + self.operator.counts + self.watcher.counts
        events["processes killed"] = len(deaths)
        print("\nevents")
        for name, count in sorted(events.items()):
            print(f"  {count:>8}  {name}")
        faults = self.faults + self.killer.faults + self.operator.faults + self.watcher.faults + verdict.faults
        if verdict.answered == 0:
            faults.append("nothing was answered")
        return faults


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("hayate", nargs="?", default=os.environ.get("HAYATE", "./hayate"), help="the program")
    parser.add_argument("--seconds", type=int, default=int(os.environ.get("SOAK_SECONDS") or 600))
    parser.add_argument("--rate", type=int, default=500, help="new connections a second")
    parser.add_argument("--seed", type=int, default=os.environ.get("SOAK_SEED") or None, help="of all that is random")
    parser.add_argument("--only", choices=sorted(operate.Operator.ACTIONS), help="this again and again, and no kills")
    parser.add_argument("--times", type=int, default=20, help="of --only")
    found = parser.parse_args()
    if not 5 <= found.seconds <= 86400 or not 1 <= found.rate <= 5000:
        parser.error("--seconds goes from 5 to 86400, --rate from 1 to 5000")
    found.hayate = os.path.abspath(found.hayate)
    found.seed = int(found.seed) if found.seed is not None else random.SystemRandom().randrange(1 << 31)
    found.has_faults = operate.has_faults(found.hayate)
    return found


def main():
    found = options()
    log(f"SOAK_SECONDS={found.seconds} SOAK_SEED={found.seed}: {found.rate} new connections/s, "
        f"{'with' if found.has_faults else 'without'} crashes and hangs by request")
    try:
        soak = Soak(found)
    except OSError as error:
        sys.exit(f"soak.py: {found.hayate}: {error.strerror}: build hayate first, or name its path")
    try:
        faults = soak.run()
    except (hayate.Failed, OSError, subprocess.TimeoutExpired) as error:
        faults = soak.faults + soak.killer.faults + [str(error)]
    finally:
        for process in (soak.server.process, soak.load):
            if process and process.poll() is None:
                process.kill()
    for fault in faults[:50]:
        print(f"FAULT: {fault}")
    if faults:
        print(f"{len(faults)} faults; logs and records are in {soak.server.folder}")
        return 1
    soak.server.remove()
    log("every request is accounted for")
    return 0


if __name__ == "__main__":
    sys.exit(main())
