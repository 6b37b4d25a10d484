"""A result in a notebook: its transcript, escaped and small."""

from __future__ import annotations

from taoloop import Agent, Result, ScriptedModel, tool

MARKUP = "<script>alert('x')</script> & <b>"


@tool(tier="read")
def look(n: int) -> str:
    """Look."""
    return f"{MARKUP}{n}" * 200


def run(*script: object) -> Result:
    return Agent(model=ScriptedModel(list(script)), tools=[look]).run_sync(MARKUP, run_id="r1")  # type: ignore[arg-type]


def test_a_result_shows_its_transcript_and_escapes_it() -> None:
    result = run({"tool_calls": [{"name": "look", "args": {"n": 1}}], "text": MARKUP}, f"It is {MARKUP}.")
    shown = result._repr_html_()
    assert "<script" not in shown
    assert "It is &lt;script&gt;" in shown
    assert ">Action look<" in shown
    assert "r1: completed, " in shown
    assert len(shown) < 5_000, "the observation is cut"


def test_a_long_run_stays_small() -> None:
    calls = [{"tool_calls": [{"name": "look", "args": {"n": n}} for n in range(100)]}]
    shown = run(*calls, "Done.")._repr_html_()
    assert "more (result.entries)" in shown
    assert len(shown) < 100_000


def test_a_result_prints_as_one_short_line() -> None:
    assert repr(run("Rome.")) == "<Result r1: completed, 'Rome.'>"
    assert len(repr(run("Rome. " * 1_000))) < 300
    assert "\n" not in repr(run("one\ntwo"))
