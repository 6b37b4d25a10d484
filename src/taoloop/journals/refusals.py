"""The refusals that every stored journal has: who lost a run, which run is there already, which one is not.

`journal` is what the text names: the path of a file, or the address of a database without its password.
"""

from __future__ import annotations

from taoloop.core.stored_events import ChainError
from taoloop.errors import FenceLost, JournalTampered, RunExists, RunNotFound
from taoloop.journals.base import translate
from taoloop.translation import mark


def fence_lost(journal: object, run_id: str) -> FenceLost:
    """Another worker has acquired the run."""
    message = translate("{path}: run {run_id!r} was taken by another worker.", path=journal, run_id=run_id)
    return FenceLost(message, hint=translate("Stop working on it; nothing was written."))


def run_grew(journal: object, run_id: str) -> FenceLost:
    """The run does not have the number of events that the caller knows."""
    message = translate("{path}: run {run_id!r} has new events by now.", path=journal, run_id=run_id)
    return FenceLost(message, hint=translate("Another process is at work on it; nothing was written."))


def run_exists(journal: object, run_id: str) -> RunExists:
    """The id is that of a run already."""
    message = translate("{path}: there is a run {run_id!r} already.", path=journal, run_id=run_id)
    return RunExists(message, hint=translate("Choose another id, or resume that run."))


def run_missing(journal: object, run_id: str) -> RunNotFound:
    """There is no such run."""
    message = translate("{path}: there is no run {run_id!r}.", path=journal, run_id=run_id)
    return RunNotFound(message, hint=translate("`tao runs` lists those that exist."))


def run_tampered(journal: object, run_id: str, flaw: ChainError) -> JournalTampered:
    """Somebody edited the run: none may continue from a history that did not happen."""
    hint = mark("It cannot be continued. `tao verify {run_id}` lists what was found; restore a backup.")
    text = mark("{path}: run {run_id!r} was changed after it was written: {flaw}.")
    message = translate(text, path=journal, run_id=run_id, flaw=flaw.text)
    return JournalTampered(message, hint=translate(hint, run_id=run_id))
