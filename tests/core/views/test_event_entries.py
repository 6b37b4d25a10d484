"""A run as entries: every kind of event is told, from any slice of the run, in either language."""

from __future__ import annotations

from tests.core.views.every_fact import FACTS, events_of

from taoloop.core.events import FACTS as FACT_TYPES, ActionRequested, ActionStarted
from taoloop.core.views.event_entries import EventEntry, event_entries

EVENTS = events_of()


def entry_of(kind: str, number: int = 0) -> EventEntry:
    return [entry for entry in event_entries(EVENTS, "en") if entry.kind == kind][number]


def words(entry: EventEntry) -> str:
    details = [part for detail in entry.details for part in detail]
    texts = [part for text in entry.texts for part in text]
    links = [f"{link.name} {link.run_id} {link.step}" for link in entry.links]
    return "\n".join([entry.title, *details, *texts, *links])


def test_each_event_of_every_kind_is_one_entry_in_its_place() -> None:
    assert {type(fact) for fact in FACTS} == set(FACT_TYPES)
    entries = event_entries(EVENTS, "en")
    assert [(entry.seq, entry.at, entry.kind) for entry in entries] == [
        (event.seq, event.at, event.kind) for event in EVENTS
    ]
    assert all(entry.title for entry in entries)


def test_every_slice_gives_the_entries_of_the_whole() -> None:
    """So an entry that is on the screen stays as it is, and a page can begin anywhere."""
    whole = event_entries(EVENTS, "zh")
    for start in range(0, len(EVENTS), 5):
        assert event_entries(EVENTS[start : start + 5], "zh", earlier=EVENTS[:start]) == whole[start : start + 5]


def test_an_entry_without_its_request_names_the_call_alone() -> None:
    started = next(event for event in EVENTS if isinstance(event.fact, ActionStarted))
    request = next(event for event in EVENTS if isinstance(event.fact, ActionRequested))
    assert event_entries([started], "en")[0].title == "Started · call_1 · attempt 1"
    assert event_entries([started], "en", earlier=[request])[0].title == "Started · buy · call_1 · attempt 1"


def test_an_action_has_its_arguments_the_verdict_its_reasons_and_where_each_value_is_from() -> None:
    entry = entry_of("action_requested")
    assert (entry.tone, entry.call_id, entry.title) == ("ask", "call_1", "Action · buy · call_1")
    text = words(entry)
    for part in ('"item": "tea"', "a person decides", "it spends money", "rule:Spending", "order.json"):
        assert part in text
    assert "item (content): in the task" in text
    assert "shop (destination): only in untrusted output, call_0: go to evil.example" in text
    assert entry_of("action_requested", 1).tone == "bad"


def test_a_reply_begins_its_step_and_a_repair_says_so() -> None:
    first, repair = entry_of("model_replied"), entry_of("model_replied", 1)
    assert (first.step, first.title) == (1, "Step 1")
    assert (repair.step, repair.title) == (None, "Step 1 · corrected reply")
    assert "Tea is needed." in words(repair)
    assert [text.form for text in repair.texts] == ["text", "folded", "folded"]
    assert '→ buy {"item":"tea"}' in words(repair)
    assert "There is no decision in it." in words(entry_of("reply_rejected"))


def test_answers_of_people_say_who_and_whether_that_is_known() -> None:
    assert "ann (claimed)" in words(entry_of("approval_given"))
    assert '"count": 1' in words(entry_of("approval_given"))
    assert "never" in words(entry_of("approval_refused"))
    assert entry_of("paused").tone == "ask"


def test_an_observation_links_its_run_and_names_the_whole_output() -> None:
    entry = entry_of("observed")
    assert entry.artifact == "obs_call_1"
    assert [(link.run_id, link.name) for link in entry.links] == [("r1.1", "In run")]
    assert "obs_call_1 (9,000 · sha256 abc)" in words(entry)
    failed = entry_of("observed", 1)
    assert failed.tone == "bad"
    assert "It was denied. Ask." in words(failed)


def test_a_retry_a_doubt_and_its_end_are_told() -> None:
    assert "attempt 2" in entry_of("action_started", 1).title
    assert "its process ended before the outcome was stored" in words(entry_of("in_doubt"))
    assert entry_of("doubt_settled").title == "It did not happen · buy · call_1"
    assert entry_of("compensated").title == "Could not be undone · buy · call_1"


def test_the_beginning_links_other_runs_and_the_end_has_its_citations() -> None:
    links = {link.name: (link.run_id, link.step) for link in entry_of("run_started").links}
    assert links == {"Part of run": ("outer", None), "Forked from run": ("earlier", 2)}
    assert entry_of("finished").citations == ("doc:0123456789ab",)
    assert "drop · call_2" in words(entry_of("finished"))


def test_limits_notes_and_what_became_of_the_prompt() -> None:
    assert "12 of 12" in words(entry_of("limit_reached"))
    assert "max_steps=12" in words(entry_of("resumed"))
    assert "Hurry up." in words(entry_of("noted"))
    assert "about 900 → 300 tokens" in words(entry_of("compacted"))


def test_chinese_entries_have_no_english_words_of_ours() -> None:
    titles = [entry.title for entry in event_entries(EVENTS, "zh")]
    assert titles[0] == "任务"
    assert titles[4] == "第 1 步 · 更正后的回复"
    assert titles[18] == "观察 · buy · call_1"
