#!/usr/bin/env python3
"""The load of the soak: sends requests of six kinds and writes down what became of each.

Every request has a number of its own in its target, and leaves one record (record.py) in the file. Nothing is sent
again, but for pipelined requests that an answer with Connection: close has cut off: RFC 9112, 9.6.
"""

import argparse
import errno
import heapq
import random
import select
import signal
import socket
import struct
import sys
import time

import record

PERSISTENT = 40  # clients that pause for up to 0.25 s
LAZY = 6  # up to 15 s
PIPELINING = 4  # a batch every 0.25 s
BATCH = 8
SLOW = 8  # bodies in pieces
LATE = 8  # answers that take 0.3 s
PIECES = 5
MOST = 3000  # connections at once
RESET = struct.pack("ii", 1, 0)


class Malformed(Exception):
    pass


def parse(data):
    """(status, body, closes, length) of the first answer in data, None while it is incomplete."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    line, *fields = bytes(data[:end]).split(b"\r\n")
    parts = line.split(b" ", 2)
    if parts[0] != b"HTTP/1.1" or len(parts) < 2 or not parts[1].isdigit():
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
    total = end + 4 + int(length)
    if len(data) < total:
        return None
    return int(parts[1]), bytes(data[end + 4:total]), values.get(b"connection", b"").lower() == b"close", total


class Client:
    """States: away, connecting, idle, sending (pieces), waiting, ending (for the server's close)."""

    def __init__(self, run, kind, pause=0.0):
        self.run = run
        self.kind = kind
        self.pause = pause
        self.state = "away"
        self.sock = None
        self.turn = 0  # a timer that was set for an earlier turn is void
        self.data = bytearray()
        self.asked = []  # numbers without an answer yet, in order
        self.again = []  # numbers that go out once more
        self.answers = 0
        self.port = 0
        self.pieces = 0
        self.opened = self.sent = self.idle_since = 0.0

    def connect(self):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.state = "connecting"
        self.opened = self.sent = self.idle_since = time.monotonic()
        self.answers = 0
        self.data.clear()
        self.run.clients[self.sock.fileno()] = self
        self.run.epoll.register(self.sock.fileno(), select.EPOLLOUT)
        status = self.sock.connect_ex(self.run.address)
        if status not in (0, errno.EINPROGRESS):
            self.connect_failed(status)
            return
        self.port = self.sock.getsockname()[1]
        self.run.at(record.OVERDUE, self)

    def connect_failed(self, status):
        number = self.again.pop(0) if self.again else self.run.number()
        self.note(number, record.REFUSED if status == errno.ECONNREFUSED else record.UNCONNECTED)
        self.close(False)
        self.later(0.05)

    def note(self, number, outcome):
        self.run.file.write(record.pack(number, self.kind, outcome, self.port, self.opened, self.idle_since,
                                        self.sent, time.monotonic()))

    def close(self, resets):
        self.run.epoll.unregister(self.sock.fileno())
        del self.run.clients[self.sock.fileno()]
        if resets:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.sock.close()
        self.sock = None
        self.state = "away"
        self.turn += 1

    def later(self, delay):
        """Away: another connection, unless this client was for one request."""
        if self.kind != record.FRESH and (self.run.sending or self.again):
            self.run.at(delay, self)

    def wait(self):
        if not self.run.sending and not self.again:
            self.close(True)
            return
        self.state = "idle"
        self.turn += 1
        if self.answers and self.pause:
            self.run.at(random.uniform(0, self.pause), self)
        else:
            self.send()

    def send(self):
        # A client writes nothing on a connection that it knows to be closed.
        if not self.is_open():
            return
        count = BATCH if self.kind == record.PIPELINED else 1
        self.asked = self.again or [self.run.number() for _ in range(count)]
        self.again = []
        self.pieces = PIECES if self.kind == record.SLOW else 0
        self.sent = time.monotonic()
        try:
            self.sock.sendall(b"".join(map(self.head, self.asked)))
        except OSError:
            # Closed since the line before, or in the middle: no answer will come.
            self.lose()
            return
        self.run.epoll.modify(self.sock.fileno(), select.EPOLLIN)
        self.turn += 1
        self.state = "sending" if self.pieces else "waiting"
        self.run.at(random.uniform(0.1, 0.4) if self.pieces else record.OVERDUE, self)

    def head(self, number):
        if self.kind == record.SLOW:
            return b"POST /post?n=%d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (number, PIECES)
        if self.kind == record.LATE:
            return b"GET /late?n=%d HTTP/1.1\r\nHost: a\r\n\r\n" % number
        closes = b"Connection: close\r\n" if self.kind == record.FRESH and number % 8 == 0 else b""
        return b"GET /hello?n=%d HTTP/1.1\r\nHost: a\r\n%s\r\n" % (number, closes)

    def send_piece(self):
        try:
            self.sock.sendall(b"x")
        except OSError:
            self.lose()
            return
        self.pieces -= 1
        self.turn += 1
        self.state = "sending" if self.pieces else "waiting"
        self.run.at(random.uniform(0.1, 0.4) if self.pieces else record.OVERDUE, self)

    def is_open(self):
        try:
            data = self.sock.recv(4096)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        # Bytes that nobody asked for are a fault, and so is an end unless judge.py finds a reason.
        self.note(0, record.UNASKED if data else record.CLOSED_IDLE)
        self.close(False)
        self.later(0)
        return False

    def lose(self):
        for place, number in enumerate(self.asked):
            partly = place == 0 and self.data
            self.note(number, record.PARTLY if partly else record.LOST)
        self.asked = []
        self.close(False)
        self.later(0)

    def timer(self):
        if self.state == "away":
            self.connect()
        elif self.state == "idle":
            self.send()
        elif self.state == "sending":
            self.send_piece()
        else:
            outcome = record.UNCONNECTED if self.state == "connecting" else record.OVERDUE_ANSWER
            for number in self.asked or [self.run.number()]:
                if self.state != "ending":
                    self.note(number, outcome)
            if self.state == "ending":
                self.note(0, record.UNENDED)
            self.asked = []
            self.close(True)
            self.later(0)

    def event(self):
        if self.state == "connecting":
            status = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if status:
                self.connect_failed(status)
                return
            self.run.epoll.modify(self.sock.fileno(), select.EPOLLIN)
            self.wait()
        elif self.state == "idle":
            self.is_open()
        elif self.state == "ending":
            self.end()
        else:
            self.receive()

    def end(self):
        try:
            data = self.sock.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            self.note(0, record.RESET_END)
            data = b""
        if data:
            self.note(0, record.UNASKED)
        self.close(False)
        self.later(0)

    def receive(self):
        try:
            data = self.sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.lose()
            return
        self.data += data
        try:
            while self.asked and (answer := parse(self.data)):
                if not self.take(*answer):
                    return
        except Malformed:
            self.note(self.asked.pop(0), record.WRONG)
            self.lose()

    def take(self, status, body, closes, length):
        """One answer; false when that was all."""
        del self.data[:length]
        expected = {record.SLOW: b"Post", record.LATE: b"Late"}.get(self.kind, b"Hello")
        right = status == 200 and body == expected and not self.pieces
        self.note(self.asked.pop(0), record.ANSWERED if right else record.WRONG)
        self.answers += 1
        self.idle_since = time.monotonic()
        if closes:
            self.again = self.asked
            self.asked = []
            for number in self.again:
                self.note(number, record.DEFERRED)
            self.state = "ending"
            self.turn += 1
            self.run.at(record.OVERDUE, self)
            self.end()
            return False
        if self.asked:
            return True
        if self.kind == record.FRESH:
            self.close(self.port % 8 != 0)
        elif self.kind == record.SLOW:
            self.close(True)
            self.later(0)
        else:
            self.wait()
        return False


class Run:
    def __init__(self, options):
        self.address = ("127.0.0.1", options.port)
        self.rate = options.rate
        self.file = open(options.records, "wb")
        self.count = 0
        self.sending = True
        self.epoll = select.epoll()
        self.clients = {}
        self.timers = []
        self.order = 0

    def number(self):
        self.count += 1
        return self.count

    def at(self, delay, client):
        self.order += 1
        heapq.heappush(self.timers, (time.monotonic() + delay, self.order, client, client.turn))

    def stop(self, *_):
        self.sending = False

    def start(self):
        kinds = [(record.PERSISTENT, 0.25)] * PERSISTENT + [(record.LAZY, 15.0)] * LAZY \
            + [(record.PIPELINED, 0.25)] * PIPELINING + [(record.SLOW, 0.0)] * SLOW + [(record.LATE, 0.25)] * LATE
        for kind, pause in kinds:
            Client(self, kind, pause).connect()

    def run(self):
        self.start()
        begin = time.monotonic()
        opened = 0
        quitting = False
        while self.sending or self.clients or self.timers:
            now = time.monotonic()
            if not self.sending and not quitting:
                quitting = True
                for client in [one for one in self.clients.values() if one.state == "idle"]:
                    client.close(True)
            # What was not opened while the machine was busy is made up for, up to a second of it.
            due = int((now - begin) * self.rate)
            opened = max(opened, due - self.rate)
            while self.sending and opened < due and len(self.clients) < MOST:
                opened += 1
                Client(self, record.FRESH).connect()
            while self.timers and self.timers[0][0] <= now:
                _, _, client, turn = heapq.heappop(self.timers)
                if turn == client.turn:
                    client.timer()
            while self.timers and self.timers[0][2].turn != self.timers[0][3]:
                heapq.heappop(self.timers)
            until = begin + (opened + 1) / self.rate if self.sending else now + 1
            if self.timers:
                until = min(until, self.timers[0][0])
            events = self.epoll.poll(max(0, until - time.monotonic()))
            # By client and turn: a connection opened in this round may have the number of one that was closed.
            for client, turn in [(self.clients[fd], self.clients[fd].turn) for fd, _ in events]:
                if turn == client.turn:
                    client.event()
        self.file.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("records")
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    run = Run(options)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, run.stop)
    run.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
