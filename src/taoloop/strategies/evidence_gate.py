"""What becomes of an answer that its observations do not bear out. Pure; what does not hold: `policy/evidence`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taoloop.core.decision import UNSUPPORTED, Answer, EvidenceGap, excerpt
from taoloop.core.events import Finished, ReplyRejected
from taoloop.core.texts import end_message, gap_text
from taoloop.core.trace import Trace


def held_back(trace: Trace, answer: Answer, gaps: Sequence[EvidenceGap]) -> ReplyRejected | None:
    """The rejection of an answer with gaps where the agent requires evidence, once in a run; None: the answer stands.

    It is corrected in its own step, and counts for no limit of errors: the reply could be read.
    """
    reply = trace.last_reply
    if not gaps or trace.agent.evidence != "require" or trace.held_back is not None or reply is None:
        return None
    message = f"{_gap_texts(trace, gaps)}\n{end_message(trace.agent.language, 'gap_advice')}"
    return ReplyRejected(step=reply.step, code=UNSUPPORTED, message=message, excerpt=excerpt(answer.text))


def with_evidence(trace: Trace, finished: Finished, gaps: Sequence[EvidenceGap]) -> Finished:
    """The finish of a run that answered, with the gaps of its answer; `unsupported` where evidence is required."""
    if not gaps:
        return finished
    if finished.status != "completed" or trace.agent.evidence != "require":
        return replace(finished, evidence=tuple(gaps))
    reason = end_message(trace.agent.language, "unsupported", detail=_gap_texts(trace, gaps, " "))
    return replace(finished, status=UNSUPPORTED, reason=reason, evidence=tuple(gaps))


def _gap_texts(trace: Trace, gaps: Sequence[EvidenceGap], separator: str = "\n") -> str:
    return separator.join(gap_text(trace.agent.language, gap) for gap in gaps)
