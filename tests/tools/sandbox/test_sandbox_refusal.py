"""Without a sandbox nothing is run: these need no bubblewrap, and no Linux but where they say so."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from taoloop.core.cards.card_lint import lint
from taoloop.errors import ConfigError, ToolError, UnknownName
from taoloop.tools.builtin.catalog import builtin_tools, offered_tool
from taoloop.tools.builtin.commands import COMMAND_TOOLS, command_tools
from taoloop.tools.sandbox.confinement import SandboxLimits, checked_readable, find_python, seccomp_filter
from taoloop.tools.sandbox.process import BoundedOutput
from taoloop.tools.sandbox.sandbox import Sandbox, probe_sandbox, require_sandbox
from taoloop.tools.tool import Tool, ToolContext

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has bubblewrap")


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """A place for a program that is called bwrap and is none."""
    return tmp_path / "bwrap"


def make(fake: Path, script: str) -> str:
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    return str(fake)


def call(tool: Tool, **args: str) -> object:
    return asyncio.run(tool.invoke(tool.prepare(args).values, ToolContext()))


def test_without_bubblewrap_the_error_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match="no sandbox on this machine") as caught:
        require_sandbox("/nowhere/bwrap")
    assert "apt install bubblewrap" in caught.value.hint


@pytest.mark.parametrize("name", COMMAND_TOOLS)
def test_without_bubblewrap_a_call_is_refused_and_nothing_runs(name: str, tmp_path: Path) -> None:
    tool = command_tools(Sandbox(tmp_path, program="/nowhere/bwrap"))[name]
    (argument,) = tool.card.required
    with pytest.raises(ToolError) as caught:
        call(tool, **{argument: f"touch {tmp_path}/ran" if name == "run_command" else "open('ran', 'w')"})
    assert caught.value.code == "no_sandbox"
    assert not (tmp_path / "ran").exists()


@LINUX
def test_a_kernel_that_refuses_namespaces_is_told_in_its_own_words(fake: Path) -> None:
    program = make(fake, "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    probe = probe_sandbox(program)
    assert probe.program is None
    assert "No permissions to create new namespace" in probe.reason
    assert not probe.reason.startswith("bwrap")


@LINUX
def test_a_bubblewrap_that_does_not_make_a_sandbox_runs_nothing(fake: Path, tmp_path: Path) -> None:
    """Such as one that ignores its options and says that all went well."""
    ran = tmp_path / "ran"
    program = make(fake, f'while [ "$1" != -- ]; do shift; done; shift; "$@"; touch {ran}.probe; exit 0')
    sandbox = Sandbox(tmp_path, program=program)
    with pytest.raises(ToolError) as caught:
        asyncio.run(sandbox.run_command(f"touch {ran}"))
    assert caught.value.code == "no_sandbox"
    assert not ran.exists()


@LINUX
def test_a_refusal_is_not_remembered(fake: Path) -> None:
    """So a sandbox that was installed since is found."""
    assert "first" in probe_sandbox(make(fake, "echo first >&2; exit 1")).reason
    assert "second" in probe_sandbox(make(fake, "echo second >&2; exit 1")).reason


@LINUX
def test_naming_a_command_tool_where_nothing_is_installed_is_a_clear_error() -> None:
    code = (
        "from taoloop.tools.builtin.catalog import builtin_tools, offered_tool\n"
        "from taoloop.errors import ConfigError\n"
        "try:\n    offered_tool('run_python', builtin_tools())\n"
        "except ConfigError as error:\n    print(error)\n"
        "print(offered_tool('calculator', builtin_tools()).name)"
    )
    env = {**os.environ, "PATH": "/nowhere"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert out.startswith("The tool 'run_python' cannot be offered. There is no sandbox on this machine: ")
    assert "bubblewrap is not installed" in out
    assert out.splitlines()[-1] == "calculator"


def test_an_unknown_tool_is_not_offered() -> None:
    with pytest.raises(UnknownName, match="no tool called 'run_perl'") as caught:
        offered_tool("run_perl", builtin_tools())
    assert "run_python" in caught.value.known


@pytest.mark.parametrize(
    ("network", "workspace", "says"),
    [
        (False, None, "It has no network and can change only an empty folder"),
        (True, None, "It has the machine's network"),
        (False, "w", "can change the files of the workspace"),
    ],
)
def test_the_cards_say_what_a_program_may_do(network: bool, workspace: str | None, says: str) -> None:
    limits = SandboxLimits(wall_s=7, processes=9)
    tools = command_tools(Sandbox(workspace, network=network, limits=limits))
    for tool in (tools[name] for name in COMMAND_TOOLS):
        assert says in tool.card.purpose
        assert "At most 7 s" in tool.card.purpose
        assert "9 processes" in tool.card.purpose
        assert tool.card.tier == "write"
        assert tool.card.egress is network
        assert tool.card.timeout_s > limits.wall_s
        assert list(tool.card.parameters) in (["code", "session"], ["command"])  # no network and no limit
        assert tool.card.can_be_undone is (workspace is not None and not network)


@pytest.mark.parametrize("name", COMMAND_TOOLS)
def test_the_cards_are_whole(name: str) -> None:
    card = builtin_tools()[name].card
    assert all((card.use_when, card.avoid_when, card.errors, card.examples, card.output_schema))
    assert [finding.code for finding in lint(card) if finding.field != "name"] == []


@pytest.mark.parametrize("script", ["", " \n", "print('\0')", "\ud800", "#" * 1_000_001])
def test_what_is_no_program_is_refused(script: str) -> None:
    with pytest.raises(ToolError) as caught:
        asyncio.run(Sandbox(program="/nowhere/bwrap").run_command(script))
    assert caught.value.code == "bad_script"


@pytest.mark.parametrize("limit", [{"wall_s": 0}, {"processes": -1}, {"memory_bytes": 1.5}, {"cpu_s": float("nan")}])
def test_a_limit_that_bounds_nothing_is_refused(limit: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(limit))):
        SandboxLimits(**limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("folder", ["/", "/usr", "/proc", "/nowhere/at/all"])
def test_a_folder_that_cannot_be_shown_is_refused(folder: str) -> None:
    with pytest.raises(ConfigError, match="cannot show"):
        checked_readable([folder])


def test_an_interpreter_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no program"):
        find_python(tmp_path / "python3")


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_the_root_folder_is_no_workspace() -> None:
    with pytest.raises(ConfigError, match="no folder for this"):
        asyncio.run(Sandbox("/").run_command("true"))


def test_an_output_keeps_its_beginning_and_its_end_within_its_bound() -> None:
    kept = BoundedOutput(10)
    kept.add(b"short")
    assert (kept.text(), kept.is_cut) == ("short", False)
    for _ in range(300):
        kept.add(b"x" * 1_000)
    kept.add(b"theend")
    assert kept.is_cut
    assert kept.text() == "short\n[… 300,001 bytes left out …]\nheend"
    assert kept.total == 300_011


def test_an_output_that_is_no_utf8_can_be_read() -> None:
    kept = BoundedOutput(10)
    kept.add(b"a\xff")
    assert kept.text() == "a\ufffd"


Program = list[tuple[int, int, int, int]]


def judge(program: Program, arch: int, number: int, *args: int) -> int:
    """What the kernel would do with a call: the verdict of a filter, followed step by step."""
    data = struct.pack("<iIQ6Q", number, arch, 0, *(*args, 0, 0, 0, 0, 0, 0)[:6])
    at = loaded = 0
    while True:
        code, yes, no, value = program[at]
        at += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif code == 0x06:
            return value
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            at += yes if holds else no


ALLOW, KILL = 0x7FFF0000, 0x80000000
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}


def refusal(code: int) -> int:
    return 0x00050000 | code


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_the_filter_refuses_what_it_names_and_nothing_else(machine: str) -> None:
    raw = seccomp_filter(network=False, machine=machine)
    assert raw is not None
    program = [struct.unpack_from("=HBBI", raw, at) for at in range(0, len(raw), 8)]
    arch, x86 = ARCHITECTURES[machine], machine == "x86_64"

    def verdict(on_x86: int, elsewhere: int, *args: int) -> int:
        return judge(program, arch, on_x86 if x86 else elsewhere, *args)

    assert verdict(101, 117) == refusal(errno.EPERM)  # ptrace
    assert verdict(165, 40) == refusal(errno.EPERM)  # mount
    assert verdict(435, 435) == refusal(errno.ENOSYS)  # clone3
    assert verdict(56, 220, 0x10000011) == refusal(errno.EPERM)  # clone with CLONE_NEWUSER
    assert verdict(56, 220, 0x01200011) == ALLOW  # clone as fork does it
    assert verdict(16, 29, 0, 0x5412) == refusal(errno.EPERM)  # ioctl TIOCSTI
    assert verdict(16, 29, 0, 0xFFFFFFFF00005412) == refusal(errno.EPERM)  # the kernel looks at the low half alone
    assert verdict(16, 29, 0, 0x5401) == ALLOW  # ioctl TCGETS
    assert verdict(91, 52, 0, 0o4755) == refusal(errno.EPERM)  # fchmod
    assert verdict(91, 52, 0, 0o755) == ALLOW
    assert verdict(257, 56, 0, 0, 0o101, 0o4755) == refusal(errno.EPERM)  # openat that makes a file
    assert verdict(257, 56, 0, 0, 0, 0o4755) == ALLOW  # openat of one that exists: the mode means nothing
    for family in (1, 2, 10, 16):
        assert verdict(41, 198, family, 1, 0) == ALLOW  # socket
    for family in (0, 3, 17, 38, 40, 44):
        assert verdict(41, 198, family, 1, 0) == refusal(errno.EAFNOSUPPORT)
    assert verdict(0, 63, 0, 0, 0) == ALLOW  # read
    assert judge(program, 0x40000003, 1) == KILL  # the calls of i386
    if x86:
        assert judge(program, arch, 0x40000000 | 101) == KILL  # those of x32
    shared = seccomp_filter(network=True, machine=machine)
    assert shared is not None
    with_network = [struct.unpack_from("=HBBI", shared, at) for at in range(0, len(shared), 8)]
    socket = 41 if x86 else 198
    assert judge(with_network, arch, socket, 1, 1, 0) == refusal(errno.EAFNOSUPPORT)
    assert judge(with_network, arch, socket, 2, 1, 0) == ALLOW


def test_a_machine_whose_calls_are_not_known_has_no_filter() -> None:
    assert seccomp_filter(network=False, machine="sparc64") is None
