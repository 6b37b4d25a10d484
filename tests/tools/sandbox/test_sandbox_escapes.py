"""Ways out of the sandbox and round its limits, each tried by a real program in it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import socket
import struct
from collections.abc import Awaitable
from pathlib import Path

import pytest

from taoloop.errors import ToolError
from taoloop.tools.sandbox.confinement import SandboxLimits, seccomp_filter
from taoloop.tools.sandbox.process import ProcessResult
from taoloop.tools.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
FILTERED = pytest.mark.skipif(seccomp_filter(network=False) is None, reason="no filter of calls for this architecture")

TRY = """
import ctypes, errno, os, socket, stat, sys
libc = ctypes.CDLL(None, use_errno=True)

def attempt(what, *args, **options):
    try:
        print("DONE", what(*args, **options))
    except BaseException as error:
        code = getattr(error, "errno", None)
        print(errno.errorcode.get(code, code) or type(error).__name__)

def call(number, *args):
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(arg) for arg in args))
    print("DONE" if result >= 0 else errno.errorcode[ctypes.get_errno()])
"""
SECRET = "kept outside"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file outside the workspace."""
    path = tmp_path / "outside" / "secret.txt"
    path.parent.mkdir()
    path.write_text(SECRET)
    return path


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The workspace."""
    path = tmp_path / "work"
    path.mkdir()
    return path


def bounded(**own: float) -> SandboxLimits:
    return SandboxLimits(**{"wall_s": 10.0, **own})  # type: ignore[arg-type]


def done(running: Awaitable[ProcessResult]) -> ProcessResult:
    async def wait() -> ProcessResult:
        return await running

    return asyncio.run(wait())


def tried(sandbox: Sandbox, code: str) -> list[str]:
    """What the attempts of a program came to, one a line."""
    ended = done(sandbox.run_python(TRY + code))
    assert (ended.exit_code, ended.stderr) == (0, ""), ended
    return ended.stdout.splitlines()


def all_gone(namespace: str) -> bool:
    """True if no process is in this pid namespace any more."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "ns" / "pid").readlink()) == namespace:
                state = (process / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":  # what is dead already and waits for the machine's first process
                    return False
        except OSError:
            continue
    return True


# Files


def test_nothing_can_be_written_outside_the_workspace(work: Path, secret: Path) -> None:
    places = [str(secret), str(secret.parent / "new"), "/new", "/usr/new", "/usr/bin/sh", "/etc/passwd", "/etc/new"]
    places += [
        "/dev/new",
        "/proc/sys/kernel/core_pattern",
        "/proc/sysrq-trigger",
        "/proc/self/oom_score_adj",
        "/sys/new",
    ]
    places += ["/sandbox/code.py", "/home/new", "/root/new", "/var/new", "/run/new", "/workspace/.taoloop/new"]
    lines = tried(Sandbox(work), f"for place in {places!r}:\n    attempt(open, place, 'w')")
    assert len(lines) == len(places)
    assert set(lines) <= {"EROFS", "ENOENT", "EACCES", "EPERM"}
    assert secret.read_text() == SECRET
    assert os.listdir(secret.parent) == ["secret.txt"]  # noqa: PTH208  # names


def test_nothing_of_the_machine_but_its_programs_can_be_read(work: Path, secret: Path) -> None:
    home = str(Path.home())
    places = [str(secret), "/etc/shadow", "/etc/sudoers", f"{home}/.ssh", f"{home}/.bashrc", home, "/root", "/home"]
    places += ["/var", "/run", "/sys", "/boot", "/mnt", "/opt", "/srv", "/proc/kcore", "/proc/kmsg", __file__]
    code = (
        f"for place in {places!r}:\n"
        "    attempt(os.listdir if os.path.isdir(place) else open, place)\n"
        "print(sorted(name for name in os.listdir('/') if not name.startswith(('.', 'lib', 'sbin'))))\n"
        "print(open('/etc/passwd').read().count(':x:'))"
    )
    *lines, root, users = tried(Sandbox(work), code)
    assert set(lines) <= {"ENOENT", "EACCES", "EPERM"}
    assert root == "['bin', 'dev', 'etc', 'proc', 'sandbox', 'tmp', 'usr', 'workspace']"
    assert users == "1"


def test_links_lead_nowhere_outside(work: Path, secret: Path) -> None:
    (work / "file").symlink_to(secret)
    (work / "folder").symlink_to(secret.parent)
    (work / "up").symlink_to("../outside")
    code = (
        "for place in ('file', 'folder/secret.txt', 'up/secret.txt', '../outside/secret.txt'):\n"
        "    attempt(open, place)\n    attempt(open, place, 'w')\n"
        f"attempt(os.link, {str(secret)!r}, 'hard')\n"
        "attempt(os.link, '/usr/bin/env', 'hard')\n"
        "attempt(os.rename, '.', '/tmp/moved')\n"
        "print(os.path.realpath('../..'), os.path.samefile('..', '/'))"
    )
    lines = tried(Sandbox(work), code)
    assert lines.pop() == "/ True"
    assert set(lines) <= {"ENOENT", "EXDEV", "EROFS", "EPERM", "EBUSY"}
    assert secret.read_text() == SECRET


def test_a_hard_link_that_somebody_made_before_is_a_file_of_the_workspace(work: Path, secret: Path) -> None:
    """Whoever puts a name for a file into the workspace has put the file there: stated, not hidden."""
    (work / "hard").hardlink_to(secret)
    assert tried(Sandbox(work), "attempt(open('hard').read)") == [f"DONE {SECRET}"]


def test_proc_shows_no_way_out(work: Path, secret: Path) -> None:
    code = (
        "for place in ('root', 'cwd', 'task/1/root'):\n"
        f"    attempt(open, f'/proc/1/{{place}}{secret}')\n"
        "print(sorted(os.listdir('/proc/1/root')) == sorted(os.listdir('/')))\n"
        "print(all(int(pid) < 50 for pid in os.listdir('/proc') if pid.isdigit()))\n"
        "attempt(open, '/proc/sys/kernel/core_pattern', 'r+')\n"
        "attempt(open, '/proc/self/mem', 'r+b', buffering=0)"
    )
    *ways, same, few, switch, _own_memory = tried(Sandbox(work), code)
    assert set(ways) <= {"ENOENT", "EACCES"}
    assert (same, few) == ("True", "True")
    assert switch in ("EROFS", "EACCES")


def test_the_backups_of_the_runtime_are_out_of_reach(work: Path) -> None:
    kept = work / ".taoloop" / "backup"
    kept.mkdir(parents=True)
    (kept / "a").write_text("before")
    code = (
        "print(os.listdir('.taoloop'))\n"
        "attempt(os.mkdir, '.taoloop/backup')\n"
        "attempt(os.rename, '.taoloop', 'other')\n"
        "attempt(os.rmdir, '.taoloop')"
    )
    assert tried(Sandbox(work), code) == ["[]", "EROFS", "EBUSY", "EBUSY"]
    assert (kept / "a").read_text() == "before"


def test_a_workspace_that_was_replaced_is_not_used(work: Path, secret: Path) -> None:
    sandbox = Sandbox(work)
    done(sandbox.run_command("true"))
    work.rename(work.with_name("moved"))
    work.symlink_to(secret.parent)
    with pytest.raises(ToolError) as caught:
        done(sandbox.run_command("cat secret.txt; touch ran"))
    assert caught.value.code == "sandbox_failed"
    assert "replaced" in caught.value.message
    assert not (secret.parent / "ran").exists()


@FILTERED
def test_no_file_gets_the_rights_of_its_owner(work: Path) -> None:
    """The workspace is the operator's: such a file would run with the operator's rights, outside too."""
    code = (
        "open('tool', 'w').close()\n"
        "for mode in (0o4755, 0o2755, 0o6755):\n"
        "    attempt(os.chmod, 'tool', mode)\n"
        "    attempt(os.fchmod, os.open('tool', os.O_RDONLY), mode)\n"
        "    attempt(os.open, f'made{mode}', os.O_CREAT | os.O_WRONLY, mode)\n"
        "    attempt(os.mknod, f'node{mode}', stat.S_IFREG | mode)\n"
        "attempt(os.mknod, 'disk', stat.S_IFBLK | 0o666, os.makedev(8, 0))\n"
        "attempt(os.chmod, 'tool', 0o755)"
    )
    *refused, allowed = tried(Sandbox(work), code)
    assert set(refused) == {"EPERM"}
    assert allowed == "DONE None"
    assert [path.name for path in work.iterdir() if path.stat().st_mode & 0o6000] == []


# This process: environment, descriptors, other processes


def test_the_environment_is_its_own(work: Path) -> None:
    code = (
        "print(sorted(os.environ))\n"
        "for pid in os.listdir('/proc'):\n"
        "    if pid.isdigit():\n"
        "        whole = open(f'/proc/{pid}/environ').read()\n"
        "        print(sorted({part.partition('=')[0] for part in whole.split(chr(0))} - set(os.environ) - {''}))"
    )
    own, *others = tried(Sandbox(work), code)
    known = {"HOME", "LANG", "LC_CTYPE", "PATH", "PWD", "PYTHONPATH", "TMPDIR"}
    assert set(eval(own)) <= known | {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}  # noqa: S307  # our own list
    assert set(others) == {"[]"}


def test_no_descriptor_is_inherited(work: Path, secret: Path) -> None:
    fds = [os.open(secret, os.O_RDONLY), os.open(secret.parent, os.O_RDONLY)]
    try:
        for fd in fds:
            os.set_inheritable(fd, True)
        code = (
            "for pid in (1, os.getpid()):\n"
            "    places = [f'/proc/{pid}/fd/{fd}' for fd in range(256)]\n"
            "    links = [os.readlink(place) for place in places if os.path.lexists(place)]\n"
            "    print(sorted({link.partition(':')[0] for link in links}))"
        )
        first, own = tried(Sandbox(work), code)
    finally:
        for fd in fds:
            os.close(fd)
    assert own == "['/dev/null', 'pipe']"
    assert first in ("['/dev/null', 'pipe']", "['/dev/null', 'anon_inode', 'pipe']")  # it tells bubblewrap the end


def test_other_processes_cannot_be_reached(work: Path) -> None:
    me = os.getpid()
    code = (
        f"attempt(os.kill, {me}, 9)\n"
        f"attempt(os.sched_setaffinity, {me}, [0])\n"
        f"attempt(os.pidfd_open, {me})\n"
        "os.kill(1, 9)\n"  # the first process of a namespace takes no such signal from inside
        "attempt(os.kill, -1, 15)\n"
        "print('still here')"
    )
    lines = tried(Sandbox(work), code)
    assert lines[:3] == ["ESRCH"] * 3
    assert lines[-1] == "still here"


def test_it_has_no_rights_and_can_get_none(work: Path) -> None:
    code = (
        "lines = dict(line.split(':\\t') for line in open('/proc/self/status').read().splitlines())\n"
        "print(*(lines[name].strip() for name in ('NoNewPrivs', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')))\n"
        "print(os.getuid(), os.geteuid(), os.getgid())\n"
        "attempt(os.setuid, 0)\n"
        "attempt(os.setgroups, [0])\n"
        "attempt(os.chown, '/workspace', 0, 0)\n"
        "attempt(os.chroot, '/tmp')\n"
        "attempt(socket.sethostname, 'x')\n"
        "attempt(os.nice, -5)\n"
        "print('EPERM' if libc.unshare(0x10000000) else 'DONE')"
    )
    rights, ids, *attempts = tried(Sandbox(work), code)
    assert rights == "1 " + " ".join(["0" * 16] * 4)
    assert ids == "65534 65534 65534"
    assert set(attempts) <= {"EPERM", "EINVAL", "EACCES", "ENOSPC"}, attempts


def test_a_set_user_id_program_gives_nothing(work: Path) -> None:
    found = [path for path in map(Path, ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount")) if path.exists()]
    script = (
        "id -u; for f in " + " ".join(map(str, found)) + "; do $f --help >/dev/null 2>&1; done; mount -t tmpfs x /tmp"
    )
    ended = done(Sandbox(work).run_command(script))
    assert ended.stdout == "65534\n"
    assert ended.exit_code != 0
    assert not done(Sandbox(work).run_command("grep -v nosuid /proc/self/mounts")).stdout


NEVER = {
    "x86_64": {
        "EPERM": (101, 165, 166, 155, 161, 272, 308, 310, 311, 321, 323, 298, 250, 248, 249, 304, 425, 428, 442)
    },
    "aarch64": {"EPERM": (117, 40, 39, 41, 51, 97, 268, 270, 271, 280, 282, 241, 219, 217, 218, 265, 425, 428, 442)},
}


@pytest.mark.skipif(platform.machine() not in NEVER, reason="no list of calls for this architecture")
def test_calls_that_lead_out_of_namespaces_are_refused(work: Path) -> None:
    """Trace, mount, namespaces, bpf, userfaultfd, perf, keys, handles, io_uring; then memory of nobody's."""
    never = NEVER[platform.machine()]["EPERM"]
    unseen = (319, 29, 240, 435, 437) if platform.machine() == "x86_64" else (279, 194, 180, 435, 437)
    lines = tried(Sandbox(work), f"for number in {never + unseen!r}:\n    call(number, 0, 0, 0, 0, 0)")
    assert lines == ["EPERM"] * len(never) + ["ENOSYS"] * len(unseen)


@FILTERED
def test_a_terminal_cannot_be_typed_into(work: Path) -> None:
    code = (
        "import fcntl\n"
        "for request in (0x5412, 0x541C):\n    attempt(fcntl.ioctl, 0, request, b'x')\n"
        "attempt(open, '/dev/tty')\n"
        "print(os.getsid(0) > 0)"
    )
    assert tried(Sandbox(work), code) == ["EPERM", "EPERM", "ENXIO", "True"]


def test_there_are_no_devices_but_the_harmless_ones(work: Path) -> None:
    harmless = {"null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts", "shm", "core"}
    harmless |= {"fd", "stdin", "stdout", "stderr"}
    (names,) = tried(Sandbox(work), "print(*os.listdir('/dev'))")
    assert set(names.split()) <= harmless


# The network


def test_a_service_of_this_machine_is_not_reached(work: Path) -> None:
    name = f"taoloop-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        for one in (server, abstract):
            one.setblocking(False)
        port = server.getsockname()[1]
        code = (
            f"attempt(socket.create_connection, ('127.0.0.1', {port}), timeout=2)\n"
            "attempt(socket.create_connection, ('192.0.2.1', 80), timeout=2)\n"
            "unix = socket.socket(socket.AF_UNIX)\n"
            f"attempt(unix.connect, chr(0) + {name!r})\n"
            f"attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto, b'x', ('127.0.0.1', {port}))\n"
            "attempt(socket.getaddrinfo, 'example.org', 80)\n"
            "print(*(name for _, name in socket.if_nameindex()))"
        )
        lines = tried(Sandbox(work), code)
        for one in (server, abstract):
            with pytest.raises(BlockingIOError):
                one.accept()
    assert lines[:3] == ["ECONNREFUSED", "ENETUNREACH", "ECONNREFUSED"]
    assert not lines[4].startswith("DONE")
    assert lines[5] == "lo"


@FILTERED
def test_with_the_network_the_service_is_reached_and_abstract_sockets_are_not(work: Path) -> None:
    name = f"taoloop-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        abstract.setblocking(False)
        code = (
            f"socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), timeout=5).sendall(b'hello')\n"
            "attempt(socket.socket, socket.AF_UNIX)\n"
            "attempt(socket.socketpair)"
        )
        lines = tried(Sandbox(work, network=True), code)
        server.settimeout(5)
        reached, _ = server.accept()
        with reached:
            assert reached.recv(5) == b"hello"
        with pytest.raises(BlockingIOError):
            abstract.accept()
    assert lines[0] == "EAFNOSUPPORT"
    assert lines[1].startswith("DONE")


@FILTERED
def test_sockets_that_no_namespace_holds_are_refused(work: Path) -> None:
    """Such as those to the host of a virtual machine (40), of the kernel's ciphers (38), raw packets (17)."""
    code = "for family in (3, 17, 38, 40, 44):\n    attempt(socket.socket, family, socket.SOCK_STREAM)"
    assert tried(Sandbox(work), code) == ["EAFNOSUPPORT"] * 5


# The limits


def test_a_fork_bomb_is_contained(work: Path) -> None:
    code = (
        "import os\nprint(os.readlink('/proc/self/ns/pid'), flush=True)\n"
        "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    )
    ended = done(Sandbox(work, limits=bounded(processes=20, wall_s=2)).run_python(code))
    assert ended.limit in ("processes", "time")  # where the kernel binds their number, nothing is left to be ended for
    assert all_gone(ended.stdout.splitlines()[0])


def test_threads_count_too(work: Path) -> None:
    code = (
        "import threading\nwait = threading.Event()\n"
        "while True:\n    threading.Thread(target=wait.wait, daemon=True).start()"
    )
    ended = done(Sandbox(work, limits=bounded(processes=20, wall_s=5)).run_python(code))
    assert ended.limit == "processes" or "can't start new thread" in ended.stderr


def test_the_memory_of_one_process_is_bounded(work: Path) -> None:
    ended = done(Sandbox(work, limits=bounded(memory_bytes=200_000_000)).run_python("bytearray(400_000_000)"))
    assert "MemoryError" in ended.stderr


def test_the_memory_of_all_processes_is_bounded(work: Path) -> None:
    code = (
        "import os, time\nprint(os.readlink('/proc/self/ns/pid'), flush=True)\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0:\n        held = bytearray(os.urandom(1)) * 80_000_000\n        time.sleep(60)\n"
        "time.sleep(60)"
    )
    ended = done(Sandbox(work, limits=bounded(memory_bytes=200_000_000)).run_python(code))
    assert ended.limit == "memory"
    assert all_gone(ended.stdout.splitlines()[0])


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])  # noqa: S108  # of the sandbox
def test_temporary_files_are_memory_and_bounded(work: Path, place: str) -> None:
    code = (
        f"import time\nfor n in range(100):\n    open(f'{place}/{{n}}', 'wb').write(bytes(4_000_000))\ntime.sleep(60)"
    )
    sandbox = Sandbox(work, limits=bounded(memory_bytes=150_000_000))
    assert done(sandbox.run_python(code)).limit == "memory"
    small = Sandbox(work, limits=bounded(disk_bytes=10_000_000))
    assert "No space left" in done(small.run_python(code)).stderr


def test_a_full_disk_is_not_reached(work: Path) -> None:
    code = "n = 0\nwhile True:\n    n += 1\n    open(f'f{n % 2_000}', 'wb').write(bytes(1_000_000))"
    ended = done(Sandbox(work, limits=bounded(disk_bytes=30_000_000)).run_python(code))
    assert ended.limit == "disk"
    assert sum(path.stat().st_size for path in work.iterdir() if path.is_file()) < 1_500_000_000


@pytest.mark.parametrize("place", ["/workspace", "/tmp"])  # noqa: S108  # of the sandbox
def test_the_number_of_files_is_bounded(work: Path, place: str) -> None:
    code = f"n = 0\nwhile True:\n    n += 1\n    open(f'{place}/{{n}}', 'w').close()"
    sandbox = Sandbox(work, limits=bounded(files=200, wall_s=5))
    assert done(sandbox.run_python(code)).limit in ("disk", "time")  # not every file system counts them


def test_one_file_is_bounded(work: Path) -> None:
    sandbox = Sandbox(work, limits=bounded(file_bytes=1_000_000))
    assert "File too large" in done(sandbox.run_python("open('f', 'wb').write(bytes(3_000_000))")).stderr
    assert done(sandbox.run_command("exec head -c 3000000 /dev/zero > g")).limit == "file_size"
    assert (work / "g").stat().st_size <= 1_000_000


def test_processor_time_is_bounded_over_all_processes(work: Path) -> None:
    one = "import os\nos.fork()\nwhile True:\n    pass"
    ended = done(Sandbox(work, limits=bounded(cpu_s=0.3)).run_python(one))
    assert ended.limit == "cpu"
    children = "while :; do sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'; done"
    assert done(Sandbox(work, limits=bounded(cpu_s=0.3)).run_command(children)).limit == "cpu"


def test_endless_output_is_ended_and_not_kept(work: Path) -> None:
    sandbox = Sandbox(work, limits=bounded(flow_bytes=2_000_000, output_bytes=1_000))
    for script in ("yes", "yes >&2"):
        ended = done(sandbox.run_command(script))
        assert ended.limit == "output"
        assert len(ended.stdout) + len(ended.stderr) < 2_000


def test_who_ignores_signals_ends_all_the_same(work: Path) -> None:
    code = (
        "import os, signal, time\nprint(os.readlink('/proc/self/ns/pid'), flush=True)\n"
        "for number in set(signal.valid_signals()) - {9, 19}:\n"
        "    try:\n        signal.signal(number, signal.SIG_IGN)\n    except OSError:\n        pass\n"
        "os.fork()\nos.setsid() if os.fork() == 0 else None\nwhile True:\n    time.sleep(60)"
    )
    ended = done(Sandbox(work, limits=bounded(wall_s=0.5)).run_python(code))
    assert (ended.limit, ended.exit_code) == ("time", None)
    assert all_gone(ended.stdout.splitlines()[0])


def test_a_daemon_does_not_outlive_the_call(work: Path) -> None:
    """Forked twice, in a session of its own, with its output closed: it ends with the script."""
    code = (
        "import os, time\nprint(os.readlink('/proc/self/ns/pid'), flush=True)\n"
        "reading, writing = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork():\n        os._exit(0)\n"
        "    os.closerange(0, 3)\n    os.write(writing, b'x')\n    time.sleep(60)\n"
        "os.read(reading, 1)"
    )
    ended = done(Sandbox(work).run_python(code))
    assert (ended.exit_code, ended.limit) == (0, None)
    assert all_gone(ended.stdout.splitlines()[0])


def test_the_limits_cannot_be_raised(work: Path) -> None:
    code = (
        "import resource as r\n"
        "for name in ('RLIMIT_AS', 'RLIMIT_CPU', 'RLIMIT_NPROC', 'RLIMIT_FSIZE', 'RLIMIT_NOFILE', 'RLIMIT_CORE'):\n"
        "    soft, hard = r.getrlimit(getattr(r, name))\n"
        "    attempt(r.setrlimit, getattr(r, name), (hard + 1, hard + 1))"
    )
    lines = tried(Sandbox(work), code)
    assert set(lines) <= {"EPERM", "ValueError"}, lines
    assert len(lines) == 6


def test_other_kinds_of_calls_end_the_program(work: Path) -> None:
    """`int 0x80` makes a call of i386, whose numbers mean something else."""
    if platform.machine() != "x86_64":
        pytest.skip("only x86_64 has a second set of calls")
    code = struct.pack("<BIBBB", 0xB8, 20, 0xCD, 0x80, 0xC3)  # mov eax, 20 (getpid); int 0x80; ret
    program = (
        "import ctypes, mmap\n"
        "page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
        f"page.write({code!r})\n"
        "address = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "print('made', ctypes.CFUNCTYPE(ctypes.c_int)(address)())"
    )
    ended = done(Sandbox(work).run_python(program))
    assert ended.exit_code in (128 + 31, 128 + 11)  # SIGSYS; SIGSEGV where the kernel knows no such calls
    assert "made" not in ended.stdout
