"""Chain of thought with self-consistency, and its combinations with ReAct, as pure functions of the trace.

CoT-SC samples several independent chains of thought and takes the most frequent answer (Wang et al., 2022). The two
combinations are those of the ReAct paper (Yao et al., 2023, section 3.2, "Combining Internal and External Knowledge"):
A) ReAct → CoT-SC, when ReAct fails to return an answer within the given steps; B) CoT-SC → ReAct, when the majority
answer among n samples occurs less than n/2 times.

Each sample is a step of the trace (`model_replied` with the purpose `sample`), and no sample sees another one or an
observation. The count is a fact (`voted`), so that a crash at any point costs at most the sample in progress.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import cited_ids
from taoloop.core.effects import Effect, Finish, Record
from taoloop.core.events import Event, Finished, LimitReached, Noted, RunStarted
from taoloop.core.text import field_error, is_number
from taoloop.core.texts import end_message
from taoloop.core.trace import Trace
from taoloop.dialects.conversation import Conversation
from taoloop.errors import ConfigError
from taoloop.strategies.ballot import Ballot
from taoloop.strategies.denied_calls import answered_finish
from taoloop.strategies.react import LoopStrategy
from taoloop.strategies.settings import write_name
from taoloop.strategies.termination import exceeded_limit, limit_finish, model_failed

DEFAULT_SAMPLES = 5
"""The paper takes 21. Most of the gain comes with the first five to ten (Wang et al., conclusion), and each costs a
whole reply; an odd number has no tie between two answers."""

DEFAULT_TEMPERATURE = 0.7
"""That of the paper. At 0 all samples would be the same."""

_REACT = LoopStrategy(name="react", acts=True, reasons=True)
_CHAIN = LoopStrategy(name="reason_only", acts=False, reasons=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sampling:
    """What the strategies that sample have in common: their settings, and their name."""

    n: int = DEFAULT_SAMPLES
    """How many samples, 2 to 100; 5 by default."""

    temperature: float = DEFAULT_TEMPERATURE
    """The temperature of the samples, above 0 and at most 2; 0.7 by default. The agent's own is for all else."""

    kind: ClassVar[str]
    """The name without settings."""

    rules: ClassVar[tuple[str, ...]]
    """Whose rules are in the prompts."""

    def __post_init__(self) -> None:
        """Reject settings under which there is nothing to vote on."""
        _require_settings(self.kind, self.n, self.temperature)

    @property
    def name(self) -> str:
        """The name with all settings, as a trace stores it."""
        return write_name(self.kind, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfConsistency(_Sampling):
    """Sample `n` chains of thought without tools, and take the most frequent answer: CoT-SC.

    Answers are compared without regard to their notation (`normalise_answer`); among equally frequent ones the first
    wins. A sample that cannot be read has no vote and is not repaired. Where a limit of the run ends the sampling, the
    run ends with the status of that limit, and the most frequent answer so far is its answer.

    Raises:
        ConfigError: a setting has no possible value.
    """

    kind: ClassVar[str] = "cot_sc"
    rules: ClassVar[tuple[str, ...]] = ("reason_only",)

    def next(self, agent: AgentSpec, trace: Trace) -> Effect:
        """The next effect."""
        ballot = trace.view("ballot", lambda: Ballot(self.n))
        if trace.phase != "thinking":
            return _after_vote(agent, trace, ballot, _CHAIN)
        if ballot.voted is not None:
            return Finish(fact=_no_vote(trace, ballot))
        return _sample(agent, trace, ballot, self.temperature)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactThenSelfConsistency(_Sampling):
    """ReAct, and CoT-SC if that gives no answer within the step limit.

    The samples take the place of the closing turn, and the step limit does not count them. The guard against repeated
    actions counts as the step limit: it only ends earlier what would not have ended otherwise. Any other limit ends the
    run as in ReAct. The samples see the task and what people remarked, and no observation.

    Raises:
        ConfigError: a setting has no possible value.
    """

    kind: ClassVar[str] = "react_then_cot_sc"
    rules: ClassVar[tuple[str, ...]] = ("react", "reason_only")

    def next(self, agent: AgentSpec, trace: Trace) -> Effect:
        """The next effect."""
        phase = trace.phase
        if phase in ("decided", "acting"):
            return _REACT.next(agent, trace)
        ballot = trace.view("ballot", lambda: Ballot(self.n))
        if phase != "thinking":
            return _after_vote(agent, trace, ballot, _REACT)
        if ballot.voted is not None:
            return Finish(fact=_no_vote(trace, ballot))
        if ballot.count or ballot.erred is not None:
            return _sample(agent, trace, ballot, self.temperature)
        effect = _REACT.next(agent, trace)
        if isinstance(effect, Record) and _gives_up(effect.facts[0]):
            return _sample(agent, trace, ballot, self.temperature)
        return effect


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfConsistencyThenReact(_Sampling):
    """CoT-SC, and ReAct if the most frequent answer has fewer than n/2 of the n votes.

    ReAct then begins with the task alone, as it would without the samples, and the step limit counts only its steps.

    Raises:
        ConfigError: a setting has no possible value.
    """

    kind: ClassVar[str] = "cot_sc_then_react"
    rules: ClassVar[tuple[str, ...]] = ("react", "reason_only")

    def next(self, agent: AgentSpec, trace: Trace) -> Effect:
        """The next effect."""
        phase = trace.phase
        if phase in ("decided", "acting"):
            return _REACT.next(agent, trace)
        ballot = trace.view("ballot", lambda: Ballot(self.n, keeps_undecided=True))
        if phase != "thinking":
            return _after_vote(agent, trace, ballot, _REACT)
        if ballot.voted is not None and not ballot.voted.accepted:
            return _REACT.next(agent, trace)
        return _sample(agent, trace, ballot, self.temperature, least_votes=self.n / 2)


@dataclass(slots=True)
class _SamplePrompt:
    """The prompt of a sample: the task with the conversation before it, and what people remarked."""

    conversation: Conversation
    """The messages."""

    def fold(self, event: Event) -> None:
        """Take the next event; observations and other replies are not among what a sample sees."""
        match event.fact:
            case RunStarted():
                self.conversation.fold(event)
            case Noted(by=by) if by != "guard":
                self.conversation.fold(event)
            case _:
                pass


def _require_settings(name: str, n: object, temperature: object) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or not 2 <= n <= 100:
        raise field_error(ConfigError, "setting", "a whole number from 2 to 100", owner=name, name="n", value=n)
    if not is_number(temperature) or not 0 < temperature <= 2:
        expected = "a number above 0 and at most 2"
        raise field_error(ConfigError, "setting", expected, owner=name, name="temperature", value=temperature)


def _sample(agent: AgentSpec, trace: Trace, ballot: Ballot, temperature: float, least_votes: float = 0) -> Effect:
    """One more sample, or the count where there are enough, or a limit is reached."""
    if ballot.count >= ballot.size:
        vote = ballot.close(accepted=True)
        has_majority = vote.winner is not None and vote.winner.count >= least_votes
        return Record(facts=(vote if has_majority else ballot.close(accepted=False),))
    if (reached := trace.limit_reached) is not None:
        if ballot.voted is None and ballot.answers:
            return Record(facts=(ballot.close(accepted=True),))
        return Finish(fact=limit_finish(trace, reached))
    if (reached := exceeded_limit(trace, repeats=False)) is not None:
        return Record(facts=(reached,))
    if ballot.erred is not None:
        return Finish(fact=model_failed(trace, ballot.erred.message, ballot.erred.code))
    prompt = trace.view("sample_prompt", lambda: _SamplePrompt(_conversation(trace)))
    messages = tuple(prompt.conversation.messages)
    return _CHAIN.ask(agent, trace, "sample", trace.step_count + 1, messages, temperature=temperature)


def _conversation(trace: Trace) -> Conversation:
    return Conversation("reason_only", trace.events, tools=False, reasons=True)


def _after_vote(agent: AgentSpec, trace: Trace, ballot: Ballot, loop: LoopStrategy) -> Effect:
    """The end of a run with an answer: by the count, or as the loop ends it."""
    voted = ballot.voted
    if trace.phase != "answered" or voted is None or not voted.accepted or voted.winner is None:
        return loop.next(agent, trace)
    language, winner = agent.language, voted.winner
    reason = end_message(language, "voted", count=winner.count, samples=voted.samples)
    if (steps := trace.step_count - trace.samples) > 0:
        reason = end_message(language, "react_ended", steps=steps) + reason
    citations = cited_ids(winner.answer)
    return Finish(fact=answered_finish(trace, winner.answer, reason, citations, with_tools=loop.acts))


def _no_vote(trace: Trace, ballot: Ballot) -> Finished:
    """The end of a run of whose samples none was readable."""
    detail = "" if trace.last_rejected is None else trace.last_rejected.message
    reason = end_message(trace.agent.language, "no_vote", samples=ballot.count, detail=detail)
    return Finished(status="unreadable", answer=None, reason=reason)


def _gives_up(fact: object) -> bool:
    """Whether ReAct ends here without an answer, for want of steps or because it goes round in circles."""
    return isinstance(fact, LimitReached) and fact.limit in ("max_steps", "repeat_stop")
