"""A hayate in a folder of its own, and what /proc says of its processes."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

DRAIN = 8
WATCHDOG = 2
WAIT = 60  # seconds for anything that is to come


class Failed(Exception):
    pass


def await_true(what, condition):
    end = time.monotonic() + WAIT
    while not (value := condition()):
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {WAIT} s")
        time.sleep(0.02)
    return value


def config(workers=2, second=False, routes=(), log="log", log_format="text", log_level="info", access="combined",
           more=""):
    """The text of a configuration."""
    listen = '"127.0.0.1:0"' + (', "127.0.0.2:0"' if second else "")
    text = "".join(f',\n  {{ path = "{path}" {kind} = "{value}" }}' for path, kind, value in routes)
    return f"""listen = [ {listen} ]
workers = {workers}
control = "control"
log = "{log}"
log_format = "{log_format}"
log_level = "{log_level}"
access_log = "access"
access_log_format = "{access}"
admin = {{ listen = [ "127.0.0.3:0" ] }}
timeouts = {{ drain = "{DRAIN}s" watchdog = "{WATCHDOG}s" }}
routes = (
  {{ path = "/hello" text = "Hello" }},
  {{ path = "/healthz" health = "live" }},
  {{ path = "/late" text = "Late" delay = "300ms" }},
  {{ path = "/post" text = "Post" methods = [ "POST" ] }}{text}
)
{more}"""


def stat(pid):
    """State and parent of a process; None when it has gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[1])


def title(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip() or "a zombie"
    except OSError:
        return "gone"


def memory(pid):
    """kB of its own, of what it has in use."""
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"^RssAnon:\s+(\d+) kB", file.read(), re.M)[1])


class Server:
    def __init__(self, binary, folder):
        self.original = binary
        self.folder = folder
        self.program = os.path.join(folder, "program")
        self.control = os.path.join(folder, "control")
        self.install()
        self.configure(config())
        with open(os.path.join(folder, "stderr"), "w") as file:
            self.process = subprocess.Popen([self.program, "-c", self.path("hayate.conf")], stdin=subprocess.DEVNULL,
                                            stdout=file, stderr=file, start_new_session=True)
        self.pid = self.process.pid
        await_true("the start", self.is_up)
        self.port = int(self.status()["listening"][0].rpartition(":")[2])

    def path(self, name):
        return os.path.join(self.folder, name)

    def is_up(self):
        if self.process.poll() is not None:
            raise Failed("hayate did not start: " + open(self.path("stderr")).read())
        return self.command("status").returncode == 0

    def put(self, name, data, mode=0o644):
        """In place by a rename."""
        with open(self.path("new"), "wb") as file:
            file.write(data)
        os.chmod(self.path("new"), mode)
        os.rename(self.path("new"), self.path(name))

    def install(self, source=None, most=None):
        with open(source or self.original, "rb") as file:
            self.put("program", file.read(most), 0o755)

    def configure(self, text):
        self.put("hayate.conf", text.encode())

    def command(self, *arguments):
        return subprocess.run([self.original, *arguments, "--control", self.control], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=WAIT)

    def probe(self):
        return subprocess.run([self.original, "probe", f"http://127.0.0.1:{self.port}/healthz"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT)

    def status(self):
        done = self.command("status", "--json")
        if done.returncode != 0:
            raise Failed(f"status: {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def children(self):
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as file:
            return [int(word) for word in file.read().split()]

    def descriptors(self):
        """What each descriptor of the master is open on; kinds of sockets are not told apart."""
        folder = f"/proc/{self.pid}/fd"
        return sorted(re.sub(r"\[\d+\]", "", os.readlink(os.path.join(folder, name))) for name in os.listdir(folder))

    def settle(self, workers):
        """Until only so many workers and the admin are there."""
        await_true("the end of what drains", lambda: len(self.children()) == workers + 1
                   and self.status()["serving"] == workers)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(WAIT)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()
            return "no end"

    def leftovers(self):
        """Processes of its session that are still there."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == self.pid:
                found.append(f"{name} {title(name)} ({fields[0]})")
        return found

    def remove(self):
        shutil.rmtree(self.folder)
