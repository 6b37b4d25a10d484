"""Which of the texts that a run begins with people wrote, and which of them say what is to be done. Pure."""

from __future__ import annotations

from taoloop.core.events import RunStarted


def is_from_person(started: RunStarted) -> bool:
    """Whether a person wrote the task: not where a model did that had read untrusted text (an inner run).

    A hand-off passes the task on as it is; then it is the same person's.
    """
    if not started.tainted:
        return True
    has_own_task = started.parent is None or bool(started.handed_over_by)
    return has_own_task and (not started.trusted or started.task in started.trusted)


def requests_of(started: RunStarted) -> tuple[str, ...]:
    """The texts that say what is to be done now: an agent that takes over has the user's task, and no earlier one."""
    if started.handed_over_by and started.task in started.trusted:
        return (started.task,)
    return started.trusted or (started.task,)


def texts_of_people(started: RunStarted) -> tuple[str, ...]:
    """What people wrote before a run began."""
    turns = (message.content for message in started.history if message.role == "user")
    return started.trusted or (*filter(None, (started.user_instructions,)), *turns, started.task)
