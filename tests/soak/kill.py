"""Kills and hangs, each with what the process held when it happened."""

import os
import re
import select
import signal
import socket
import time

import hayate
import judge

# address:port of this side and the other, state, ..., inode; states that have a connection: 01, 04, 05, 08, 09.
ROW = re.compile(rb"^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:([0-9A-F]{4}) 0[14589] [0-9A-F]+:([0-9A-F]+) \S+ \S+"
                 rb" +\d+ +\d+ (\d+) ", re.M)


def rows(port):
    """Those that clients have with this port of the server: client's port -> (inode, bytes not read)."""
    with open("/proc/net/tcp", "rb") as file:
        data = file.read()
    return {int(row[2], 16): (int(row[4]), int(row[3], 16)) for row in ROW.finditer(data) if int(row[1], 16) == port}


def sockets(pid):
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(int(target[8:-1]))
    return inodes


def look(death, port):
    """What it holds; nothing of that may change meanwhile. Twice, for the table of the kernel moves."""
    held = sockets(death.pid)
    ports, queued = set(), set()
    for _ in range(2):
        for client, (inode, _) in rows(port).items():
            if inode in held:
                ports.add(client)
            elif inode == 0:
                queued.add(client)
    death.ports, death.queued = frozenset(ports), frozenset(queued)


def send(handle, number):
    """To a process that may have gone already."""
    try:
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass


class Killer:
    def __init__(self, server):
        self.server = server
        self.deaths = []
        self.leaves = []
        self.faults = []

    def grip(self, pid):
        """A handle of a child of the master, None when that has gone."""
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        found = hayate.stat(pid)
        if found is None or found[1] != self.server.pid:
            os.close(handle)
            return None
        return handle

    def freeze(self, pid, kind):
        """Stops it, so that it can be seen what it holds: (handle, Death), or None when it has gone."""
        handle = self.grip(pid)
        if handle is None:
            return None
        death = judge.Death(kind, pid, hayate.title(pid))
        try:
            signal.pidfd_send_signal(handle, signal.SIGSTOP)
            while (found := hayate.stat(pid)) and found[0] not in "TZX":
                time.sleep(0.0005)
            if found is None or found[0] != "T":
                raise ProcessLookupError
            death.stopped = time.monotonic()
            look(death, self.server.port)
        except (ProcessLookupError, FileNotFoundError):
            os.close(handle)
            return None
        return handle, death

    def bury(self, handle, death, what):
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(hayate.WAIT * 1000):
            self.faults.append(f"{what}: {death.what} (pid {death.pid}) is still there after {hayate.WAIT} s")
        death.died = time.monotonic()
        os.close(handle)

    def kill(self, pids, number):
        """Sends all of them the signal at once."""
        name = signal.Signals(number).name
        grips = [found for found in (self.freeze(pid, name) for pid in pids) if found]
        for handle, death in grips:
            self.deaths.append(death)
            send(handle, number)
            send(handle, signal.SIGCONT)
        for handle, death in grips:
            self.bury(handle, death, name)
        return len(grips)

    def hang(self, pid):
        """Stops it for good: the watchdog is to kill it."""
        found = self.freeze(pid, "the watchdog (stopped)")
        if found:
            self.deaths.append(found[1])
            self.bury(*found, "SIGSTOP")
        return bool(found)

    def dismiss(self, pid):
        """Tells it to leave: it drains, and loses no request."""
        found = self.freeze(pid, "SIGTERM")
        if not found:
            return False
        handle, death = found
        death.is_loose = True
        self.leaves.append(death)
        send(handle, signal.SIGTERM)
        send(handle, signal.SIGCONT)
        death.died = time.monotonic() + 0.1
        os.close(handle)
        return True

    def owner(self, client):
        """The child that holds this connection."""
        for _ in range(200):
            inode = rows(self.server.port).get(client, (0, 0))[0]
            for pid in self.server.children() if inode else ():
                try:
                    if inode in sockets(pid):
                        return pid
                except OSError:
                    pass
            time.sleep(0.01)
        return None

    def fault(self, path, hangs):
        """A request that makes its worker crash or hang; false when it cannot be had."""
        with socket.create_connection(("127.0.0.1", self.server.port), hayate.WAIT) as client:
            port = client.getsockname()[1]
            client.sendall(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
            if b"Connection: close" in client.recv(4096):
                return False
            pid = self.owner(port)
            found = pid and self.freeze(pid, f"the watchdog ({path})" if hangs else f"its request ({path})")
            if not found:
                return False
            handle, death = found
            client.sendall(b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n" % path.encode())
            look(death, self.server.port)
            death.is_loose = True
            self.deaths.append(death)
            send(handle, signal.SIGCONT)
            if hangs:
                self.await_read(port, death)
            self.bury(handle, death, path)
        return True

    def await_read(self, port, death):
        """Once it has read the request it hangs, and what it holds stays: exactly that it loses."""
        end = time.monotonic() + hayate.WATCHDOG / 2
        while time.monotonic() < end:
            if rows(self.server.port).get(port, (0, 0))[1] == 0:
                stopped, before = time.monotonic(), death.ports
                try:
                    look(death, self.server.port)
                except OSError:
                    return
                death.stopped, death.is_loose, death.before = stopped, False, before
                return
            time.sleep(0.005)
