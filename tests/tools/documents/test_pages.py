"""The ReAct paper's tools over a folder of pages and over a dump."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from taoloop import Agent, ApprovalAnswer, MemoryJournal, ScriptedModel
from taoloop.config.agent_file import load_agent
from taoloop.core.events import Observed
from taoloop.core.policy import Policy, Rule
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError, ToolSourceError
from taoloop.runtime.after.replay import replay
from taoloop.runtime.bound_agent import bind
from taoloop.tools.documents import PageFolder, page_tools, paper_tools
from taoloop.tools.tool import Tool

FRONT_ROW = (
    "Front Row is a discontinued media center program. It was made by Apple Inc. for Macs. It came in 2005. "
    "It was controlled by an Apple Remote or the keyboard function keys. It plays films. "
    "Its successor needs no Apple Remote.\n\nThe end of it was in 2011."
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "pages"
    (root / "more").mkdir(parents=True)
    (root / "Front_Row_(software).txt").write_text(FRONT_ROW, encoding="utf-8")
    (root / "more" / "Apple Remote.md").write_text("The Apple Remote was made for Front Row.", encoding="utf-8")
    (root / "more" / "北京.txt").write_text("北京是首都。北京有故宫。故宫很大。", encoding="utf-8")
    (root / ".hidden.txt").write_text("no page", encoding="utf-8")
    (root / "picture.png").write_bytes(b"no page")
    return root


def script(*actions: str) -> ScriptedModel:
    return ScriptedModel([f"Thought: t\nAction: {action}" for action in actions])


def run(tools: tuple[Tool, ...], *actions: str) -> Result:
    agent = Agent(model=script(*actions, "finish[done]"), tools=tools, dialect="text", max_steps=20)
    result = agent.run_sync("Which device?")
    assert all(event.same for event in replay(result.trace))
    return result


def seen(result: Result) -> list[str]:
    return [
        event.fact.output if event.fact.error is None else event.fact.error.code
        for event in result.trace
        if isinstance(event.fact, Observed)
    ]


def test_search_shows_the_first_five_sentences_or_similar_titles(folder: Path) -> None:
    outputs = seen(run(paper_tools(folder), "search[Apple Remotes]", "search[front_row (Software)]", "search[故宫]"))
    assert outputs[0] == "Could not find 'Apple Remotes'. Similar: Apple Remote"
    assert outputs[1].startswith("Front Row is a discontinued media center program.")
    assert outputs[1].endswith("It plays films.")
    assert outputs[2].startswith("Could not find '故宫'.")


def test_lookup_shows_the_next_sentence_each_time(folder: Path) -> None:
    result = run(
        paper_tools(folder),
        "search[Front Row (software)]",
        "lookup[apple remote]",
        "lookup[Apple Remote]",
        "lookup[Apple Remote]",
        "lookup[2005]",
        "lookup[Apple Remote]",
        "search[北京]",
        "lookup[故宫]",
    )
    assert seen(result)[1:] == [
        "(Result 1 / 2) It was controlled by an Apple Remote or the keyboard function keys.",
        "(Result 2 / 2) Its successor needs no Apple Remote.",
        "No more results: 2 sentences of 'Front Row (software)' have 'Apple Remote'.",
        "(Result 1 / 1) It came in 2005.",
        "(Result 1 / 2) It was controlled by an Apple Remote or the keyboard function keys.",
        "北京是首都。 北京有故宫。 故宫很大。",
        "(Result 1 / 2) 北京有故宫。",
    ]


def test_a_search_without_a_page_closes_the_one_before(folder: Path) -> None:
    tools = paper_tools(folder)
    outputs = seen(run(tools, "lookup[a]", "search[Apple Remote]", "search[Nobody Knows It]", "lookup[Apple]"))
    assert (outputs[0], outputs[3]) == ("no_open_page", "no_open_page")


def test_finish_is_the_final_answer(folder: Path) -> None:
    result = run(paper_tools(folder), "search[Apple Remote]")
    assert (result.status, result.answer) == ("completed", "done")
    assert "finish" not in [tool.name for tool in paper_tools(folder)]


def test_the_open_page_survives_the_process_and_is_not_shared(folder: Path) -> None:
    actions = ("search[Front Row (software)]", "lookup[apple remote]", "lookup[apple remote]")
    whole = run(paper_tools(folder), *actions)
    other = run(paper_tools(folder), "search[北京]")

    async def resumed(cut: int) -> Result:
        journal = MemoryJournal()
        await journal.append(await journal.create("r"), whole.trace.events[:cut])
        again = Agent(
            model=script(*actions, "finish[done]"),
            tools=paper_tools(folder),
            dialect="text",
            max_steps=20,
            journal=journal,
        )
        return await again.resume("r")

    for cut in range(1, len(whole.trace)):
        assert seen(asyncio.run(resumed(cut))) == seen(whole), cut
    assert seen(other) == ["北京是首都。 北京有故宫。 故宫很大。"]


def test_calls_of_one_decision_count_in_their_order(folder: Path) -> None:
    calls = [
        {"name": "search", "args": {"entity": "Front Row (software)"}},
        {"name": "lookup", "args": {"string": "Apple Remote"}},
        {"name": "lookup", "args": {"string": "apple remote"}},
    ]
    agent = Agent(model=ScriptedModel([{"tool_calls": calls}, "done"]), tools=paper_tools(folder), early_reads=True)
    outputs = seen(agent.run_sync("Which device?"))
    assert [output[:14] for output in outputs[1:]] == ["(Result 1 / 2)", "(Result 2 / 2)"]


def test_a_search_that_did_not_run_opens_no_page(folder: Path) -> None:
    policy = Policy(rules=(Rule(verdict="deny", tool="search"),))
    model = script("search[Apple Remote]", "lookup[Apple]", "finish[done]")
    denied = Agent(model=model, tools=paper_tools(folder), dialect="text", policy=policy).run_sync("?")
    assert seen(denied) == ["denied", "no_open_page"]
    asked = Policy(rules=(Rule(verdict="ask", tool="search"),))
    refused = Agent(
        model=model,
        tools=paper_tools(folder),
        dialect="text",
        policy=asked,
        approve=lambda _request: ApprovalAnswer(approved=False, by="ann"),
    ).run_sync("?")
    assert seen(refused) == ["refused", "no_open_page"]


def test_a_dump_is_read_line_by_line(tmp_path: Path) -> None:
    dump = tmp_path / "wiki.jsonl"
    lines = [
        {"title": "Ångström unit", "text": "An ångström is a unit. It is small."},
        {"title": "Sentences", "text": ["One here.", "Two here."]},
        {"title": "Paragraphs", "text": [["In one. ", "In two."], ["In three."]]},
        {"name": "no page"},
    ]
    dump.write_text("\n\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n{", encoding="utf-8")
    loaded = page_tools(PageFolder(path=dump))
    assert [problem.place for problem in loaded.problems] == ["line 7", "line 8"]
    outputs = seen(
        run(loaded.tools, "search[ångström unit]", "search[Sentences]", "search[Paragraphs]", "lookup[three]")
    )
    assert outputs == [
        "An ångström is a unit. It is small.",
        "One here. Two here.",
        "In one. In two. In three.",
        "(Result 1 / 1) In three.",
    ]


def test_more_pages_than_are_allowed_are_reported(folder: Path) -> None:
    (problem,) = page_tools(PageFolder(path=folder, max_pages=1)).problems
    assert problem.message == "it has more than 1 pages; the others are left out."


def test_a_page_that_is_gone_is_an_error_of_the_call(folder: Path) -> None:
    tools = paper_tools(folder)
    (folder / "more" / "Apple Remote.md").unlink()
    assert seen(run(tools, "search[Apple Remote]")) == ["page_unreadable"]


def test_what_cannot_be_read_is_refused_with_the_way_out(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none", "it cannot be read"), (tmp_path, "there is no page in it")):
        with pytest.raises(ToolSourceError) as refused:
            paper_tools(path)
        assert reason in str(refused.value)
        assert ".jsonl" in str(refused.value)
    with pytest.raises(ToolSourceError):
        paper_tools(tmp_path / "none.jsonl")
    with pytest.raises(ConfigError):
        PageFolder(path=tmp_path, max_pages=0)


def test_a_tool_file_names_the_pages(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text(
        "model: offline\nstrategy: react_then_cot_sc:n=7\ntools:\n- pages: pages\n", encoding="utf-8"
    )
    agent = load_agent(str(tmp_path / "agent.yaml"))
    assert {"search", "lookup"} <= set(bind(agent).toolbox.names)
    assert bind(agent).strategy.name == "react_then_cot_sc:n=7,temperature=0.7"
