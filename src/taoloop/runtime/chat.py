"""Conversations: a chain of runs, each of which sees the tasks and answers of those before it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Generic, Literal, Protocol, Unpack, get_args, overload

from typing_extensions import TypeVar

from taoloop.core.events import AnyEvent, Fact, Finished
from taoloop.core.handles import mask_handles
from taoloop.core.message import Message
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError, JournalTampered, RunNotAnswered
from taoloop.journals.base import Journal
from taoloop.policy import tainted
from taoloop.policy.marked_text import mark_untrusted
from taoloop.runtime.conversations.exported_history import MessageForm, export_history
from taoloop.runtime.conversations.input_checks import check_id, check_person
from taoloop.runtime.conversations.sessions import session_state
from taoloop.runtime.engine.attachment_sources import Task
from taoloop.runtime.engine.clock import Clock, new_run_id
from taoloop.runtime.run_options import ResumeOptions, TurnOptions
from taoloop.runtime.texts import TEXTS
from taoloop.runtime.threads import run_sync

Deps = TypeVar("Deps", default=Any)
"""What the program gives each run."""

Output = TypeVar("Output", default=Any)
"""The value that an answer is."""

Output_co = TypeVar("Output_co", default=Any, covariant=True)

MAX_TURNS = 20
"""The most earlier turns (a task and its answer) that a run sees."""

MAX_CHARS = 32_000
"""The most characters that the earlier turns have together."""

MAX_MESSAGE_CHARS = 8_000
"""The most characters of one earlier message that are shown; the trace of its run has all of them."""


async def load_history(journal: Journal, run_id: str, *, handles: bool = False) -> tuple[tuple[Message, ...], bool]:
    """The conversation that a run after `run_id` sees: the turns that `run_id` saw, its task and its answer.

    The second value is whether untrusted text had a part in it. With `handles` the run's model must read none: it sees
    an answer without the values of its handles, and no answer of a model that had read observations. The task of a run
    inside another one is marked as somebody else's text: a model wrote it, so it endorses nothing.

    Raises:
        RunNotFound: the journal has no such run.
        RunNotAnswered: it has no answer to continue from.
    """
    if (flaw := (await journal.verify(run_id)).first) is not None:
        raise JournalTampered(f"The run {run_id} was changed after it was written: {flaw.text}.")
    trace = Trace(run_id, await journal.load(run_id))
    if trace.started is None:
        raise RunNotAnswered(f"The run {run_id} never began, so nothing can follow it.", hint="Start a new run.")
    if trace.finished is None or trace.finished.answer is None:
        hint = "Resume it first." if trace.status != "completed" else "Start a new run."
        if trace.started.after is not None and trace.finished is not None:
            hint = f"Resume it first, or continue after {trace.started.after}."
        raise RunNotAnswered(f"The run {run_id} has no answer ({trace.status}), so nothing can follow it.", hint=hint)
    language = trace.agent.language
    used_handles = trace.agent.policy.observations == "handles"
    earlier, answer = trace.started.history, trace.finished.answer
    if handles:
        answer = _without_values(trace)
        if not used_handles:
            hidden = TEXTS.text(language, "answer_hidden")
            earlier = tuple(each if each.role == "user" else replace(each, content=hidden) for each in earlier)
    inner = trace.started.parent is not None  # its task was written by a model
    task, nonce = _shortened(trace.task, language), trace.started.nonce
    turn = (
        Message(
            role="user",
            content=mark_untrusted(task, nonce) if inner else task,
            images=trace.started.images,
            files=trace.started.files,
        ),
        Message(role="assistant", content=_shortened(answer, language)),
    )
    untrusted = tainted(trace) or inner or (used_handles and not handles)  # the answer may contain values
    return truncate_history((*earlier, *turn), language), untrusted


def has_untrusted_turns(history: Sequence[Message], *, handles: bool) -> bool:
    """Whether a history of messages contains any that are not the user's.

    Raises:
        ConfigError: it does, and the run's model must not read them (`handles`).
    """
    foreign = any(message.role != "user" for message in history)
    if foreign and handles:
        raise ConfigError(
            "The history has messages that are not the user's, which this agent's model must not read.",
            hint="Continue with `after`, or give only the user's messages.",
        )
    return foreign


def _without_values(trace: Trace) -> str:
    """The answer as the model wrote it, with its handles masked; a placeholder if the model had read observations."""
    language = trace.agent.language
    if trace.agent.policy.observations != "handles" or trace.answer is None:
        return TEXTS.text(language, "answer_hidden")
    return mask_handles(trace.answer.text, TEXTS.text(language, "value_hidden"))


def truncate_history(history: Sequence[Message], language: str = "en") -> tuple[Message, ...]:
    """The latest turns within the bounds, with a note in the oldest of them if earlier ones were left out.

    A history beyond the bounds is reduced to half of them at once: then the next turns do not change the beginning of
    the prompt, nor invalidate the provider's cache. The last turn always stays.
    """
    turns = _turns(history)
    if _fits(turns, MAX_TURNS, MAX_CHARS):
        return tuple(history)
    while len(turns) > 1 and not _fits(turns, MAX_TURNS // 2, MAX_CHARS // 2):
        turns = turns[1:]
    first, *rest = [message for turn in turns for message in turn]
    if not first.content.startswith(tuple(TEXTS.text(each, "turns_omitted") for each in ("en", "zh"))):
        first = replace(first, content=TEXTS.text(language, "turns_omitted") + first.content)
    return (first, *rest)


def _turns(history: Sequence[Message]) -> list[list[Message]]:
    """The messages by turn: each turn begins with a message of the user."""
    turns: list[list[Message]] = []
    for message in history:
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


def _fits(turns: list[list[Message]], at_most: int, chars: int) -> bool:
    return len(turns) <= at_most and sum(len(message.content) for turn in turns for message in turn) <= chars


def _shortened(text: str, language: str) -> str:
    if len(text) <= MAX_MESSAGE_CHARS:
        return text
    return text[:MAX_MESSAGE_CHARS] + TEXTS.text(language, "message_cut", n=len(text) - MAX_MESSAGE_CHARS)


class ChatAgent(Protocol[Output_co]):
    """The methods of an agent that a conversation uses; an `Agent` has them."""

    @property
    def clock(self) -> Clock:
        """The clock that the ids of runs are made from."""

    def open_journal(self) -> AbstractAsyncContextManager[Journal]:
        """The journal of its runs (`Agent.open_journal`)."""

    async def run(self, task: Task, *args: Any, **options: Any) -> Result[Output_co]:
        """Run a task (`Agent.run`)."""

    def run_sync(self, task: Task, *args: Any, **options: Any) -> Result[Output_co]:
        """Run a task, for code that is not async."""

    async def resume(self, run_id: str, *args: Any, **options: Any) -> Result[Output_co]:
        """Resume a run (`Agent.resume`)."""

    def resume_sync(self, run_id: str, *args: Any, **options: Any) -> Result[Output_co]:
        """Resume a run, for code that is not async."""


class Chat(Generic[Deps, Output]):
    """A conversation with one agent: each run continues the last one that has an answer.

    `after` is that run's id, or None before the first. A run that ended without an answer is not part of the
    conversation; one that waits or was stopped is `open`, and must be resumed before the next task. `deps` are those of
    each run, unless a turn is given others.

    With a `session` the conversation has that id in the journal: it goes on where any process left it, and each turn
    looks there for what `after` and `open` are. Sessions of two users are two, also with the same id. `user` is for
    whom its runs are.

    Raises:
        ConfigError: `after`, `session` or `user` is no id or name, or both `after` and `session` are given.
    """

    def __init__(
        self,
        agent: ChatAgent[Output],
        after: str | None = None,
        *,
        session: str = "",
        user: str = "",
        deps: Deps | None = None,
    ) -> None:
        if session and after is not None:
            raise ConfigError(
                "A conversation was given `after` and `session`.", hint="Give one: the session finds its last run."
            )
        if after is not None:
            check_id("after", after)
        if session != "":
            check_id("session", session)
        check_person("user", user)
        self.agent, self.after, self.session, self.user, self.deps = agent, after, session, user, deps
        self.open: str | None = None
        self._next_id: str | None = None

    async def run(self, task: Task, *, deps: Deps | None = None, **options: Unpack[TurnOptions]) -> Result[Output]:
        """The next turn; `options` are those of `Agent.run`.

        Raises:
            RunNotAnswered: the last run waits for a person or was stopped: `resume` continues it.
            RunExists: another turn of the session began at the same moment.
        """
        await self._find()
        return await self.agent.run(task, **self._next(options, deps))

    def run_sync(self, task: Task, *, deps: Deps | None = None, **options: Unpack[TurnOptions]) -> Result[Output]:
        """`run` for code that is not async."""
        run_sync(self._find)
        return self.agent.run_sync(task, **self._next(options, deps))

    async def resume(self, *, deps: Deps | None = None, **options: Unpack[ResumeOptions]) -> Result[Output]:
        """Resume the open run; `options` are those of `Agent.resume`."""
        await self._find()
        run_id = self._open_run()
        return await self.agent.resume(run_id, **self._with_listener(run_id, options, deps))

    def resume_sync(self, *, deps: Deps | None = None, **options: Unpack[ResumeOptions]) -> Result[Output]:
        """`resume` for code that is not async."""
        run_sync(self._find)
        run_id = self._open_run()
        return self.agent.resume_sync(run_id, **self._with_listener(run_id, options, deps))

    @overload
    async def messages(self, form: Literal["own"] = "own") -> list[Message]: ...
    @overload
    async def messages(self, form: Literal["openai"]) -> list[dict[str, Any]]: ...
    async def messages(self, form: MessageForm = "own") -> list[Message] | list[dict[str, Any]]:
        """The conversation so far as messages, whole, with calls and their results: for a `history` or elsewhere.

        They are `Message`s, or with the form `openai` dicts of OpenAI's chat API, with images as data URIs. The open
        run is not among them.

        Raises:
            ConfigError: there is no such form.
        """
        if form not in get_args(MessageForm):
            raise ConfigError(f"The form of messages is {form!r}.", hint="Write own or openai.")
        await self._find()
        if self.after is None:
            return []
        async with self.agent.open_journal() as journal:
            exported = await export_history(journal, self.after)
        return exported.messages if form == "own" else exported.in_openai_form()

    @overload
    def messages_sync(self, form: Literal["own"] = "own") -> list[Message]: ...
    @overload
    def messages_sync(self, form: Literal["openai"]) -> list[dict[str, Any]]: ...
    def messages_sync(self, form: Any = "own") -> Any:
        """`messages` for code that is not async."""
        return run_sync(lambda: self.messages(form))

    async def _find(self) -> None:
        """Find out where the session is: another process may have taken it further."""
        if self.session:
            async with self.agent.open_journal() as journal:
                self.after, self.open, self._next_id = await session_state(journal, self.session, self.user)

    def _next(self, options: TurnOptions, deps: Deps | None) -> dict[str, Any]:
        """The options of the next turn, with the id by which it can be resumed."""
        if self.open is not None:
            raise RunNotAnswered(
                f"The run {self.open} of this conversation has no answer yet.", hint="Resume it first: chat.resume()."
            )
        run_id = options.get("run_id") or self._next_id or new_run_id(self.agent.clock.now())
        place = {"session": self.session} if self.session else {"after": self.after}
        person = {"user": self.user} if self.session or self.user else {}
        return {**self._with_listener(run_id, options, deps), "run_id": run_id, **person, **place}

    def _open_run(self) -> str:
        if self.open is None:
            raise RunNotAnswered("No run of this conversation is open.", hint="Start the next one: chat.run(…).")
        return self.open

    def _with_listener(self, run_id: str, options: TurnOptions | ResumeOptions, deps: Deps | None) -> dict[str, Any]:
        """The options, with a listener that follows the run: a cancellation or an error returns no result."""
        listener = options.get("on_event")

        def follow(event: AnyEvent) -> None:
            self._follow(run_id, event.fact)
            if listener is not None:
                listener(event)

        return {**options, "deps": self.deps if deps is None else deps, "on_event": follow}

    def _follow(self, run_id: str, fact: Fact) -> None:
        """The run is open from its first event until it ends in any other way than by a stop."""
        ended = isinstance(fact, Finished) and fact.status != "stopped"
        self.open = None if ended else run_id
        if isinstance(fact, Finished) and fact.answer is not None:
            self.after = run_id
