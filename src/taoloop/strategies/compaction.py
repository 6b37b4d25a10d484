"""When the prompt grows too long, and how it becomes shorter. Pure: decided from the trace alone, and rarely.

There are two stages. First the observations of old steps are cut to previews. If that does not halve the prompt, old
steps are replaced by a summary, written by the model or, if it fails to, compiled from the trace. The head of the
prompt (system message, earlier conversation, task), what people said and the newest steps stay as they are. No call is
ever open here: a run asks its model only when every call has its observation.
"""

from __future__ import annotations

from taoloop.core.events import Compacted, ModelReplied
from taoloop.core.message import Message, Purpose
from taoloop.core.text import estimate_tokens, truncate_to_tokens
from taoloop.core.texts import end_message
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import summarise_contents, summarise_effects, summarise_steps
from taoloop.dialects.conversation import Conversation
from taoloop.dialects.parsing.cleanup import strip_thinking
from taoloop.dialects.texts import ReplyParseError

FULL_SHARE = 0.85
"""The part of the window (without the room for a reply) from which on the prompt is shortened."""

_TARGET_SHARE = 0.5  # of what was allowed: a compaction makes the prefix cache useless, so it must last
_MAX_REMAINING_SHARE = 0.9  # a prompt that would not get shorter than this part of itself is left alone
# newest steps left whole, and whether the others are summarised
_STAGES = ((3, False), (1, False), (3, True), (1, True), (0, False), (0, True))
_MIN_SUMMARY_TOKENS, _MAX_SUMMARY_TOKENS = 150, 2_000  # tokens
_CHARS_PER_TOKEN = 4
_WORDS_PER_TOKEN = {"en": 0.6, "zh": 0.9}  # Chinese is counted in characters


def make_room(
    trace: Trace, conversation: Conversation, purpose: Purpose
) -> Compacted | tuple[Message, ...] | str | None:
    """What has to come before the model is asked: a compaction, the prompt for a summary, or the end of the run.

    None: the prompt fits, or it cannot be made noticeably shorter and may fit all the same. A text says why the run
    cannot continue.
    """
    size, window, most = conversation.tokens(), conversation.known_window, conversation.prompt_budget
    if window is None or most is None:
        return None
    allowed = FULL_SHARE * most
    if not trace.overflowed and size <= allowed:
        return None
    room = int(min(_MAX_SUMMARY_TOKENS, max(_MIN_SUMMARY_TOKENS, allowed / 8)))
    plan = _plan(trace, conversation, purpose, size, min(size, allowed), room)
    if plan is None:
        too_long = trace.overflowed or size > window
        return end_message(trace.agent.language, "too_long", size=size, window=window) if too_long else None
    if not plan.summary:
        return plan
    if trace.summarised is None and purpose != "close":
        bound = 0.9 * most if trace.overflowed else most - room
        if (prompt := _summary_prompt(trace, conversation, plan.through_step, room, bound)) is not None:
            return prompt
    summary = _summary(trace, conversation, plan.through_step, room)
    return _measured(conversation, Compacted(through_step=plan.through_step, summary=summary), size)


def _plan(
    trace: Trace, conversation: Conversation, purpose: Purpose, size: int, allowed: float, room: int
) -> Compacted | None:
    """The mildest compaction that shortens the prompt enough, else the strongest; None if none is worth it.

    In a plan for a summary, its text is a placeholder of the planned length.
    """
    best: Compacted | None = None
    can_summarise = {"compact", "summary"} <= trace.agent.prompts.texts.keys()
    for newest_kept, summarise in _STAGES:
        through = trace.step_count - newest_kept
        if through <= (conversation.summarised_through if summarise else conversation.previewed_through):
            continue
        if summarise and (not can_summarise or (newest_kept == 0 and purpose != "decide")):
            continue  # a correction or a closing text belongs to the newest step
        placeholder = "x" * (room * _CHARS_PER_TOKEN) if summarise else ""
        plan = _measured(conversation, Compacted(through_step=through, summary=placeholder), size)
        if plan.tokens_after <= _TARGET_SHARE * allowed:
            return plan
        if best is None or plan.tokens_after < best.tokens_after:
            best = plan
    return best if best is not None and best.tokens_after <= _MAX_REMAINING_SHARE * size else None


def _measured(conversation: Conversation, fact: Compacted, size: int) -> Compacted:
    after = conversation.compacted(fact).tokens()
    return Compacted(through_step=fact.through_step, summary=fact.summary, tokens_before=size, tokens_after=after)


def _summary_prompt(
    trace: Trace, conversation: Conversation, through: int, room: int, bound: float
) -> tuple[Message, ...] | None:
    """The steps to be summarised as they are in the prompt, or with previews; None if neither fits."""
    prompts = trace.agent.prompts
    text = prompts.fill("compact", words=int(room * _WORDS_PER_TOKEN.get(prompts.language, _WORDS_PER_TOKEN["en"])))
    question = Message(role="user", content=text)
    for view in (conversation, conversation.compacted(Compacted(through_step=through, summary=""))):
        prompt = (*view.messages_through(through), question)
        if conversation.estimate(prompt) <= bound:
            return prompt
    return None


def _summary(trace: Trace, conversation: Conversation, through: int, room: int) -> str:
    """The model's summary, or without one the steps from the trace; then effects and loaded contents from the trace."""
    fact = trace.summarised
    text = _usable_text(fact, room) if isinstance(fact, ModelReplied) else ""
    if not text:
        before = truncate_to_tokens(conversation.summary, room // 4)
        steps = summarise_steps(trace, conversation.summarised_through, through, room // 2)
        text = f"{before}\n\n{steps}" if before else steps
    facts = (summarise_effects(trace, through, room // 4), summarise_contents(trace, through, room // 4))
    return "\n\n".join(filter(None, (text, *facts)))


def _usable_text(reply: ModelReplied, room: int) -> str:
    """The text of a summary without thinking, cut if it is far too long; empty if there is none."""
    try:
        text = strip_thinking(reply.text).strip()
    except ReplyParseError:
        return ""
    return text if estimate_tokens(text) <= 2 * room else f"{truncate_to_tokens(text, room)}…"
