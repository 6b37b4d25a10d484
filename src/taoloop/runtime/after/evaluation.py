"""What people make of a run that has ended: it is marked right or wrong, and lessons are drawn from it or dropped.

The lesson is a reply of the run's model, in the run's own trace (`taoloop.runtime.lessons`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.core.decision import Answer
from taoloop.core.events import Fact, Noted, Resumed
from taoloop.core.human_input import Marked, MarkVerdict
from taoloop.core.text import replace_surrogates
from taoloop.core.trace import Trace
from taoloop.core.views.steps import DROPPED_LESSON, EVALUATION
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError
from taoloop.journals.base import Journal
from taoloop.runtime.approvals.inbox import AnswerRecorded, add_facts, person_name
from taoloop.runtime.engine.clock import Clock
from taoloop.runtime.lessons import lesson_in
from taoloop.strategies import get_strategy

if TYPE_CHECKING:
    from taoloop.runtime.bound_agent import BoundAgent


async def mark_run(
    journal: Journal,
    run_id: str,
    verdict: MarkVerdict,
    *,
    by: str = "user",
    note: str = "",
    authenticated: str = "",
    clock: Clock | None = None,
) -> AnswerRecorded:
    """Record that a person holds the outcome of a finished run for right or wrong; `note` says why.

    The run stays as it is, and no model reads the mark. A later mark of the same person replaces this one in views
    (`taoloop.core.views.marks`). `authenticated` as in `ApprovalAnswer`; `clock` is by default the machine's.

    Raises:
        RunNotFound: the journal has no such run.
        ConfigError: it has not ended.
    """
    text = replace_surrogates(note.strip())
    fact = Marked(verdict=verdict, by=person_name(by), note=text, authenticated=authenticated)

    def decide(trace: Trace) -> list[Fact]:
        if trace.finished is None:
            raise ConfigError(f"Run {run_id} has not ended, so it cannot be marked.", hint="Mark it when it has ended.")
        return [fact]

    return await add_facts(journal, run_id, decide, clock, None)


async def learn_from(
    bound: BoundAgent, journal: Journal, run_id: str, why: str, *, by: str = "user", authenticated: str = ""
) -> Result:
    """Have a lesson written of a completed run whose answer is wrong. `why` is what somebody found wrong with it.

    The answer stays as it is; the reason of the run says that it was judged wrong. A crash costs at most the reply.

    Raises:
        RunNotFound: the journal has no such run.
        ConfigError: the run is not completed, keeps no lessons, or `why` is empty.
        RunHeld: a process is at work on it.
    """
    note = Noted(
        by=person_name(by), about=EVALUATION, text=replace_surrogates(why.strip()), authenticated=authenticated
    )

    def decide(trace: Trace) -> list[Fact]:
        if not note.text:
            raise ConfigError("It is not said what is wrong with the answer.", hint="Say it in a text.")
        _require_lessons(trace)
        return [Resumed(limits=trace.limits, reason="evaluation"), note]

    recorded = await add_facts(journal, run_id, decide, bound.settings.clock, bound.redactor)
    trace = recorded.trace
    return await bound.continue_run(journal, trace, limits=trace.limits, at=len(trace))


async def drop_lesson(
    journal: Journal, run_id: str, *, by: str = "user", authenticated: str = "", clock: Clock | None = None
) -> AnswerRecorded:
    """Drop the lesson of a run: no later run reads it. What was recorded stays, also in runs that have read it.

    Raises:
        RunNotFound: the journal has no such run.
        ConfigError: it has no lesson.
        RunHeld: a process is at work on it.
    """
    note = Noted(by=person_name(by), about=DROPPED_LESSON, text="", authenticated=authenticated)

    def decide(trace: Trace) -> list[Fact]:
        if trace.started is None or lesson_in(trace) is None:
            raise ConfigError(f"Run {run_id} has no lesson.", hint="List them: tao lessons.")
        return [note]

    return await add_facts(journal, run_id, decide, clock, None)


def _require_lessons(trace: Trace) -> None:
    run_id = trace.run_id
    if trace.started is None or trace.finished is None or trace.finished.status != "completed":
        raise ConfigError(
            f"Run {run_id} is not completed.",
            hint="Only an answer can be judged; a run that reached a limit has its lesson already.",
        )
    if not getattr(get_strategy(trace.agent.strategy), "lessons", 0) or not isinstance(trace.answer, Answer):
        raise ConfigError(
            f"Run {run_id} keeps no lessons: its strategy is {trace.agent.strategy}.",
            hint="Run the task with the strategy reflect:lessons=N.",
        )
