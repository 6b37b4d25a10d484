"""How a run ends that a limit or its model ends, and what follows from a model's error."""

from __future__ import annotations

from taoloop.core.decision import cited_ids
from taoloop.core.effects import CallModel
from taoloop.core.events import Fact, Finished, LimitReached, ModelErred
from taoloop.core.texts import end_message, limit_text
from taoloop.core.trace import Trace
from taoloop.errors import ModelContextOverflow, ModelError, ModelTimeout
from taoloop.strategies.limit_checks import time_limit


def limit_finish(trace: Trace, reached: LimitReached, failed: str = "") -> Finished:
    """The finish of a run that a limit ended: its status names the limit, whatever the last turn returned."""
    language = trace.agent.language
    detail = trace.last_rejected.message if trace.last_rejected else ""
    reason = limit_text(language, reached, detail)
    if failed:
        reason += end_message(language, "closing_failed", detail=failed)
    answer = trace.answer
    return Finished(
        status=reached.status,
        limit=reached.limit,
        answer=answer.text if answer else None,
        reason=reason,
        citations=(answer.citations or cited_ids(answer.text)) if answer else (),
    )


def model_failed(trace: Trace, message: str, code: str = "") -> Finished:
    """The finish of a run whose model failed; a limit that was reached before keeps its status.

    `code` is that of the error.
    """
    if trace.limit_reached is not None:
        return limit_finish(trace, trace.limit_reached, failed=message)
    return Finished(
        status="model_failed",
        answer=None,
        reason=end_message(trace.agent.language, "model_failed", detail=message),
        error=code,
    )


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
    if purpose in ("compact", "pin") or isinstance(error, ModelContextOverflow):
        return ModelErred(step=effect.step, purpose=purpose, code=code, message=str(error))
    return model_failed(trace, str(error), code)
