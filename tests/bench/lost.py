#!/usr/bin/env python3
"""Counts what becomes of each request, on keep-alive connections, while something is done to the server.

A request counts as lost when all of it was written and its connection ended before all of the answer had come. A
connection that ends while no request is under way loses nothing and is counted apart. Every request that was sent is in
exactly one of: answered, wrong, lost, overdue.

Prints one "name value" pair a line. Exit: 0 nothing was lost, wrong, overdue or refused; 1 something was; 2 usage.
"""

import argparse
import collections
import errno
import heapq
import ipaddress
import random
import select
import socket
import sys
import time

NAMES = (
    ("sent", "requests written"),
    ("answered", "complete, status 200, the right body"),
    ("wrong", "complete, but another status or body, or not HTTP"),
    ("lost", "the connection ended before the answer was complete"),
    ("lost_partly", "of these: after a part of the answer"),
    ("lost_first", "of these: the first request of its connection"),
    ("overdue", "no complete answer within the timeout"),
    ("refused", "connects refused"),
    ("unconnected", "connects that failed in another way"),
    ("opened", "connections opened"),
    ("closed_announced", "connections ended by an answer with Connection: close"),
    ("closed_idle", "connections ended in order while no request was under way"),
    ("reset_idle", "connections reset while no request was under way"),
)
BAD = ("wrong", "lost", "overdue", "refused", "unconnected")
RETRY = 0.01  # seconds after a connect that failed


class Malformed(Exception):
    pass


def parse(data):
    """(status, body, closes) of the answer in data, None while it is incomplete."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    line, *fields = bytes(data[:end]).split(b"\r\n")
    parts = line.split(b" ", 2)
    if not parts[0].startswith(b"HTTP/1.") or len(parts) < 2 or not parts[1].isdigit():
        raise Malformed
    values = {}
    for field in fields:
        name, colon, value = field.partition(b":")
        if not colon:
            raise Malformed
        values[name.lower()] = value.strip()
    length = values.get(b"content-length", b"")
    if not length.isdigit():
        raise Malformed
    body = bytes(data[end + 4:])
    if len(body) < int(length):
        return None
    if len(body) > int(length):
        raise Malformed
    return int(parts[1]), body, values.get(b"connection", b"").lower() == b"close"


class Client:
    """One connection at a time, one request at a time; states: away, connecting, idle, waiting."""

    def __init__(self, run, pause):
        self.run = run
        self.pause = pause
        self.state = "away"
        self.sock = None
        self.turn = 0  # a timer that was set for an earlier turn is void
        self.data = bytearray()
        self.requests = 0
        self.outcome = ""
        self.since = 0.0

    def connect(self):
        self.sock = socket.socket(self.run.family, socket.SOCK_STREAM)
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.state = "connecting"
        self.requests = 0
        self.run.clients[self.sock.fileno()] = self
        self.run.epoll.register(self.sock.fileno(), select.EPOLLOUT)
        status = self.sock.connect_ex(self.run.address)
        if status not in (0, errno.EINPROGRESS):
            self.connect_failed(status)

    def connect_failed(self, status):
        self.run.count["refused" if status == errno.ECONNREFUSED else "unconnected"] += 1
        self.close()
        self.run.at(RETRY, self)

    def close(self):
        self.run.epoll.unregister(self.sock.fileno())
        del self.run.clients[self.sock.fileno()]
        self.sock.close()
        self.sock = None
        self.state = "away"
        self.turn += 1

    def reopen(self):
        self.close()
        if self.run.sending:
            self.connect()

    def wait(self):
        """Between two requests."""
        if not self.run.sending:
            self.close()
            return
        self.state = "idle"
        self.turn += 1
        if self.pause > 0:
            self.run.at(random.uniform(0, self.pause), self)
        else:
            self.send()

    def send(self):
        # A client writes nothing on a connection that it knows to be closed.
        if not self.is_open():
            return
        try:
            written = self.sock.send(self.run.request)
        except OSError:  # closed since the line before, so nothing was written
            self.run.count["reset_idle"] += 1
            self.reopen()
            return
        assert written == len(self.run.request)
        self.run.count["sent"] += 1
        self.requests += 1
        self.data.clear()
        self.state = "waiting"
        self.turn += 1
        self.since = time.monotonic()
        self.run.at(self.run.timeout, self)

    def is_open(self):
        try:
            data = self.sock.recv(4096)
        except BlockingIOError:
            return True
        except OSError:
            self.run.count["reset_idle"] += 1
        else:
            # Bytes that nobody asked for make the answer before them a wrong one.
            if data and self.requests:
                self.run.count[self.outcome] -= 1
                self.run.count["wrong"] += 1
            else:
                self.run.count["closed_idle"] += 1
        self.reopen()
        return False

    def timer(self):
        if self.state == "away":
            if self.run.sending:
                self.connect()
        elif self.state == "idle":
            self.send()
        elif self.state == "waiting":
            self.run.count["overdue"] += 1
            self.reopen()

    def event(self):
        if self.state == "connecting":
            status = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if status:
                self.connect_failed(status)
                return
            self.run.count["opened"] += 1
            self.run.epoll.modify(self.sock.fileno(), select.EPOLLIN)
            self.wait()
        elif self.state == "idle":
            self.is_open()
        elif self.state == "waiting":
            self.receive()

    def receive(self):
        try:
            data = self.sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.run.count["lost"] += 1
            self.run.count["lost_partly"] += bool(self.data)
            self.run.count["lost_first"] += self.requests == 1
            self.reopen()
            return
        self.data += data
        try:
            answer = parse(self.data)
        except Malformed:
            self.run.count["wrong"] += 1
            self.reopen()
            return
        if answer is None:
            return
        status, body, closes = answer
        self.outcome = "answered" if status == 200 and body == self.run.body else "wrong"
        self.run.count[self.outcome] += 1
        self.run.longest = max(self.run.longest, time.monotonic() - self.since)
        if closes:
            self.run.count["closed_announced"] += 1
            self.reopen()
        else:
            self.wait()


class Run:
    def __init__(self, options):
        host = ipaddress.ip_address(options.host)
        self.family = socket.AF_INET6 if host.version == 6 else socket.AF_INET
        self.address = (str(host), options.port)
        authority = f"[{host}]" if host.version == 6 else str(host)
        self.request = f"GET {options.path} HTTP/1.1\r\nHost: {authority}:{options.port}\r\n\r\n".encode()
        self.body = options.body.encode()
        self.timeout = options.timeout
        self.seconds = options.seconds
        self.count = collections.Counter()
        self.longest = 0.0
        self.sending = True
        self.epoll = select.epoll()
        self.clients = {}
        self.timers = []
        self.order = 0
        # Half of them, so that at any moment many requests are under way and many connections are idle.
        pauses = (0, options.pause / 1000)
        self.all = [Client(self, pauses[i % 2]) for i in range(options.connections)]

    def at(self, delay, client):
        self.order += 1
        heapq.heappush(self.timers, (time.monotonic() + delay, self.order, client, client.turn))

    def run(self):
        start = time.monotonic()
        for client in self.all:
            client.connect()
        while self.clients or self.sending:
            now = time.monotonic()
            if self.sending and now >= start + self.seconds:
                self.sending = False
                for client in list(self.clients.values()):
                    if client.state != "waiting":
                        client.close()
                continue
            while self.timers and self.timers[0][0] <= now:
                _, _, client, turn = heapq.heappop(self.timers)
                if turn == client.turn:
                    client.timer()
            until = start + self.seconds if self.sending else now + 1
            if self.timers:
                until = min(until, self.timers[0][0])
            events = self.epoll.poll(max(0, until - time.monotonic()))
            # By client and turn: a connection opened in this very round may have the number of one that was closed.
            for client, turn in [(self.clients[fd], self.clients[fd].turn) for fd, _ in events]:
                if turn == client.turn:
                    client.event()


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--host", default="127.0.0.1", help="numeric, of the loopback interface; others are refused")
    parser.add_argument("--path", default="/hello", help="what is asked for")
    parser.add_argument("--body", default="Hello", help="what is expected")
    parser.add_argument("--connections", type=int, default=64, help="clients, each with one connection")
    parser.add_argument("--seconds", type=float, default=10, help="how long requests are sent")
    parser.add_argument("--pause", type=float, default=0,
                        help="of every second client: most ms between an answer and the next request")
    parser.add_argument("--timeout", type=float, default=10, help="seconds after which an answer is overdue")
    found = parser.parse_args()
    try:
        if not ipaddress.ip_address(found.host).is_loopback:
            parser.error(f"{found.host}: only addresses of the loopback interface are ever loaded")
    except ValueError:
        parser.error(f"{found.host}: not a numeric address")
    for name, least, most in (("port", 1, 65535), ("connections", 1, 1000), ("seconds", 0.1, 600),
                              ("pause", 0, 60000), ("timeout", 0.1, 600)):
        if not least <= getattr(found, name) <= most:
            parser.error(f"{name}: expected {least} to {most}")
    return found


def main():
    run = Run(options())
    run.run()
    count = run.count
    for name, meaning in NAMES:
        print(f"{name:<17}{count[name]:>9}  {meaning}")
    print(f"{'longest_ms':<17}{run.longest * 1000:>9.0f}  the longest that a complete answer took")
    if count["sent"] != sum(count[name] for name in ("answered", "wrong", "lost", "overdue")):
        sys.exit("lost.py: the counts do not add up: a bug in this program")
    if not count["answered"] or any(count[name] for name in BAD):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
