"""The bounds of one call in a sandbox."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from taoloop.errors import ConfigError

Bound = Literal["time", "cpu", "memory", "processes", "output", "disk", "file_size"]
"""Which limit ended a program."""

MAX_SCRIPT_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """What one call may use; all its processes together, except `file_bytes` and `open_files`.

    `memory_bytes` bounds what is resident, temporary files included, and the address space of each process.
    `processes` counts threads too. `output_bytes` is kept of each of stdout and stderr, its beginning and its end;
    a program that prints more than `flow_bytes` is ended. `disk_bytes` and `files` are how much free space and how
    many free file entries the workspace's file system may lose meanwhile; temporary files have as much again.

    Raises:
        ConfigError: a bound is not a number above 0.
    """

    wall_s: float = 30.0
    cpu_s: float = 30.0
    memory_bytes: int = 2 * 1024**3
    processes: int = 64
    output_bytes: int = 100_000
    flow_bytes: int = 64 * 1024**2
    file_bytes: int = 64 * 1024**2
    disk_bytes: int = 256 * 1024**2
    files: int = 20_000
    open_files: int = 256

    def __post_init__(self) -> None:
        """Refuse what bounds nothing."""
        for field in fields(self):
            value = getattr(self, field.name)
            whole = not field.name.endswith("_s")
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not 0 < value < 2**62:
                raise ConfigError(
                    f"The sandbox's limit {field.name} is {value!r}.",
                    hint=f"It must be a {'whole ' if whole else ''}number above 0.",
                )
