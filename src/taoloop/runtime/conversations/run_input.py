"""What a caller gives a run, checked before anything is stored: what is accepted can be stored and read again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from reprlib import repr as short_repr
from typing import Any, NamedTuple

from taoloop.core.agent_spec import Limits
from taoloop.core.attachments.files import Attachment
from taoloop.core.cards.questions import STARTED_BY
from taoloop.core.events import RunStarted
from taoloop.core.message import Message
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError
from taoloop.journals.base import Journal
from taoloop.models.base import DeltaListener
from taoloop.runtime.agent_settings import AgentSettings, Deps, Output
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.conversations.imported_history import read_history
from taoloop.runtime.conversations.input_checks import check_id, check_names, check_person
from taoloop.runtime.conversations.sessions import SESSION, next_turn, session_error
from taoloop.runtime.engine.attachment_sources import AttachmentSource, Task, read_attachments, split_task
from taoloop.runtime.engine.clock import new_run_id
from taoloop.runtime.runner import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInput:
    """The task of a run and the options that go with it (`Agent.run`)."""

    task: Task
    """What the agent is to do."""

    limits: Limits | None = None
    """Limits in place of the agent's own."""

    max_steps: int | None = None
    """Another limit of steps."""

    allow: Sequence[str] | None = None
    """The only tools that the run may call."""

    history: Sequence[Message | Mapping[str, Any]] = ()
    """Earlier turns from elsewhere."""

    after: str | None = None
    """The run that it continues."""

    run_id: str | None = None
    """Its id; None: a fresh one."""

    parent: str | None = None
    """The run around it."""

    images: Sequence[AttachmentSource] = ()
    """The images of the task, beside those that it has as parts."""

    user: str = ""
    """For whom the run is."""

    started_by: str = ""
    """Who asks for it."""

    session: str = ""
    """The conversation that it belongs to."""

    lessons_from: Sequence[str] = ()
    """Runs whose lessons it reads."""

    def __post_init__(self) -> None:
        """Refuse what could not be stored or used.

        Raises:
            ConfigError: says which option has what value, and what to write.
        """
        for name in ("run_id", "after", "parent"):
            if getattr(self, name) is not None:
                check_id(name, getattr(self, name))
        if self.session or not isinstance(self.session, str | None):
            check_id("session", self.session)
        check_person("user", self.user)
        check_person("started_by", self.started_by)
        if self.allow is not None:
            check_names("allow", self.allow)
        check_names("lessons_from", self.lessons_from)
        limits: object = self.limits  # whatever a caller without types passes
        if limits is not None and not isinstance(limits, Limits):
            raise ConfigError(f"The option limits is {short_repr(limits)}.", hint="Write limits=Limits(max_steps=…).")
        if sum(bool(source) for source in (self.after, self.history, self.session)) > 1:
            raise ConfigError(
                "A run was given more than one of `after`, `history` and `session`.",
                hint="Give one: `after` and `session` bring their history.",
            )


class PreparedRun(NamedTuple):
    """A run that can begin: nothing of it is stored yet."""

    trace: Trace
    """Its trace, which is empty."""

    started: RunStarted
    """Its first event."""

    attachments: Sequence[Attachment]
    """The images and files of task and history, with their bytes."""


async def begin_run(
    agent: AgentSettings[Deps, Output],
    run_input: RunInput,
    listener: Listener | None,
    on_delta: DeltaListener | None,
    deps: Deps | None,
) -> Result[Output]:
    """Begin a run of an agent in its journal with its `deps`, and drive it to its end or until it waits.

    Raises:
        ConfigError: something about the agent or the input is wrong; nothing was stored.
        ImageError, FileError, RunNotFound, RunNotAnswered, JournalError, ScriptUnused: as `Agent.run`.
    """
    for name, value in (("on_event", listener), ("on_delta", on_delta)):
        if value is not None and not callable(value):
            raise ConfigError(
                f"The option {name} is {short_repr(value)}, which cannot be called.", hint="Write a function."
            )
    bound = bind(agent)
    async with prepared_run(agent, run_input, recovers=agent.recover_on_start) as (journal, run):
        how = (journal, run.trace, run.started, run_input.lessons_from)
        options: dict[str, Any] = {"attachments": run.attachments, "listener": listener, "on_delta": on_delta}
        with session_error(run_input.session):
            return await bound.start(*how, deps=deps, **options)


@asynccontextmanager
async def prepared_run(
    agent: AgentSettings[Any, Any], run_input: RunInput, *, recovers: bool = False
) -> AsyncIterator[tuple[Journal, PreparedRun]]:
    """The journal of an agent, open as long as the block runs, and a run that can begin in it.

    `recovers`: what dead processes left of the agent's runs is resumed first, which the run may continue.

    Raises:
        ConfigError, ImageError, FileError, RunNotFound, RunNotAnswered, JournalError: as `begin_run`.
    """
    bound = bind(agent)
    task, parts = split_task(run_input.task)
    spec = bound.new_spec(task, run_input.limits, run_input.max_steps, run_input.allow)
    earlier = read_history(run_input.history)
    read_attachments(earlier.attachments, bound.redactor)  # none has a secret
    sources = (*parts, *run_input.images) if parts else run_input.images
    attachments = await bound.take_attachments(sources) if sources else ()
    after, run_id = run_input.after, run_input.run_id
    people = {"user": run_input.user, STARTED_BY: run_input.started_by, SESSION: run_input.session}
    async with bound.open_journal() as journal:
        if recovers:
            from taoloop.runtime.after.recovery import recover_on_start  # noqa: PLC0415  # few programs need it

            await recover_on_start(agent, journal)
        if run_input.session:
            after, run_id = await next_turn(journal, run_input.session, run_input.user, run_id)
        started = await bound.first_event(
            journal,
            task,
            spec,
            history=earlier.messages,
            after=after,
            parent=run_input.parent,
            attachments=attachments,
            labels={name: person for name, person in people.items() if person},
        )
        trace = Trace(run_id or new_run_id(agent.clock.now()))
        yield journal, PreparedRun(trace, started, (*attachments, *earlier.attachments))
