"""When a run must stop, and how it ends then: its limits, and the failures of its model. Pure: the trace counts."""

from __future__ import annotations

import math

from taoloop.core.decision import cited_ids
from taoloop.core.effects import CallModel
from taoloop.core.events import Fact, Finished, LimitReached, ModelErred, Status
from taoloop.core.message import SIDE_PURPOSES
from taoloop.core.text import join_sentences
from taoloop.core.texts import end_message, limit_text
from taoloop.core.trace import Trace
from taoloop.errors import ModelContextOverflow, ModelError, ModelTimeout, TaoError
from taoloop.strategies.evidence_gate import with_evidence
from taoloop.translation import error_texts

_MIN_CALL_S = 0.001  # of a call when no time is left: it starts, and times out at once


def exceeded_limit(trace: Trace, *, repeats: bool = True) -> LimitReached | None:
    """The first limit other than the steps that the run has used up, or None. The order is from worst to mildest.

    `repeats` False: not the one of repeated actions.

    A budget in money is used up as soon as one call has no known price: what cannot be counted cannot be enforced.
    """
    limits = trace.limits  # called before every reply, so it is written out: a table would cost five times as much
    if (limit := limits.max_consecutive_errors) is not None and (used := trace.consecutive_errors) >= limit:
        unreadable = trace.consecutive_unreadable == used  # errors of this one kind have a name of their own
        return _reached("max_consecutive_errors", limit, used, "unreadable" if unreadable else "too_many_errors")
    if (limit := limits.max_total_errors) is not None and (used := trace.total_errors) >= limit:
        return _reached("max_total_errors", limit, used, "too_many_errors")
    if repeats and (limit := limits.repeat_stop) is not None and (used := trace.repeats) >= limit:
        return _reached("repeat_stop", limit, used, "repeated_action")
    return _exceeded_budget(trace)


def _exceeded_budget(trace: Trace) -> LimitReached | None:
    """The first budget of the run that is used up."""
    limits = trace.limits
    if (limit := limits.max_tool_calls) is not None and (refused := trace.calls_refused_by_limit):
        attempted = trace.tool_calls + refused  # a run that made all its calls may still answer
        if attempted >= limit:
            return _reached("max_tool_calls", limit, attempted)
    if (limit := limits.max_tokens) is not None and (tokens := trace.usage.total_tokens) >= limit:
        return _reached("max_tokens", limit, tokens)
    if (limit_usd := limits.max_cost_usd) is not None:
        spent = math.inf if trace.unpriced_calls else trace.cost_usd
        if spent >= limit_usd:
            return _reached("max_cost_usd", limit_usd, spent)
    if (limit_s := limits.max_wall_s) is not None and (spent := trace.wall_s) >= limit_s:
        return _reached("max_wall_s", limit_s, spent)
    if (limit_s := limits.max_working_s) is not None and (spent := trace.working_s) >= limit_s:
        return _reached("max_working_s", limit_s, spent)
    return None


def _reached(name: str, allowed: float, used: float, status: Status = "budget_exceeded") -> LimitReached:
    return LimitReached(limit=name, status=status, allowed=allowed, used=used)


def time_limit(trace: Trace, call_limit_s: float | None) -> LimitReached | None:
    """The run's time limit that cut a call short, or None if the call's own limit did."""
    limits = trace.limits
    remaining = [
        (allowed - used, name, allowed)
        for name, allowed, used in (
            ("max_wall_s", limits.max_wall_s, trace.wall_s),
            ("max_working_s", limits.max_working_s, trace.working_s),
        )
        if allowed is not None
    ]
    if not remaining or (call_limit_s is not None and call_limit_s <= min(remaining)[0]):
        return None
    _, name, allowed = min(remaining)
    return LimitReached(limit=name, status="budget_exceeded", allowed=allowed, used=allowed)


def exceeded_step_limit(trace: Trace) -> LimitReached | None:
    """The step limit, if no further step may begin. Samples that are voted on have a number of their own."""
    allowed, used = trace.limits.max_steps, trace.step_count - trace.samples
    if allowed is None or used < allowed:
        return None
    return LimitReached(limit="max_steps", status="max_steps_exceeded", allowed=allowed, used=used)


def remaining_s(trace: Trace, limit_s: float | None) -> float | None:
    """The seconds that one call may take: its own limit, or what is left of the run's time if that is less."""
    limits, left_s = trace.limits, limit_s
    if limits.max_wall_s is None and limits.max_working_s is None:
        return limit_s if limit_s is None or limit_s > _MIN_CALL_S else _MIN_CALL_S
    if limits.max_wall_s is not None:
        left_s = _lesser(left_s, limits.max_wall_s - trace.wall_s)
    if limits.max_working_s is not None:
        left_s = _lesser(left_s, limits.max_working_s - trace.working_s)
    return left_s if left_s is None or left_s > _MIN_CALL_S else _MIN_CALL_S


def _lesser(first: float | None, second: float) -> float:
    return second if first is None or second < first else first


def limit_finish(trace: Trace, reached: LimitReached, failed: str = "", *, with_tools: bool = True) -> Finished:
    """The finish of a run that a limit ended: its status names the limit, whatever the last turn returned.

    No turn is left to correct an answer without evidence; what does not hold is named. `with_tools`: the run had some.
    """
    language = trace.agent.language
    detail = trace.last_rejected.message if trace.last_rejected else ""
    reason = limit_text(language, reached, detail)
    if failed:
        reason += end_message(language, "closing_failed", detail=failed)
    answer = trace.answer
    text, citations = (answer.text, answer.citations or cited_ids(answer.text)) if answer else (None, ())
    finished = Finished(status=reached.status, limit=reached.limit, answer=text, reason=reason, citations=citations)
    return with_evidence(trace, finished, with_tools=with_tools)


def model_failed(trace: Trace, message: str, code: str = "", *, by_model: bool = False) -> Finished:
    """The finish of a run whose model failed; a limit that was reached before keeps its status.

    `code` is that of the error. `by_model`: the message is the model's own refusal, which needs no words before it.
    """
    if trace.limit_reached is not None:
        return limit_finish(trace, trace.limit_reached, failed=message)
    reason = message if by_model else end_message(trace.agent.language, "model_failed", detail=message)
    return Finished(status="model_failed", answer=None, reason=reason, error=code)


def on_model_error(trace: Trace, effect: CallModel, error: Exception) -> Fact:
    """What an error in place of a reply means: the run's time is up, the run can continue, or it ends.

    A prompt that is too long can be shortened, and a summary can be made without the model.
    """
    purpose = effect.request.purpose
    code = error.code if isinstance(error, ModelError) else ModelError.code
    if isinstance(error, ModelTimeout) and purpose != "close":
        reached = time_limit(trace, trace.agent.model_timeout_s)
        if reached is not None:
            return reached
    language = trace.agent.language
    message = join_sentences(*error_texts(error, language)) if isinstance(error, TaoError) else str(error)
    if purpose in SIDE_PURPOSES or isinstance(error, ModelContextOverflow):
        return ModelErred(step=effect.step, purpose=purpose, code=code, message=message)
    return model_failed(trace, message, code, by_model=isinstance(error, ModelError) and error.by_model)
