"""What an operator does to a server, well and badly; each action must end as it should."""

import collections
import os
import socket
import subprocess
import tempfile
import time
import urllib.request

import hayate

CRASHES = (("/crash", "fault", "segv"), ("/abort", "fault", "abort"), ("/loop", "fault", "loop"),
           ("/block", "fault", "block"))
MOST_WORKERS = 6


def has_faults(binary):
    """Is it built with --enable-faults?"""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write('routes = ( { path = "/" fault = "segv" } )\n')
        file.flush()
        done = subprocess.run([binary, "check", "-c", file.name], capture_output=True, timeout=hayate.WAIT)
    return done.returncode == 0


class Operator:
    def __init__(self, server, killer, rng, has_faults_built):
        self.server = server
        self.killer = killer
        self.rng = rng
        self.counts = collections.Counter()
        self.faults = []
        self.base = CRASHES if has_faults_built else ()
        self.has_faults = has_faults_built
        self.turns = 0
        self.holder = socket.create_server(("127.0.0.1", 0))  # a port that is taken
        self.options = {"routes": self.base}  # of the configuration that is served

    def was_hit(self, begin):
        """Did a kill or a hang fall into what has been going on since?"""
        return any(death.died == 0 or death.died >= begin for death in self.killer.deaths)

    def order(self, name, arguments, succeeds):
        """Runs a command and judges its end. Has it succeeded?"""
        begin = time.monotonic()
        done = self.server.command(*arguments)
        did = done.returncode == 0
        if did == succeeds:
            self.counts[name] += 1
        elif succeeds and self.was_hit(begin):
            self.counts[f"{name}, which a kill made fail"] += 1
        else:
            self.faults.append(f"{name}: status {done.returncode}: {done.stdout}{done.stderr}".strip())
        return did

    def reload(self, name, **changes):
        options = {**self.options, **changes}
        self.server.configure(hayate.config(**options))
        if self.order(f"reload: {name}", ["reload"], True):
            self.options = options
            return True
        self.server.configure(hayate.config(**self.options))
        return False

    def bad_reload(self, name, text):
        generation = self.server.status()["generation"]
        self.server.configure(text)
        self.order(f"bad reload: {name}", ["reload"], False)
        if self.server.status()["generation"] != generation:
            self.faults.append(f"bad reload: {name}: another generation serves")
        self.server.configure(hayate.config(**self.options))

    # Good ones.

    def same_file(self):
        self.reload("the same file")

    def change_workers(self):
        others = {1, 2, 3, 4, MOST_WORKERS} - {self.options.get("workers", 2)}
        self.reload("worker count", workers=self.rng.choice(sorted(others)))

    def change_routes(self):
        self.turns += 1
        self.reload("routes", routes=self.base + ((f"/{self.turns}", "text", self.turns),))

    def change_logs(self):
        self.reload("log settings", log=self.rng.choice(("log", "log.other")),
                    log_format=self.rng.choice(("text", "json")), log_level=self.rng.choice(("info", "debug")),
                    access=self.rng.choice(("combined", "json")))

    def change_addresses(self):
        before = [url for url in self.server.status()["listening"] if "127.0.0.2" in url]
        if not self.reload("an address less" if before else "an address more", second=not before):
            return
        after = [url for url in self.server.status()["listening"] if "127.0.0.2" in url]
        if len(after) != (not before):
            self.faults.append(f"addresses: {before} became {after}")
        for url in after:
            begin = time.monotonic()
            try:
                with urllib.request.urlopen(url + "/hello", timeout=hayate.WAIT) as answer:
                    text = answer.read().decode()
            except OSError as error:
                text = str(error)
            if text != "Hello" and not self.was_hit(begin):
                self.faults.append(f"the new address answers {text}")

    def rotate(self):
        self.turns += 1
        for name in ("log", "log.other", "access"):
            if os.path.exists(self.server.path(name)):
                os.rename(self.server.path(name), self.server.path(f"{name}.{self.turns}"))
        self.order("logs rotated", ["reopen"], True)
        if not os.path.exists(self.server.path("access")):
            self.faults.append("reopen: there is no access log")

    def upgrade(self):
        self.server.install()
        self.order("upgrade", ["upgrade"], True)

    # Bad ones.

    def bad_syntax(self):
        texts = ("workers = 2\nlisten = [ \n", "wrokers = 2\n", "workers = 0\n", "}\n")
        self.bad_reload("syntax", self.rng.choice(texts))

    def bad_port(self):
        port = self.holder.getsockname()[1]
        text = hayate.config(**self.options).replace("listen = [", f'listen = [ "127.0.0.1:{port}",', 1)
        self.bad_reload("a port that is taken", text)

    def bad_log(self):
        self.bad_reload("a log that cannot be opened", hayate.config(**{**self.options, "log": "nowhere/log"}))

    def with_fault(self, fault):
        """The first route is the one that a worker proves itself with."""
        return hayate.config(**self.options).replace('path = "/hello" text = "Hello"',
                                                     f'path = "/hello" fault = "{fault}"')

    def bad_worker(self):
        if self.has_faults:
            self.bad_reload("workers that crash at their start", self.with_fault("start"))

    def bad_upgrade(self, name, put, *arguments):
        generation = self.server.status()["generation"]
        put(*arguments)
        self.order(f"bad upgrade: {name}", ["upgrade"], False)
        if self.server.status()["generation"] != generation:
            self.faults.append(f"bad upgrade: {name}: another generation serves")
        self.server.install()

    def bad_binary(self):
        name, put, arguments = self.rng.choice((
            ("no program", self.server.put, ("program", b"nothing\n", 0o755)),
            ("another program", self.server.install, ("/bin/false",)),
            ("a part of it", self.server.install, (None, 5000)),
            ("not there", os.unlink, (self.server.program,)),
            ("not executable", self.server.put, ("program", b"\x7fELF", 0o644))))
        self.bad_upgrade(name, put, *arguments)

    def sleeping_binary(self):
        self.bad_upgrade("one that says nothing", self.server.put, "program", b"#!/bin/sh\nexec sleep 100\n", 0o755)

    def bad_configuration(self):
        self.bad_upgrade("the configuration is bad", self.server.configure, "wrokers = 2\n")
        self.server.configure(hayate.config(**self.options))

    def bad_takeover(self):
        """The trial goes well, and the workers of the new master crash: the old one comes back."""
        if self.has_faults:
            self.bad_upgrade("its workers crash after the trial", self.server.configure,
                             self.with_fault("late"))
            self.server.configure(hayate.config(**self.options))

    GOOD = (same_file, change_workers, change_routes, change_logs, change_addresses, rotate, upgrade)
    ACTIONS = {"reload": same_file, "routes": change_routes, "workers": change_workers, "addresses": change_addresses,
               "logs": change_logs, "rotate": rotate, "upgrade": upgrade}
    BAD = (bad_syntax, bad_port, bad_log, bad_worker, bad_binary, sleeping_binary, bad_configuration, bad_takeover)

    def act(self):
        self.rng.choice(self.GOOD if self.rng.random() < 0.7 else self.BAD)(self)

    def restore(self):
        """The configuration of the start."""
        self.options = {"routes": self.base}
        self.server.configure(hayate.config(**self.options))
        if self.server.command("reload").returncode != 0:
            raise hayate.Failed("the last reload failed")
