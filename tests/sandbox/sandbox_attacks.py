"""The attacks: what a job runs, and what must hold of how it ended besides that nothing outside was touched.

Run as a program, prints the table of docs/sandbox.md for the levels that work here, or JSON with --json.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from sandbox_world import World

from mulligan.core.protocols import Job, Ran
from mulligan.sandbox.detect import problem
from mulligan.sandbox.levels import LEVELS, STRICT
from mulligan.sandbox.local import LocalSandbox

PRELUDE = """
import ctypes, json, os, signal, sys, time
w = json.loads(sys.argv[1]); token = "".join(w["halves"])
libc = ctypes.CDLL(None, use_errno=True)
def tries(*calls):
    for call in calls:
        try: print(call())
        except BaseException as error: print(type(error).__name__, getattr(error, "errno", ""))
def put(path):
    with open(path, "w") as file: return file.write("x")
def get(path):
    with open(path, errors="replace") as file: return file.read(5000)
"""


@dataclass(frozen=True)
class Attack:
    """`code` runs after PRELUDE. `holds` looks at how the job ended: "" or what is wrong. `settings` are of the Job."""

    name: str
    code: str
    holds: Callable[[Ran], str] = lambda ran: ""
    settings: dict[str, object] = field(default_factory=dict[str, object])


def _ended(ran: Ran) -> str:
    return "" if not ran.timed_out and ran.exit_code == 0 else f"ended {ran.exit_code} {ran.stderr[-300:]}"


def _late(ran: Ran) -> str:
    return "" if ran.timed_out and ran.exit_code is None and ran.seconds < 4 else f"not stopped in time: {ran.seconds}"


def _says(*words: str) -> Callable[[Ran], str]:
    return lambda ran: "" if any(word in ran.stdout + ran.stderr for word in words) else f"said {ran.stdout[-300:]!r}"


def _listed(ran: Ran) -> str:
    shown = [line for line in ran.stdout.splitlines() if line.startswith("[") and line != "[]"]
    return f"listed {shown}" if shown else ""


def _at_most(most: int) -> Callable[[Ran], str]:
    return lambda ran: "" if int(ran.stdout.split()[0]) <= most else f"{ran.stdout} of {most}"


def _stopped_or(most: int) -> Callable[[Ran], str]:
    """Either the sandbox killed it, or its last line, a count, is at most `most`."""
    return lambda ran: "" if ran.exit_code is None or int(ran.stdout.split()[-1]) <= most else f"got {ran.stdout[-50:]}"


SHORT: dict[str, object] = {"seconds": 1.0}

ATTACKS = (
    # section 4 of the environments reference
    Attack("400 forks", """
n = 0
for _ in range(400):
    try: pid = os.fork()
    except OSError: break
    if pid == 0: time.sleep(60)
    n += 1
print(n)
""", _at_most(32)),
    Attack("endless loop", "while True: pass", _late, SHORT),
    Attack("endless loop without SIGTERM, SIGXCPU", """
for n in range(1, 64):
    try: signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass
""", _late, SHORT),
    Attack("grandchild in its own session", """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(60)
    os._exit(0)
os.wait()
""", _ended),
    Attack("8 GB of memory", "x = bytearray(8 << 30); print(len(x))", _says("MemoryError")),
    Attack("2 GB of memory in 8 processes", """
for _ in range(8):
    if os.fork() == 0: x = bytearray(os.urandom(1 << 20)) * 256; time.sleep(60)
time.sleep(60)
""", _says("MB of memory"), {"seconds": 8.0}),
    Attack("write outside", """
places = ["/etc", w["home"], "/var/tmp", "/dev/shm", "/tmp", w["folder"], "/dev/mqueue", "..", "/"]
tries(*[lambda p=p: put(os.path.join(p, token)) for p in places], lambda: put(w["secret"]))
"""),
    Attack("read secrets", """
home = w["home"]; own = os.path.basename(os.environ["HOME"])
tries(lambda: get(w["secret"]), lambda: get("/etc/shadow"), lambda: get("/etc/passwd"),
      lambda: [n for n in os.listdir(home) if n not in sys.base_prefix],  # the way to the interpreter may show
      lambda: os.listdir(home + "/.ssh"), lambda: [n for n in os.listdir("/tmp") if n != own],
      lambda: os.listdir(w["folder"]))
""", lambda ran: "read /etc" if "root:" in ran.stdout else _listed(ran)),
    Attack("TCP and UDP to loopback", """
import socket
def tcp(): socket.create_connection(("127.0.0.1", w["tcp"]), 1).close(); return token
def udp(): socket.socket(2, 2).sendto(b"x", ("127.0.0.1", w["udp"])); return token
def raw(): return token + str(socket.socket(socket.AF_PACKET, 3))
def netlink(): return token + str(socket.socket(16, 3))
tries(tcp, udp, raw, netlink)
"""),
    Attack("signal everybody", """
tries(lambda: os.kill(w["victim"], signal.SIGURG), lambda: os.kill(-1, signal.SIGURG),
      lambda: os.kill(w["mulligan"], signal.SIGURG), lambda: os.kill(os.getppid(), signal.SIGURG),
      lambda: signal.pidfd_send_signal(os.pidfd_open(w["victim"]), signal.SIGURG),
      lambda: time.sleep(0.2), lambda: os.kill(w["victim"], signal.SIGKILL))
"""),
    Attack("stop and kill the supervisor", """
tries(lambda: os.kill(os.getppid(), signal.SIGSTOP), lambda: os.kill(os.getppid(), signal.SIGKILL),
      lambda: os.killpg(os.getpgid(os.getppid()), signal.SIGKILL))
if os.fork() == 0: time.sleep(60)
time.sleep(60)
""", _late, SHORT),
    Attack("ptrace the victim to death", """
for target in (w["victim"], os.getppid(), w["mulligan"]):
    print(libc.ptrace(16, target, 0, 0))
    if target == w["victim"]: time.sleep(0.1); libc.ptrace(8, target, 0, 0)
"""),
    Attack("print 1 GB", """
block = b"x" * (1 << 20)
for _ in range(1000): os.write(1, block)
""", lambda ran: "" if ran.truncated and len(ran.stdout) < 64_100 else f"{len(ran.stdout)} kept", {"seconds": 20.0}),
    Attack("fill the disk with large files", """
total = 0
try:
    for n in range(200):
        with open(str(n), "wb") as file: total += file.write(bytes(10 << 20))
except OSError: pass
print(total >> 20)
time.sleep(0.6)
""", _stopped_or(64)),
    Attack("one large file", """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    with open("big", "wb") as file:
        for n in range(100): file.write(bytes(1 << 20))
except OSError: pass
print(os.path.getsize("big") >> 20)
""", _at_most(16)),
    Attack("endless recursion", "sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
           lambda ran: "" if ran.exit_code != 0 else "ended well", {"seconds": 3.0}),
    # our own
    Attack("symlinks out of the scratch folder", """
os.symlink(w["secret"], "s"); os.symlink(w["folder"], "d"); os.symlink("/", "r")
tries(lambda: get("s"), lambda: put("s"), lambda: put("d/new"), lambda: get("r" + w["secret"]), lambda: os.listdir("d"))
"""),
    Attack("hard link and rename", """
tries(lambda: os.link(w["secret"], "mine"), lambda: get("mine"), lambda: os.rename(w["secret"], "moved"),
      lambda: os.link(w["secret"], w["folder"] + "/other"), lambda: os.rename(w["folder"], w["folder"] + token))
"""),
    Attack("chmod, chown, utime, xattr, truncate", """
s = w["secret"]
tries(lambda: os.chmod(s, 0o777), lambda: os.chown(s, 12345, 12345), lambda: os.utime(s, (1, 1)),
      lambda: os.setxattr(s, "user.x", b"1"), lambda: os.truncate(s, 0), lambda: os.open(s, os.O_TRUNC),
      lambda: os.unlink(s), lambda: libc.syscall(452, -100, s.encode(), 0o777, 0),
      lambda: os.fchmod(os.open(s, os.O_RDONLY), 0o700))
"""),
    Attack("setuid bits", """
import shutil
shutil.copyfile("/usr/bin/id", "id")
tries(lambda: os.chmod("id", 0o6777), lambda: os.setuid(0), lambda: os.system("./id -u"), lambda: os.system("su -c id"))
""", lambda ran: "became root" if "uid=0" in ran.stdout or ran.stdout.split()[:1] == ["0"] else ""),
    Attack("memory and environment of others", """
for pid in (w["victim"], w["mulligan"], os.getppid(), 1):
    tries(*[lambda n=n: get(f"/proc/{pid}/{n}") for n in ("environ", "maps", "mem", "cmdline")],
          lambda: os.listdir(f"/proc/{pid}/root"), lambda: os.listdir(f"/proc/{pid}/fd"),
          lambda: get(f"/proc/{pid}/root{w['secret']}"), lambda: get(f"/proc/{pid}/cwd/secret.txt"))
buffer = ctypes.create_string_buffer(100)
print(libc.process_vm_readv(w["victim"], buffer, 1, buffer, 1, 0))
""", _listed),
    Attack("program in memory", """
def run(): return os.execv(f"/proc/self/fd/{os.memfd_create('m')}", ["m"])
tries(lambda: os.memfd_create("m"), run)
""", lambda ran: "" if ran.stdout.count("PermissionError") == 2 else ran.stdout),
    Attack("inherited descriptors", """
def is_open(fd):
    try: os.fstat(fd); return True
    except OSError: return False
print([fd for fd in range(3, 4096) if is_open(fd)])
""", _says("[]\n")),
    Attack("unix sockets, abstract and by path", """
import socket
def to(address):
    s = socket.socket(socket.AF_UNIX); s.connect(address); return "connected"
def gram():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b"x", w["folder"] + "/gram")
def again():
    a, b = socket.socketpair(); a.connect("\\0" + token)
tries(lambda: to("\\0" + token), lambda: to(w["folder"] + "/stream"), gram, again)
"""),
    Attack("shared memory, queues, keys", """
print(libc.shmget(int(token[:7], 16), 4096, 0o1666), libc.mq_open(("/" + token).encode(), 0o102, 0o666, 0),
      libc.syscall(248, b"user", token.encode(), b"x", 1, -4), libc.semget(int(token[:7], 16), 1, 0o1666))
""", _says("-1 -1 -1 -1")),
    Attack("fork bomb", """
while True:
    try: os.fork()
    except OSError: pass
""", lambda ran: "" if ran.exit_code is None else "ended by itself", SHORT),
    Attack("fork bomb that leaves its sessions", """
while True:
    try:
        if os.fork(): os._exit(0)
        os.setsid()
    except OSError: pass
""", _ended, SHORT),
    Attack("thread bomb", """
import threading
n = 0
try:
    while n < 5000: threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); n += 1
except (RuntimeError, MemoryError): pass
print(n, flush=True); os._exit(0)
""", _at_most(32)),
    Attack("watch a folder", """
fd = libc.inotify_init(); print(fd, libc.inotify_add_watch(fd, w["folder"].encode(), 0xfff))
""", _says("-1 -1")),
    Attack("huge arguments", "tries(lambda: os.execv(sys.executable, ['x'] * 10_000_000))", _says("Error")),
    Attack("namespaces and mounts", """
print(libc.unshare(0x10000000), libc.unshare(0x20000), libc.mount(b"none", b"/", None, 0x1000, None),
      libc.syscall(56, 0x10000011, 0, 0, 0, 0), libc.chroot(b"/"), libc.setns(0, 0))
""", _says("-1 -1 -1 -1 -1 -1")),
    Attack("doors into the kernel", """
print(*[libc.syscall(n, 0, 0, 0, 0, 0) for n in (321, 298, 323, 425, 175, 246, 169, 304)])
""", _says("-1 -1 -1 -1 -1 -1 -1 -1")),
    Attack("priority, affinity, limits of others", """
import resource
v = w["victim"]
tries(lambda: os.setpriority(os.PRIO_PROCESS, v, 19), lambda: os.sched_setaffinity(v, [0]),
      lambda: resource.prlimit(v, resource.RLIMIT_CPU, (1, 1)), lambda: os.setpriority(os.PRIO_USER, 0, 19),
      lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1)),
      lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)))
"""),
    Attack("SIGIO to the victim", """
import fcntl
r, x = os.pipe()
tries(lambda: fcntl.fcntl(r, fcntl.F_SETOWN, w["victim"]),
      lambda: fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK), lambda: os.write(x, b"x"))
time.sleep(0.2)
"""),
    Attack("output without an end of line", "os.write(1, b'x' * 3_000_000)",
           lambda ran: "" if ran.truncated and ran.exit_code == 0 else "not cut"),
    Attack("binary output", "os.write(1, bytes(range(256)) * 4); os.write(2, b'\\xff\\xfe\\x80')", _ended),
    Attack("close stdout early", "os.close(1); os.close(2); os.close(0); time.sleep(0.2)", _ended),
    Attack("never read stdin", "time.sleep(0.2)", _ended, {"stdin": "x" * 2_000_000}),
    Attack("a scratch folder that is hard to remove", """
os.symlink(w["folder"], "out"); os.mkdir("shut"); put("shut/x")
for _ in range(2000): os.mkdir("d"); os.chdir("d")
os.chdir(os.environ["HOME"])
for name in ("shut", "."):
    try: os.chmod(name, 0)
    except OSError: pass
""", _ended),
    Attack("many small files", """
n = 0
try:
    while n < 200_000: put(str(n)); n += 1
except OSError: pass
print(n)
time.sleep(0.6)
""", _stopped_or(20_000), {"seconds": 20.0}),
)  # fmt: skip


async def tried(sandbox: LocalSandbox, attack: Attack) -> list[str]:
    """What the attack achieved; empty when it held."""
    with World() as world:
        argv = (sys.executable, "-I", "-S", "-c", PRELUDE + attack.code, world.facts())
        ran = await sandbox.run(Job(argv, **attack.settings))  # pyright: ignore[reportArgumentType]
        got = world.harm()
        if world.token in ran.stdout + ran.stderr:
            got.append("it read the secret or opened a socket")
        if attack.holds(ran):
            got.append(attack.holds(ran))
        return got


async def table(names: list[str]) -> dict[str, dict[str, str]]:
    """By attack and level: "held", or what it did."""
    sandboxes = {name: LocalSandbox(level=name) for name in names}
    return {
        attack.name: {name: "; ".join(await tried(box, attack)) or "held" for name, box in sandboxes.items()}
        for attack in ATTACKS
    }


def main() -> None:
    names = [level.name for level in LEVELS if level.limits and not problem(level)]
    if "--strict" in sys.argv:
        names = [name for name in names if name in {level.name for level in LEVELS[LEVELS.index(STRICT) :]}]
    rows = asyncio.run(table(names))
    if "--json" in sys.argv:
        print(json.dumps(rows))
        return
    print("| attack |", " | ".join(names), "|\n|---|" + "---|" * len(names))
    for attack, row in rows.items():
        print(f"| {attack} |", " | ".join(row[name].replace("\n", " ")[:120] for name in names), "|")


if __name__ == "__main__":
    main()
