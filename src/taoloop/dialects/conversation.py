"""The prompt as a view of the trace. It only grows: each request's messages begin with those of the last one.

The one exception is a `Compacted` fact: there the messages are rebuilt from the events, and from then on grow again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.attachments.files import attached
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import PAGING_TOOL, listed_cards
from taoloop.core.decision import Act
from taoloop.core.events import (
    ActionRequested,
    ApprovalGiven,
    ApprovalRefused,
    Compacted,
    Event,
    Fact,
    Finished,
    LimitReached,
    ModelErred,
    ModelReplied,
    Noted,
    Observed,
    ReplyRejected,
    Resumed,
    RunStarted,
)
from taoloop.core.message import SIDE_PURPOSES, Message, message_tokens
from taoloop.core.preview import preview
from taoloop.core.texts import label_of, limit_text
from taoloop.core.views.plans import RUN_STEP
from taoloop.core.views.steps import CRITIQUE, DROPPED_LESSON, LESSON, NEW_POLICY, REVISION, UNDONE
from taoloop.core.views.todos import todo_lines, todo_list_of
from taoloop.dialects import get_dialect
from taoloop.dialects.base import Dialect
from taoloop.dialects.prompt import (
    OpaqueObservations,
    defuse_markers,
    output_format_prompt,
    output_schema_prompt,
    system_prompt,
    task_prompt,
    tool_block,
    tool_tokens,
)
from taoloop.dialects.text_dialect import EMPTY_REPLY, ObjectDialect
from taoloop.dialects.texts import TEXTS

OLD_OBSERVATION_CHARS = 400
"""What a compaction leaves of an old observation."""

_NO_AGENT = AgentSpec()  # until the run has begun
_WORTH_CUTTING_CHARS = 200  # a cut comes with a note of about this length
_LEAST_RATIO, _MOST_RATIO = 0.5, 3.0  # how far a provider's count may change our estimate of the rest


class Conversation:
    """The messages that a model has seen and will see next.

    `rules` names the strategy's rules in the prompt set; `tools` says whether the strategy may act, `reasons`
    whether it writes its thoughts. Without tools the prompt does not mention any. `events` are the trace's own, which
    a compaction reads again. `offers` says which tools the model may call itself (by default all); the others are only
    described, below the rules.

    Attributes:
        messages: The prompt so far.
        tools: What the next request offers. A tool that reads the rest of an observation is among it once an
            observation of the run was cut: until then the prompt of a text dialect, or the tools that a native one
            passes to the provider, are without it.
    """

    def __init__(
        self,
        rules: str,
        events: Sequence[Event],
        *,
        tools: bool,
        reasons: bool,
        offers: Callable[[ToolCard], bool] | None = None,
    ) -> None:
        self.messages: list[Message] = []
        self._rules, self._tools, self._reasons, self._offers = rules, tools, reasons, offers
        self._events = events
        self._summary: Compacted | None = None  # what replaces the oldest steps
        self._first_event = 1  # the event from which on everything is shown
        self._previewed_through = 0  # the last step whose observations are shown as previews
        self._pending_notes: list[Noted] = []  # remarks that wait for the results of the calls that are open
        self._note_events: list[Event] = []  # remarks of people and of undos, which outlive every compaction
        self._compacted_before = 0  # compactions before this event have been taken in
        self._tool_tokens_estimate: int | None = None  # tokens of the tools that the provider gets through its API
        self._message_tokens: list[int] = []  # tokens of each message, as far as they were counted
        self._provider_count: tuple[int, int] | None = None  # a number of messages, and the provider's count
        self._ratio = 1.0  # of the provider's count to ours
        self._refused_tokens: int | None = None  # a prompt of this size was too long
        self._agent = _NO_AGENT
        self._dialect: Dialect = get_dialect(self._agent.dialect)
        self.tools: tuple[ToolCard, ...] = ()
        self._paging_cards: Sequence[ToolCard] = ()  # of the tool that the first cut observation is to describe
        self._was_cut = False  # an observation of this run was, at some time
        self._nonce = ""
        self._output_rule = ""  # the rule for an answer that must fit a schema
        self._replied: ModelReplied | None = None
        self._requested: list[ActionRequested] = []
        self._requests: dict[str, ActionRequested] = {}
        self._closing = False
        self._in_sample = False  # the last reply is an answer that is voted on: none of this conversation
        self._opaque: OpaqueObservations | None = None  # where the model must not read observations

    def fold(self, event: Event) -> None:
        """Add what the model is to see of this event; most facts are not shown to it."""
        fact = event.fact
        if (show := _FOLDERS.get(type(fact))) is not None:
            show(self, fact)
        else:
            self._fold_rare(event)

    def _append_pending_notes(self) -> None:
        """Show remarks, but never between calls and their results: providers refuse such a conversation."""
        while self._pending_notes and not self._requests:
            note = self._pending_notes.pop(0)
            self._add_user_message("notice", by=note.by, text=note.text)

    def _fold_rare(self, event: Event) -> None:
        match event.fact:
            case LimitReached() as fact if self._agent.closing_turn:
                self._add_closing_turn(fact)
            case Noted(about=about) if about in (CRITIQUE, DROPPED_LESSON):
                pass  # for people; the findings of a critique follow in a note of their own
            case Noted() as fact:
                if _is_lasting(fact) and event.seq >= self._compacted_before:
                    self._note_events.append(event)
                self._pending_notes.append(fact)
                self._append_pending_notes()
            case Finished(status="blocked" | "unsupported"):
                self._closing = True  # the model has answered: if the run is resumed, it is told to go on
            case Resumed():
                self._refused_tokens = None  # perhaps with another model
                if self._closing:
                    self._closing = False
                    self._add_user_message("resumed")
            case ApprovalRefused() as fact if self._opaque is not None:
                self._opaque.record_refusal(fact)
            case ApprovalGiven() as fact if self._opaque is not None:
                self._opaque.record_answer(fact)
            case Compacted() as fact if event.seq >= self._compacted_before:
                self._compact(fact, event.seq)
            case ModelErred(purpose="decide" | "repair" | "close") if event.seq >= self._compacted_before:
                self._refused_tokens = self.tokens()
            case _:
                pass

    # Its size, and how it becomes shorter

    @property
    def summarised_through(self) -> int:
        """The last step that is shown by a summary; 0 for none."""
        return self._summary.through_step if self._summary is not None else 0

    @property
    def summary(self) -> str:
        """The summary that is shown; empty for none."""
        return self._summary.summary if self._summary is not None else ""

    @property
    def previewed_through(self) -> int:
        """The last step whose observations are shown as previews; 0 for none."""
        return max(self._previewed_through, self.summarised_through)

    @property
    def known_window(self) -> int | None:
        """How many tokens fit, as far as it is known: what the agent says, or what the provider refused."""
        known = [self._agent.context_tokens, None if self._refused_tokens is None else self._refused_tokens * 19 // 20]
        return min((tokens for tokens in known if tokens is not None), default=None)

    @property
    def prompt_budget(self) -> int | None:
        """How much of the window a prompt may have; the rest is for the reply, which a refused prompt had beside it."""
        window, agent = self.known_window, self._agent
        if window is None or agent.context_tokens is None:
            return window
        return min(window, agent.context_tokens - (agent.max_output_tokens or 0))

    def tokens(self) -> int:
        """The size of the next prompt: what the provider counted last, and an estimate of what came since."""
        self._message_tokens.extend(message_tokens(message) for message in self.messages[len(self._message_tokens) :])
        if self._provider_count is None:
            return math.ceil(self._ratio * (self._tool_tokens() + sum(self._message_tokens)))
        at, counted = self._provider_count
        ours = self._tool_tokens() + sum(self._message_tokens[:at])
        self._ratio = min(_MOST_RATIO, max(_LEAST_RATIO, counted / ours))
        return math.ceil(counted + self._ratio * sum(self._message_tokens[at:]))

    def estimate(self, messages: Sequence[Message]) -> int:
        """The size of any prompt, with the tools on offer, by the ratio that the last count gave."""
        return math.ceil(self._ratio * (self._tool_tokens() + sum(map(message_tokens, messages))))

    def messages_through(self, step: int) -> tuple[Message, ...]:
        """The messages up to the end of a step: the first of those there are."""
        other = copy(self)
        other._rebuild(self._step_start(step + 1, len(self._events)))
        return tuple(other.messages)

    def compacted(self, fact: Compacted) -> Conversation:
        """What it would be after this compaction; it stays as it is itself."""
        other = copy(self)
        other._compact(fact, len(self._events))
        return other

    def _tool_tokens(self) -> int:
        """The tools that the provider gets through its API."""
        if self._tool_tokens_estimate is None:
            cards = listed_cards(self.tools) if self._dialect.native else ()
            self._tool_tokens_estimate = tool_tokens(cards, self._agent.language)
        return self._tool_tokens_estimate

    def _compact(self, fact: Compacted, end: int) -> None:
        self.tokens()  # keeps the ratio, which outlives the messages
        if fact.summary:
            self._summary, self._first_event = fact, self._step_start(fact.through_step + 1, end)
        else:
            self._previewed_through = fact.through_step
        self._rebuild(end)

    def _step_start(self, step: int, end: int) -> int:
        """The first event of a step, or `end` if there is no such step yet."""
        events = self._events[self._first_event : end]
        return next((e.seq for e in events if isinstance(e.fact, ModelReplied) and e.fact.step == step), end)

    def _rebuild(self, end: int) -> None:
        """Rebuild the messages: the head, the notes of people, the summary, and the events that it does not cover."""
        self.messages, self._message_tokens = [], []
        self._closing, self._requests = False, {}
        self._replied, self._requested = None, []
        self._compacted_before, refused = end, self._refused_tokens
        notes = [event for event in self._note_events if event.seq < self._first_event]
        for event in [self._events[0], *notes]:
            self.fold(event)
        if (summary := self._summary) is not None:
            content = defuse_markers(summary.summary, self._nonce)
            name = "summary" if self._opaque is None else "handles_summary"
            self._add_user_message(name, through=summary.through_step, nonce=self._nonce, content=content)
            self._add_todos(summary, end)
        for event in self._events[self._first_event : end]:
            self.fold(event)
        self._provider_count, self._refused_tokens = None, refused  # the count was of the longer prompt

    def _add_todos(self, summary: Compacted, end: int) -> None:
        """Show the todo list again if the summary covers the step that wrote it."""
        newest = todo_list_of(self._events[:end])
        if newest.todos and newest.step <= summary.through_step:
            lines = todo_lines(newest.todos if self._opaque is None else newest.written)
            content = defuse_markers(lines, self._nonce)
            text = TEXTS.text(self._agent.language, "todos", nonce=self._nonce, content=content)
            self.messages.append(Message(role="user", content=text))

    # Its messages

    def _start(self, fact: RunStarted) -> None:
        agent = self._agent = fact.agent
        dialect = get_dialect(agent.dialect)
        self._dialect = dialect.in_form(agent.prompts) if isinstance(dialect, ObjectDialect) else dialect
        self._tools &= bool(agent.tools) or not dialect.native  # the API offers nothing that could be called
        self._nonce, self._opaque = fact.nonce, OpaqueObservations.for_agent(agent, fact.labels)
        self._output_rule = output_schema_prompt(agent.prompts, agent.output_schema)
        self.tools = self._offered(agent.tools) if self._tools else ()
        cards = listed_cards(self.tools)
        if len(cards) > 1:  # the card of this tool comes with the first observation that was cut
            self._paging_cards = tuple(card for card in cards if card.name == PAGING_TOOL)
        if self._paging_cards:
            cards = tuple(card for card in cards if card.name != PAGING_TOOL)
        if self._paging_cards and self._dialect.native and not self._was_cut:
            self.tools = tuple(card for card in self.tools if card.name != PAGING_TOOL)
        unoffered: list[ToolCard] = []
        if self._offers is not None:
            unoffered = [card for card in listed_cards(agent.tools) if not self._offers(card) and card.name != RUN_STEP]
        described = tool_block(unoffered, agent.prompts) if unoffered else ""
        system = system_prompt(
            agent.prompts,
            self._dialect,
            cards,
            self._rules,
            agent.instructions,
            tools=self._tools,
            reasons=self._asks_for_thoughts(tools=self._tools),
            output=self._output_rule,
            more_rules="\n\n".join(filter(None, (self._more_rules(), described))),
        )
        self.messages.append(Message(role="system", content=system))
        self.messages.extend(map(self._with_labels, fact.history))
        content = task_prompt(agent.prompts, agent.dialect, fact.task)
        task = Message(role="user", content=content, images=fact.images, files=fact.files)
        self.messages.append(self._with_labels(task))

    def _offered(self, cards: tuple[ToolCard, ...]) -> tuple[ToolCard, ...]:
        return cards if self._offers is None else tuple(filter(self._offers, cards))

    def _more_rules(self) -> str:
        """What the prompt says about handles and about evidence, for a run with tools that has them."""
        if not self._tools:
            return ""
        name = "evidence_output" if self._agent.output_schema is not None else "evidence"
        evidence = self._agent.prompts.texts.get(name, "") if self._agent.evidence != "off" else ""
        return "\n".join(filter(None, (self._opaque.rules if self._opaque is not None else "", evidence)))

    def _with_labels(self, message: Message) -> Message:
        """The message with a line for each of its images and files, by which a model can speak of them."""
        if not message.images and not message.files:
            return message
        language, nonce = self._agent.language, self._nonce
        labels = (defuse_markers(label_of(language, info), nonce) for info in attached(message))
        return replace(message, content="\n".join([message.content, *labels]))

    def _add_reply(self, fact: ModelReplied) -> None:
        if fact.purpose in SIDE_PURPOSES:
            return
        self._in_sample = fact.purpose == "sample"
        if self._in_sample:
            return
        if fact.usage.input_tokens > 0 and fact.purpose != "close":  # there no tools were on offer
            self._provider_count = len(self.messages), fact.usage.input_tokens
        self._replied = fact
        if not isinstance(fact.decision, Act) or fact.purpose == "close":
            self._add_echo()

    def _add_request(self, fact: ActionRequested) -> None:
        self._requests[fact.call_id] = fact
        self._requested.append(fact)
        replied = self._replied
        if replied and isinstance(replied.decision, Act) and len(self._requested) == len(replied.decision.calls):
            self._add_echo()

    def _add_observation(self, fact: Observed) -> None:
        requested, prompts = self._requests.pop(fact.call_id), self._agent.prompts
        if self._opaque is not None:
            fact, prompts = self._opaque.hide(requested, fact), self._opaque.prompts
        elif requested.step <= self._previewed_through:
            fact = _preview_observation(fact)
            if fact.images:
                note = TEXTS.text(self._agent.language, "images_dropped", tool=PAGING_TOOL)
                fact = replace(fact, output=f"{fact.output}\n{note}", images=())
            fact = replace(fact, files=tuple(file for file in fact.files if not file.is_pdf)) if fact.files else fact
        message = self._dialect.observation(requested, fact, prompts, self._nonce)
        if fact.images or fact.files:  # a text is not shown: the model pages through it
            message = replace(message, images=fact.images, files=tuple(file for file in fact.files if file.is_pdf))
        if (fact.artifact is not None or any(file.is_text for file in fact.files)) and self._paging_cards:
            message = self._introduce_paging(message)
        self.messages.append(message)
        if self._pending_notes:
            self._append_pending_notes()

    def _introduce_paging(self, message: Message) -> Message:
        """Offer the tool that reads the rest of an observation, and describe it where the prompt has to."""
        cards, self._paging_cards, self._was_cut = self._paging_cards, (), True
        if self._dialect.native:
            self.tools, self._tool_tokens_estimate = self._offered(self._agent.tools), None
            return message
        return replace(message, content=f"{message.content}\n\n{tool_block(cards, self._agent.prompts)}")

    def _add_echo(self) -> None:
        if self._replied is not None:
            message = self._dialect.echo(self._replied, self._requested)
            if message.content == EMPTY_REPLY:
                message = replace(message, content=TEXTS.text(self._agent.language, "empty_reply"))
            self.messages.append(message)
        self._replied, self._requested = None, []

    def _add_closing_turn(self, fact: LimitReached) -> None:
        self._closing = True
        reason = limit_text(self._agent.language, fact)
        reasons = self._asks_for_thoughts(tools=False)
        expected = output_format_prompt(self._agent.prompts, self._dialect.name, tools=False, reasons=reasons)
        self._add_user_message("closing", reason=reason, form=_append_rule(expected, self._output_rule))

    def _add_correction(self, fact: ReplyRejected) -> None:
        if self._closing or self._in_sample:
            return
        reasons = self._asks_for_thoughts(tools=self._tools)
        message = self._dialect.correction(fact, self._agent.prompts, tools=self._tools, reasons=reasons)
        self.messages.append(replace(message, content=_append_rule(message.content, self._output_rule)))

    def _asks_for_thoughts(self, *, tools: bool) -> bool:
        """Whether thoughts are asked for; not where the whole text of a reply must be the JSON of an answer."""
        return self._reasons and (tools or not self._output_rule or not self._dialect.native)

    def _add_user_message(self, name: str, /, **values: object) -> None:
        self.messages.append(Message(role="user", content=self._agent.prompts.fill(name, **values)))


_FOLDERS: dict[type[Fact], Callable[[Conversation, Any], None]] = {
    RunStarted: Conversation._start,
    ModelReplied: Conversation._add_reply,
    ActionRequested: Conversation._add_request,
    Observed: Conversation._add_observation,
    ReplyRejected: Conversation._add_correction,
}
"""What most of a conversation is made of."""


def _is_lasting(note: Noted) -> bool:
    """Whether a note is shown after every compaction too."""
    about = note.about
    return note.by != "guard" or about in (UNDONE, NEW_POLICY, REVISION) or about.startswith(LESSON)


def _append_rule(text: str, rule: str) -> str:
    return f"{text}\n\n{rule}" if rule else text


def _preview_observation(observed: Observed) -> Observed:
    """An observation as a compaction leaves it: short, with the name under which the whole can be read."""
    fault, output = observed.error, observed.output
    if fault is not None and len(fault.message) > OLD_OBSERVATION_CHARS + _WORTH_CUTTING_CHARS:
        fault = replace(fault, message=preview(fault.message, "text", OLD_OBSERVATION_CHARS))
    if len(output) > OLD_OBSERVATION_CHARS + _WORTH_CUTTING_CHARS:
        output = preview(output, observed.form, OLD_OBSERVATION_CHARS)
    if output is observed.output and fault is observed.error:
        return observed
    whole = observed.output if observed.error is None else observed.error.message
    return replace(
        observed,
        output=output,
        error=fault,
        artifact=observed.artifact or f"obs_{observed.call_id}",
        size_chars=observed.size_chars or len(whole),
    )
