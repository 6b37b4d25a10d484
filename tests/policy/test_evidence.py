"""The evidence of an answer: what it cites, and whether the observations contain what its sentences say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.scripting import call

from taoloop import Agent, tool
from taoloop.core.decision import EvidenceGap, cited_ids, number_citations, split_at_citations
from taoloop.core.events import ReplyRejected
from taoloop.core.policy import EvidenceMode
from taoloop.core.views.transcript import Result
from taoloop.models import ScriptedModel
from taoloop.policy.evidence.check import evidence_gaps
from taoloop.policy.evidence.claims import claims_in
from taoloop.policy.evidence.source_text import SourceText
from taoloop.runtime.after.replay import replay

CONTAINED = [
    ("The price is 1,234.50 EUR [obs:call_1].", '{"price": 1234.5}'),
    ("Der Preis ist 1.234,50 EUR [obs:call_1].", '{"price": 1234.5}'),
    ("He said “the show must go on.” [obs:call_1]", "so: the show  must go on, he said"),
    ("Tokyo has 37 million people. [obs:call_1]", "Tokyo: 37,000,000"),
    ("人口为1.2万，名称为「上海塔」 [obs:call_1]。", '{"pop":12000,"name":"上海塔"}'),
    ("Growth was 35% in 2024 [obs:call_1].", "growth 0.35 year 2024"),
    ("There are 3 orders, INV-2041 among them [obs:call_1].", '["INV-2041","INV-2042","INV-1"]'),
    ("It was Ada Lovelace on 12 May 1843 at 2:30 pm [obs:call_1]", "Lovelace, Ada 1843-05-12"),
    ("The field `total_price` is 12 [obs:call_1].", '{"total_price": 12.0}'),
    ("It ran on 10.0.0.1 [obs:call_1]", "host 10.0.0.1"),
    ("He wrote \"say 'hi'\" [obs:call_1]", '{"text": "say \\"hi\\""}'),
]
NOT_CONTAINED = [
    ("The answer is 5. [obs:call_1]", "7"),
    ("It costs 12.5 EUR [obs:call_1].", "12.6"),
    ("He said “never” [obs:call_1].", "always"),
    ("It was written by Grace Hopper [obs:call_1].", "Ada Lovelace"),
    ("The invoice is INV-204 [obs:call_1].", "INV-2041"),
    ("价格是「五折」 [obs:call_1]。", "八折"),
]


def values_in(sentence: str, output: str) -> list[bool]:
    source = SourceText([output])
    return [source.verdict(value) is not False for claim in claims_in(sentence) for value in claim.values]


@pytest.mark.parametrize(("sentence", "output"), CONTAINED)
def test_values_are_found_in_whatever_form(sentence: str, output: str) -> None:
    found = values_in(sentence, output)
    assert found
    assert all(found)


@pytest.mark.parametrize(("sentence", "output"), NOT_CONTAINED)
def test_other_values_are_not_found(sentence: str, output: str) -> None:
    assert not all(values_in(sentence, output))


def test_a_mark_behind_a_sentence_belongs_to_it() -> None:
    first, second = claims_in("Tea costs 5 EUR. [obs:call_1] It is green.")
    assert (first.citations, second.citations) == (("obs:call_1",), ())


def test_citations_are_read_and_numbered() -> None:
    text = "A [obs:call_3], b [obs:call_1, call_3] and c [doc:0123456789ab]."
    assert cited_ids(text, observations=True) == ("obs:call_3", "obs:call_1", "doc:0123456789ab")
    assert cited_ids(text) == ("doc:0123456789ab",)
    assert number_citations(text)[0].startswith("A [1], b [2, 1]")
    assert ("1", "obs:call_3") in split_at_citations(text)


@tool(tier="read")
def stock(item: str) -> str:
    """Look up the price of an item."""
    if item == "gone":
        raise ValueError("no such item")
    return f"{item} costs 1,234.5 EUR"


def ask(mode: EvidenceMode, *replies: Any, task: str = "What does tea cost?") -> Result:
    agent = Agent(model=ScriptedModel(list(replies)), tools=[stock], evidence=mode)
    return agent.run_sync(task)


def codes(gaps: tuple[EvidenceGap, ...]) -> list[str]:
    return [gap.code for gap in gaps]


GOOD, BAD = "Tea costs 1234.50 EUR [obs:call_1].", "Tea costs 99 EUR [obs:call_1]."


def test_an_early_answer_without_evidence_is_held_back_once_s2_29() -> None:
    """S2-29."""
    result = ask("require", "Tea costs 99 EUR.", call("stock", item="tea"), GOOD)
    assert (result.status, result.answer) == ("completed", GOOD)
    rejected = [event.fact for event in result.trace if isinstance(event.fact, ReplyRejected)]
    assert [fact.code for fact in rejected] == ["unsupported"]
    assert "cites no observation" in rejected[0].message
    assert result.trace.total_errors == 0
    assert result.trace.finished is not None
    assert result.trace.finished.citations == ("obs:call_1",)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("Tea costs 99 EUR [obs:call_7].", "unknown"),
        (BAD, "not_contained"),
        ("Tea is cheap.", "no_citation"),
        ("I know that [obs:none].", "used_tools"),
    ],
)
def test_an_answer_cites_observations_that_exist_s2_30(answer: str, code: str) -> None:
    """S2-30."""
    result = ask("require", call("stock", item="tea"), answer, answer)
    assert (result.status, result.answer) == ("unsupported", answer)
    assert code in codes(result.evidence)
    assert [step.same for step in replay(result.trace)] == [True] * len(result.trace)


def test_a_failed_call_is_no_evidence() -> None:
    assert "failed" in codes(ask("warn", call("stock", item="gone"), "It is [obs:call_1].").evidence)


def test_an_answer_that_needs_no_tool_says_so() -> None:
    assert ask("require", "Hello! [obs:none]").status == "completed"
    made_up = ask("warn", "It costs 99 EUR [obs:none].")
    assert codes(made_up.evidence) == ["unsourced"]


def test_a_warning_leaves_the_answer_and_off_checks_nothing() -> None:
    warned = ask("warn", call("stock", item="tea"), BAD)
    assert (warned.status, warned.answer, codes(warned.evidence)) == ("completed", BAD, ["not_contained"])
    unchecked = ask("off", call("stock", item="tea"), BAD)
    assert unchecked.trace.finished is not None
    assert (unchecked.status, unchecked.evidence, unchecked.trace.finished.citations) == ("completed", (), ())


def test_only_a_run_that_checks_has_the_prompt() -> None:
    assert "evidence" not in ask("off", "x").trace.agent.prompts.texts
    assert "evidence" in ask("warn", "x").trace.agent.prompts.texts


TRACE = ask("warn", call("stock", item="tea"), GOOD).trace
PIECES = st.sampled_from(
    ["[obs:call_1]", "[obs:call_2]", "[obs:", "“", "”", '"', "`", "1,2.3'4", "9e99", "。", "\n", "A "]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=20), PIECES), max_size=12))
def test_any_text_is_checked_without_an_error(pieces: list[str]) -> None:
    evidence_gaps(TRACE, "".join(pieces))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40), st.integers(2, 10**8))
def test_a_call_that_does_not_exist_is_never_evidence(text: str, number: int) -> None:
    gaps = evidence_gaps(TRACE, f"{text} [obs:call_{number}]")
    assert any(gap.code == "unknown" and gap.citation == f"obs:call_{number}" for gap in gaps)


@pytest.mark.parametrize(
    "text", ["一" * 6_000, "9" * 6_000, "one hundred " * 3_000, "1e999 " * 50, "亿" * 50, "千" * 5_000]
)
def test_numbers_beyond_all_bounds_are_no_error(text: str) -> None:
    evidence_gaps(TRACE, f"It is {text} [obs:call_1].")
    assert not SourceText([text]).contains(claims_in("It is 12,345.")[0].values[0])


def test_a_typed_answer_may_hold_any_number() -> None:
    agent = Agent(
        model=ScriptedModel([call("stock", item="tea"), "[]"]), tools=[stock], output_type=dict, evidence="warn"
    )
    trace = agent.run_sync("What does tea cost?").trace
    for number in ("1e999999", "1e99999999999999999999999", "9" * 5_000, "NaN", "-0.0"):
        evidence_gaps(trace, f'{{"price": {number}}}')
