"""What strategies write into a run without a model: outcomes of calls, answers and reasons, in the run's language."""

from __future__ import annotations

from taoloop.core.text import TextCatalog

TEXTS = TextCatalog(
    "strategies",
    {
        # answers of people
        "refused": "A person refused this action: {note}.",
        "timed_out_approval": "Nobody answered in time: {note}.",
        "no_reason": "no reason was given",
        "refused_hint": "Do not ask for it again.",
        "preapproved": "tier {tier} was approved in advance",
        # calls without an outcome
        "happened_by_probe": "This call happened: the tool's own check found so afterwards. Its output was lost.",
        "happened_by_person": "This call happened: {by} says so. Its output was lost.",
        "no_outcome": "The process stopped while this call ran: its effect may or may not have happened. "
        "It was not repeated.",
        "timed_out": "This call gave no result in time: its effect may or may not have happened, or may still happen.",
        "unknown_hint": "Find out with a tool that only reads whether it happened before you try again.",
        "not_done": "This call did not happen: it was started {count} times and never finished.",
        "not_done_hint": "The same call would most likely end the same way; do it another way, or say so.",
        # runs that are one call
        "call_done": "The call was made.",
        "call_failed": "The call was not made, or failed: {code}: {message}",
        # runs that undo another one
        "undo": "Undo {call_id} of run {run_id}.",
        "undo_done": "The plan was carried out to its end; calls undone: {count}.",
        "undo_failed": "{call_id} of run {run_id} was not undone: {why} The entries after it in the plan were not"
        " carried out.",
        "undo_resumed": "The calls in progress when the process ended are settled; the rest needs a new plan.",
    },
)


def preapproval_note(language: str, tier: str | None) -> str:
    """The note of an approval that the operator gave in advance, for all calls of a tier."""
    return TEXTS.text(language, "preapproved", tier=tier or "destructive")
