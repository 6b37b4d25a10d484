"""Which marks of people count: of each person the last one, and only while the answer is the one that was marked."""

from __future__ import annotations

from tests.core.views.every_fact import events_of

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Fact, Finished, Resumed, RunStarted
from taoloop.core.human_input import Marked
from taoloop.core.trace import Trace
from taoloop.core.views.marks import RunMarks, run_marks

STARTED = RunStarted(task="Count.", agent=AgentSpec(), nonce="n")
FIVE = Finished(status="completed", answer="5", reason="")
RIGHT, WRONG = Marked(verdict="right", by="ann"), Marked(verdict="wrong", by="ann", note="It is 6.")


def marks(*facts: Fact) -> RunMarks:
    return run_marks(Trace("r", events_of((STARTED, FIVE, *facts))))


def test_a_later_mark_of_the_same_person_replaces_the_earlier_one() -> None:
    assert marks().verdict is None
    assert marks(RIGHT).verdict == "right"
    assert marks(RIGHT, WRONG).by_person == {"ann": WRONG}
    assert marks(RIGHT, Marked(verdict="right", by="bob")).verdict == "right"
    assert marks(RIGHT, Marked(verdict="wrong", by="bob")).verdict == "disputed"
    assert marks(RIGHT, Marked(verdict="wrong", by="bob"), WRONG).verdict == "wrong"


def test_a_mark_ends_with_another_answer_and_stays_where_the_answer_does() -> None:
    six = Finished(status="completed", answer="6", reason="")
    assert marks(WRONG, Resumed(), six).verdict is None
    assert marks(WRONG, Resumed(), FIVE).verdict == "wrong"  # resumed only to draw a lesson
    unanswered = Finished(status="stopped", answer=None, reason="")
    assert marks(Resumed(), unanswered, RIGHT, Resumed(), unanswered).verdict is None
