"""What becomes of an answer that its observations do not bear out. Pure; what does not hold: `policy/evidence`.

Every strategy ends a run that answered by `answered_finish` or `limit_finish`, and both pass here. Only a strategy that
can ask the model once more sends an answer back before that, by `held_back`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from taoloop.core.decision import UNSUPPORTED, Answer, EvidenceGap, cited_ids, excerpt
from taoloop.core.events import Event, Finished, ReplyRejected
from taoloop.core.texts import end_message, gap_text
from taoloop.core.trace import Trace
from taoloop.policy.evidence.check import evidence_gaps


@dataclass(slots=True)
class _LastCheck:
    """The gaps of the answer at the end of a trace: it is checked to hold it back, and again where it stands."""

    checked: tuple[str, bool] | None = None
    """The answer, and whether the run had tools; None: nothing was checked since the last event."""

    gaps: tuple[EvidenceGap, ...] = ()
    """What it lacks."""

    def fold(self, _event: Event) -> None:
        """Forget the answer: an event may be another observation."""
        self.checked = None


def _gaps(trace: Trace, answer: str, *, with_tools: bool) -> tuple[EvidenceGap, ...]:
    check = trace.view("evidence", _LastCheck)
    if check.checked != (answer, with_tools):
        check.checked, check.gaps = (answer, with_tools), evidence_gaps(trace, answer, with_tools=with_tools)
    return check.gaps


def held_back(trace: Trace, answer: Answer, *, with_tools: bool) -> ReplyRejected | None:
    """The rejection of an answer with gaps where the agent requires evidence, once; None: the answer stands.

    It is corrected in its own step, and counts for no limit of errors: the reply could be read. Whether an answer was
    sent back before follows from the trace (`Trace.held_back`), so a crash does not grant another one; a revision that
    `reflect` asks for begins anew.
    """
    reply = trace.last_reply
    if trace.agent.evidence != "require" or trace.held_back is not None or reply is None:
        return None
    if not (gaps := _gaps(trace, answer.text, with_tools=with_tools)):
        return None
    advice = "gap_advice" if trace.agent.output_schema is None else "gap_advice_output"
    message = f"{_gap_texts(trace, gaps)}\n{end_message(trace.agent.language, advice)}"
    return ReplyRejected(step=reply.step, code=UNSUPPORTED, message=message, excerpt=excerpt(answer.text))


def with_evidence(trace: Trace, finished: Finished, *, with_tools: bool) -> Finished:
    """The finish of a run, with what its answer cites and the gaps of it; `unsupported` where evidence is required.

    Any other status than `completed` stays: it already says that the answer is not one to rely on.
    """
    answer = finished.answer
    if trace.agent.evidence == "off" or answer is None:
        return finished
    citations = tuple(dict.fromkeys((*cited_ids(answer, observations=True), *finished.citations)))
    gaps = _gaps(trace, answer, with_tools=with_tools)
    if not gaps or finished.status != "completed" or trace.agent.evidence != "require":
        return replace(finished, citations=citations, evidence=gaps)
    name = "unsupported" if trace.held_back is not None else "unsupported_vote"
    reason = end_message(trace.agent.language, name, detail=_gap_texts(trace, gaps, " "))
    return replace(finished, status=UNSUPPORTED, reason=reason, citations=citations, evidence=gaps)


def _gap_texts(trace: Trace, gaps: Sequence[EvidenceGap], separator: str = "\n") -> str:
    return separator.join(gap_text(trace.agent.language, gap) for gap in gaps)
