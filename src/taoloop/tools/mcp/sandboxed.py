"""A server's program in the sandbox: what bubblewrap is started with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from taoloop.errors import ConfigError
from taoloop.tools.sandbox.limits import SandboxLimits
from taoloop.tools.sandbox.mounts import GROUP, PASSWD, WORKSPACE, SandboxMounts, checked_readable
from taoloop.tools.sandbox.sandbox import require_sandbox
from taoloop.tools.sandbox.seccomp import seccomp_filter

if TYPE_CHECKING:
    from taoloop.tools.mcp.settings import McpSandbox

_OWN = ("PATH", "HOME", "TMPDIR")  # the sandbox has its own


def sandboxed_command(
    argv: Sequence[str], sandbox: McpSandbox, env: Mapping[str, str], stack: ExitStack
) -> tuple[list[str], list[int], dict[str, str]]:
    """The command line that runs `argv` in the sandbox, the descriptors that it takes, and its environment.

    The descriptors are closed with `given`. Variables go through one of them, so that no list of processes shows them.

    Raises:
        ConfigError: there is no sandbox on this machine, or a folder cannot be shown.
    """
    program = require_sandbox().program or ""
    workspace = None if sandbox.workspace is None else sandbox.workspace.absolute()
    if workspace is not None and not workspace.is_dir():
        raise ConfigError(f"The workspace {str(workspace)!r} is no folder.", hint="Make it, or name another.")
    house = SandboxMounts(
        workspace=workspace,
        readable=checked_readable(sandbox.readable),
        network=sandbox.network,
        scratch_bytes=SandboxLimits().disk_bytes,
    )
    passwd, group, nothing = (_holding(data, stack) for data in (PASSWD, GROUP, b""))
    options = house.options(marker=".ready", script=(nothing, "empty"), passwd=passwd, group=group)
    for name, value in env.items():
        if name not in _OWN:
            options += ["--setenv", name, value]
    fds = [passwd, group, nothing]
    if (rules := seccomp_filter(network=sandbox.network)) is not None:
        fds.append(_holding(rules, stack))
        options += ["--seccomp", str(fds[-1])]
    options += ["--chdir", WORKSPACE]
    fds.append(_holding(b"".join(os.fsencode(option) + b"\0" for option in options), stack))
    return [program, "--args", str(fds[-1]), "--", *argv], fds, {}


def _holding(data: bytes, stack: ExitStack) -> int:
    """A descriptor to read this from; a file in memory, for a pipe may be too small."""
    fd = os.memfd_create("taoloop-mcp") if hasattr(os, "memfd_create") else _pipe(data)
    stack.callback(os.close, fd)
    if hasattr(os, "memfd_create"):
        os.write(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _pipe(data: bytes) -> int:
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return reading
