#!/usr/bin/env python3
"""What connections and requests cost a hayate in memory.

Starts HAYATE ($HAYATE, else ./hayate) on a free loopback port and asks for its memory, as the kernel counts it: PSS, in
which a page that processes share counts once in all. First without a connection, then with many that had an answer each
and are idle, then without them, and once more; then while many requests are answered. See README.md.

Exit: 0 as it should be, 1 not, 2 usage, 77 too few descriptors.
"""

import argparse
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

REQUEST = b"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"
BURST = 500  # requests in one write
BATCH = 200  # connections that are opened at once
WAIT = 30  # seconds for anything that is to come

# What is aimed at.
BYTES_A_CONNECTION = 300
KEPT = 0.05  # of the growth, that may stay when the connections have left
GROWN = 16  # kB, between two looks while requests are answered


class Failed(Exception):
    pass


def await_true(what, condition):
    end = time.monotonic() + WAIT
    while not (value := condition()):
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {WAIT} s")
        time.sleep(0.02)
    return value


class Server:
    def __init__(self, binary, workers, connections):
        self.folder = tempfile.TemporaryDirectory()
        self.log = os.path.join(self.folder.name, "log")
        config = os.path.join(self.folder.name, "hayate.conf")
        with open(config, "w") as file:
            file.write(f"""listen = [ "127.0.0.1:0" ]
workers = {workers}
control = "off"
limits = {{ connections = {connections + 1000} }}
timeouts = {{ idle = "1h" }}
""")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([binary, "-c", config], stdin=subprocess.DEVNULL, stderr=log)

    def address(self):
        def look():
            if self.process.poll() is not None:
                raise Failed("hayate did not start:\n" + open(self.log).read())
            return re.search(r" started in .* http://127\.0\.0\.1:(\d+)", open(self.log).read())

        return ("127.0.0.1", int(await_true("the start", look)[1]))

    def processes(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return [self.process.pid] + [int(word) for word in file.read().split()]

    def pss(self):
        """kB of each process, the master's first."""
        return [int(re.search(r"^Pss:\s+(\d+) kB", open(f"/proc/{pid}/smaps_rollup").read(), re.M)[1])
                for pid in self.processes()]

    def descriptors(self):
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.processes())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(WAIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def answer_length(address):
    """Bytes of one answer; all are of that length."""
    with socket.create_connection(address, WAIT) as client:
        client.sendall(REQUEST)
        data = b""
        while not (match := re.match(rb"HTTP/1\.1 200 OK\r\n.*\r\n\r\nHello", data, re.S)):
            piece = client.recv(4096)
            if not piece:
                raise Failed(f"not the right answer: {data!r}")
            data += piece
        return match.end()


def open_idle(address, count, length):
    """Connections that had their answer."""
    clients = []
    while len(clients) < count:
        batch = [socket.create_connection(address, WAIT) for _ in range(min(BATCH, count - len(clients)))]
        for client in batch:
            client.sendall(REQUEST)
        for client in batch:
            left = length
            while left > 0:
                piece = client.recv(left)
                if not piece:
                    raise Failed(f"connection {len(clients)} was closed")
                left -= len(piece)
        clients += batch
    return clients


def ask(address, count, length):
    """That many requests, in bursts, on one connection a worker or so."""
    clients = [socket.create_connection(address, WAIT) for _ in range(8)]
    done = 0
    while done < count:
        for client in clients:
            client.sendall(REQUEST * BURST)
        for client in clients:
            left = length * BURST
            while left > 0:
                piece = client.recv(min(left, 1 << 20))
                if not piece:
                    raise Failed("a connection was closed")
                left -= len(piece)
        done += BURST * len(clients)
    for client in clients:
        client.close()
    return done


def show(what, pss):
    print(f"{what:<44} PSS {sum(pss):6} kB: master {pss[0]}, children {' '.join(map(str, pss[1:]))}", flush=True)


def measure(server, options):
    faults = []
    address = server.address()
    length = answer_length(address)
    at_rest = server.descriptors

    bare = await_true("the first connection's end", lambda: at_rest())
    start = server.pss()
    show("fresh, after one request", start)
    for turn in (1, 2):
        clients = open_idle(address, options.connections, length)
        full = server.pss()
        show(f"{len(clients)} idle connections", full)
        bytes_each = (sum(full) - sum(start)) * 1024 / len(clients)
        print(f"{'':<44} {bytes_each:.0f} bytes a connection", flush=True)
        if bytes_each > BYTES_A_CONNECTION:
            faults.append(f"{bytes_each:.0f} bytes a connection, more than {BYTES_A_CONNECTION}")
        for client in clients:
            client.close()
        await_true("the end of all connections", lambda: at_rest() <= bare)
        left = server.pss()
        show("all have left", left)
        if turn == 2 and sum(left) - sum(start) > KEPT * (sum(full) - sum(start)):
            faults.append(f"{sum(left) - sum(start)} kB were kept")
    warm = None
    for part in range(5):
        done = ask(address, options.requests // 5 + 1, length)
        now = server.pss()
        show(f"{(part + 1) * done} requests more", now)
        if warm is not None and abs(sum(now) - sum(warm)) > GROWN:
            faults.append(f"{sum(now) - sum(warm)} kB more after {done} requests")
        warm = now
    return faults


def main():
    parser = argparse.ArgumentParser(description="What connections and requests cost a hayate in memory.")
    parser.add_argument("hayate", nargs="?", default=os.environ.get("HAYATE", "./hayate"))
    parser.add_argument("--connections", type=int, default=15000, metavar="N", help="that are idle (%(default)s)")
    parser.add_argument("--requests", type=int, default=2000000, metavar="N", help="that are answered (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="(%(default)s)")
    options = parser.parse_args()
    if not (1 <= options.connections <= 25000 and 1 <= options.requests <= 100000000 and 1 <= options.workers <= 64):
        parser.error("--connections goes from 1 to 25000, --requests from 1 to 100000000, --workers from 1 to 64")

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = options.connections + 1000
    if hard != resource.RLIM_INFINITY and hard < need:
        print(f"memory.py: {need} descriptors are needed, {hard} allowed: raise ulimit -Hn, or --connections less",
              file=sys.stderr)
        return 77
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, need), hard))
    try:
        server = Server(options.hayate, options.workers, options.connections)
    except OSError as error:
        print(f"memory.py: {options.hayate}: {error.strerror}: build hayate first, or name its path", file=sys.stderr)
        return 1
    try:
        faults = measure(server, options)
    except (Failed, OSError) as error:
        faults = [str(error)]
    status = server.stop()
    if status != 0:
        faults.append(f"hayate ended with {status}")
    for fault in faults:
        print(f"FAULT: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
