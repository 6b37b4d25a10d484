"""Lessons of earlier attempts at the same task, and which of them a run reads.

Reflexion (Shinn et al., 2023) keeps what a model wrote about a failed attempt and shows it to the next one. Here a
lesson is a reply in the trace of its attempt, and nothing else is stored. A run reads the lessons once, when it starts,
and records them (`noted`), so a resume, a replay or a fork does not depend on lessons that were added or dropped since.

A lesson is a model's text, which may repeat what a stranger wrote: it is framed as untrusted, the run counts as one
that has read something untrusted, and no value in it is endorsed. It is read only by runs for the same person and key.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from taoloop.core.events import Fact, Finished, ModelReplied, Noted, Resumed, RunStarted
from taoloop.core.trace import Trace
from taoloop.core.views.steps import DROPPED_LESSON, LESSON
from taoloop.dialects.review_prompts import lesson_text, shorten_lesson
from taoloop.errors import ConfigError, RunPruned
from taoloop.journals.base import Journal, RunRow
from taoloop.journals.queries import RunQuery, has_queries, queries_of
from taoloop.prompts import load_prompts

MAX_SEARCHED = 500
"""How many of the newest runs of an agent are searched for attempts at the same task."""

_OWNER = ("key", "user", "account")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What an attempt left for the next one."""

    run_id: str
    """The attempt."""
    agent: str
    """The name of its agent."""
    task: str
    """Its task."""
    status: str
    """How it ended."""
    text: str
    """The lesson, which a model wrote."""


def lesson_in(trace: Trace) -> Lesson | None:
    """The lesson of a run; None if it has none, somebody dropped it, or the run went on after it."""
    text, has_ended = "", False
    for event in trace.events:
        match event.fact:
            case ModelReplied(purpose="lesson", text=reply):
                text = shorten_lesson(reply)
            case Finished():
                has_ended = True
            case Resumed() if has_ended:
                text, has_ended = "", False
            case Noted(about=about) if about == DROPPED_LESSON:
                text = ""
    if not text or trace.finished is None:
        return None
    return Lesson(run_id=trace.run_id, agent=trace.agent.name, task=trace.task, status=trace.finished.status, text=text)


async def find_lessons(
    journal: Journal, *, agent: str | None = None, task: str | None = None, limit: int = 50
) -> list[Lesson]:
    """The lessons of a journal, the newest first: of one agent, and of one task, whatever its case and spaces.

    The newest 500 runs (of the agent, if one is given) are searched.
    """
    lessons: list[Lesson] = []
    async for trace in _attempts(journal, agent, task):
        if (lesson := lesson_in(trace)) is not None:
            lessons.append(lesson)
        if len(lessons) >= limit:
            break
    return lessons


async def lesson_notes(journal: Journal, started: RunStarted, most: int, run_ids: Sequence[str] = ()) -> list[Fact]:
    """The lessons that a run is to read, as facts: those of `run_ids`, else the newest of its task, at most `most`.

    Raises:
        RunNotFound: there is no run of one of the ids.
        ConfigError: a run that was named has no lesson, or one that this run must not read.
    """
    lessons: list[Lesson] = []
    if run_ids:
        for run_id in dict.fromkeys(run_ids):
            trace = Trace(run_id, await journal.load(run_id))
            lesson = lesson_in(trace) if trace.started is not None else None
            if lesson is None or not _may_read(started, trace):
                raise ConfigError(
                    f"Run {run_id} has no lesson for this run.",
                    hint="List them: tao lessons. A lesson is written where an attempt with the strategy "
                    "reflect:lessons=N fails, and is read only by runs for the same person and key.",
                )
            lessons.append(lesson)
    else:
        async for trace in _attempts(journal, started.agent.name, started.task):
            lesson = lesson_in(trace) if _may_read(started, trace) else None
            if lesson is not None:
                lessons.insert(0, lesson)
            if len(lessons) >= most:
                break
    prompts = load_prompts(started.agent.language) if lessons else started.agent.prompts
    if "reflect_lessons" in started.agent.prompts.texts:
        prompts = started.agent.prompts
    return [
        Noted(by="guard", about=f"{LESSON}{lesson.run_id}", text=lesson_text(prompts, started.nonce, lesson.text))
        for lesson in lessons
    ]


async def _attempts(journal: Journal, agent: str | None, task: str | None) -> AsyncIterator[Trace]:
    """The runs that ended, the newest first."""
    wanted = None if task is None else _plain(task)
    for row in await _rows(journal, agent):
        if row.status in ("running", "waiting") or (wanted is not None and _plain(row.task) != wanted):
            continue
        try:
            trace = Trace(row.run_id, await journal.load(row.run_id))
        except RunPruned:  # removed a moment ago
            continue
        if trace.started is not None:
            yield trace


async def _rows(journal: Journal, agent: str | None) -> Sequence[RunRow]:
    if has_queries(journal):
        return (await queries_of(journal).find(RunQuery(agent=agent), limit=MAX_SEARCHED)).rows
    rows = await journal.runs(limit=MAX_SEARCHED)
    return [row for row in rows if agent is None or row.agent == agent]


def _may_read(started: RunStarted, attempt: Trace) -> bool:
    """Whether a run may read the lesson of an attempt: it is for the same person, and shows its model no less."""
    earlier = attempt.started
    if earlier is None:
        return False
    is_same = all(started.labels.get(name, "") == earlier.labels.get(name, "") for name in _OWNER)
    own = started.agent.policy.observations
    return is_same and (own == "shown" or earlier.agent.policy.observations == own)


def _plain(task: str) -> str:
    return " ".join(task.casefold().split())
