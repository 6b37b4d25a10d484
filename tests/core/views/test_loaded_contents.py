"""What a run has loaded: by its cards, as they were when the call ended."""

from __future__ import annotations

import json

from tests.policy.staging import Run, card

from taoloop.core.cards.tool_card import ContentCard, ToolCard
from taoloop.core.events import Fault, Resumed
from taoloop.core.views.event_entries import event_entries
from taoloop.core.views.loaded_contents import loaded_contents


def load_card(digest: str, *, trusted: bool = False, tool: str = "load_skill") -> ToolCard:
    contents = (ContentCard(name="pdf", digest=digest, trusted=trusted), ContentCard(name="mail", digest="sha256:m"))
    return card(tool, "read", "name", egress=False, contents=contents)


def output(digest: str) -> str:
    return json.dumps({"skill": "pdf", "digest": digest, "instructions": "Do it."})


def test_only_a_successful_call_loads() -> None:
    run = Run(cards=(load_card("sha256:a"),))
    assert loaded_contents(run.trace).contents == ()
    run.see("", "load_skill", Fault(code="skill_changed", message="changed"), name="pdf")
    assert loaded_contents(run.trace).contents == ()
    run.see(output("sha256:a"), "load_skill", name="pdf")
    run.see(output("sha256:a"), "load_skill", name="pdf")
    loaded = loaded_contents(run.trace)
    assert [(one.content.digest, one.call_id) for one in loaded.contents] == [("sha256:a", "call_2")]
    assert list(loaded.by_call) == ["call_2", "call_3"]


def test_after_a_resume_the_digest_is_that_of_the_changed_card() -> None:
    run = Run(cards=(load_card("sha256:a"),))
    run.see(output("sha256:a"), "load_skill", name="pdf")
    run.add(Resumed(cards=(load_card("sha256:b", trusted=True),)))
    run.see(output("sha256:b"), "load_skill", name="pdf")
    assert [one.content.digest for one in loaded_contents(run.trace).contents] == ["sha256:a", "sha256:b"]
    entries = [entry for entry in event_entries(run.trace.events, "en") if entry.kind == "observed"]
    details = [dict(entry.details)["Loaded"] for entry in entries]
    assert details == ["pdf · sha256:a · not approved", "pdf · sha256:b · approved"]


def test_a_part_of_a_page_names_no_digest_that_it_cannot_know() -> None:
    """Where the resume that changed the card is not in the part, the output itself contradicts the older card."""
    run = Run(cards=(load_card("sha256:a"),))
    run.add(Resumed(cards=(load_card("sha256:b"),)))
    run.see(output("sha256:b"), "load_skill", name="pdf")
    events = run.trace.events
    observed = event_entries(events[2:], "en", earlier=events[:1])[-1]
    assert "Loaded" not in dict(observed.details)
    assert dict(event_entries(events[2:], "zh", earlier=events[:2])[-1].details)["已加载"] == "pdf · sha256:b · 未批准"


def test_what_must_be_loaded_again_was_loaded_only_before() -> None:
    run = Run(cards=(load_card("sha256:a"), load_card("sha256:a", tool="read_skill_file")))
    run.see(output("sha256:a"), "load_skill", name="pdf")
    loaded = loaded_contents(run.trace)
    assert [one.content.name for one in loaded.only_before(1)] == ["pdf"]
    assert list(loaded.only_before(0)) == []
