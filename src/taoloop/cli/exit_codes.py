"""Exit codes: one per status, and one per kind of error. The table of `tao --help` is made from this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.cli.ui.stdio import OutputError
from taoloop.errors import (
    FenceLost,
    JournalError,
    JournalTampered,
    ModelError,
    ReplayDiverged,
    RunExists,
    RunHeld,
    RunNotFound,
    ScriptUnused,
    TaoError,
)
from taoloop.translation import mark

if TYPE_CHECKING:
    from taoloop.core.events import Status  # for the types alone: `tao --help` does not load the core

OK = 0
FOUND = 1
USAGE = 2
SCRIPT_UNUSED = 10
JOURNAL = 11
TAMPERED = 12
NOT_UNDONE = 13
HELD = 14
THRESHOLD = 17
WORSE = 18
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143

OF_STATUS: dict[Status, int] = {
    "completed": OK,
    "max_steps_exceeded": 3,
    "budget_exceeded": 4,
    "unreadable": 5,
    "too_many_errors": 6,
    "repeated_action": 7,
    "waiting": 8,
    "model_failed": 9,
    "blocked": 15,
    "unsupported": 16,
    "stopped": INTERRUPTED,
}

_OTHERS: dict[int, str] = {
    FOUND: mark(
        "a finding of lint, doctor, replay, diff or eval --counterfactual; a tool that failed when called by hand;"
        " output that cannot be written; or an error inside taoloop"
    ),
    USAGE: mark("a wrong option, name, key or file; nothing was started"),
    SCRIPT_UNUSED: mark("completed, but the scripted model has replies left"),
    JOURNAL: mark("the database cannot be read or written"),
    TAMPERED: mark("the run was changed after it was written"),
    NOT_UNDONE: mark("something that the run did could not be undone"),
    HELD: mark("another process is working on the run; it was left alone"),
    THRESHOLD: mark("an evaluation does not meet a threshold of its suite"),
    WORSE: mark("an evaluation is worse than its baseline"),
    BROKEN_PIPE: mark("stopped, because nobody reads the output any more"),
    TERMINATED: mark("stopped by SIGTERM"),
}

TABLE: dict[int, str] = dict(sorted(({code: status for status, code in OF_STATUS.items()} | _OTHERS).items()))
"""Every exit code of `tao` and what it means."""


_OF_ERROR: dict[type[TaoError], int] = {
    ScriptUnused: SCRIPT_UNUSED,
    ReplayDiverged: FOUND,
    OutputError: FOUND,
    RunNotFound: USAGE,
    RunExists: USAGE,
    RunHeld: HELD,
    FenceLost: HELD,
    JournalTampered: TAMPERED,
    JournalError: JOURNAL,
    ModelError: OF_STATUS["model_failed"],
}


def exit_code_for(error: TaoError) -> int:
    """The exit code for an error that ends a command: that of its nearest class in the table."""
    return next((_OF_ERROR[kind] for kind in type(error).__mro__ if kind in _OF_ERROR), USAGE)
