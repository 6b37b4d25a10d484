"""The suites hotpotqa and fever: exact match as published, and citations counted over the supporting pages."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.evals.suites.shipped_runs import run_shipped

from taoloop import Agent
from taoloop.core.events import Observed
from taoloop.errors import AgentFileError, ConfigError
from taoloop.evals.suites.data_files import DATA_FOLDER, read_records
from taoloop.evals.suites.hotpotqa import hotpotqa_cases, lookup, search
from taoloop.evals.worlds import World, entered_world


@pytest.fixture(autouse=True)
def _samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_FOLDER, raising=False)


def test_citations_of_hotpotqa_are_counted_over_the_supporting_pages(tmp_path: Path) -> None:
    """S2-40: two pages for each of six questions; `half` cites one of them and one that is none."""
    run = run_shipped("hotpotqa", tmp_path, models=["oracle", "script:half"])
    names = ("task_success", "citation_precision", "citation_recall")
    assert run.figures("oracle", *names) == (1.0, 1.0, 1.0)
    assert run.figures("script:half", *names) == (1.0, 0.5, 0.5)
    assert run.of("oracle").metrics["citation_recall"].n == 12


def test_the_offline_model_cannot_answer_hotpotqa(tmp_path: Path) -> None:
    cases = [case["id"] for case in hotpotqa_cases()][:2]
    run = run_shipped("hotpotqa", tmp_path, cases=cases, models=["offline"])
    assert run.figures("agent", "task_success", "no_answer") == (0.0, 1.0)


def test_lookup_goes_through_the_page_that_was_opened_last(tmp_path: Path) -> None:
    case = next(hotpotqa_cases())
    title, sentences = next(iter(case["world"]["pages"].items()))
    script: list[Any] = [
        {"tool_calls": [{"name": "search", "args": {"entity": f"{title} "}}]},
        *[{"tool_calls": [{"name": "lookup", "args": {"string": "e"}}]}] * (len(sentences) + 1),
        {"tool_calls": [{"name": "search", "args": {"entity": "Nowhere"}}]},
        "Done.",
    ]
    with entered_world(World(tmp_path, case["world"])):
        agent = Agent(model=script, tools=[search, lookup], max_steps=20)
        result = agent.run_sync("Look.")
    observed = [event.fact for event in result.trace if isinstance(event.fact, Observed)]
    found = sum("e" in sentence for sentence in sentences)
    assert observed[1].output.startswith(f'(Result 1 / {found} in Page "{title}") ')
    assert observed[found + 1].output == f'No more results in Page "{title}".'
    assert "There is no page 'Nowhere'. Similar: " in (observed[-1].error.message if observed[-1].error else "")


def test_recorded_runs_have_the_figures_of_their_record(tmp_path: Path) -> None:
    """S2-1, S2-2: as many are right as in the record, and each call is the recorded one."""
    _check_recorded(tmp_path, records=_fever_records()[-10:], right=7)


@pytest.mark.nightly
def test_all_recorded_runs_of_the_sample(tmp_path: Path) -> None:
    """18 of the 35 are right (of all 500: 0.540)."""
    _check_recorded(tmp_path, records=_fever_records(), right=18)


def _fever_records() -> list[dict[str, Any]]:
    return list(read_records("fever_davinci002_sample.jsonl", "*fever*.jsonl"))


def _check_recorded(folder: Path, records: list[dict[str, Any]], right: int) -> None:
    run = run_shipped("fever", folder, cases=[str(record["id"]) for record in records])
    actions = [step["action"].strip() for record in records for step in record["steps"]]
    recorded = Counter(action.partition("[")[0] for action in actions if action.endswith("]"))
    calls = run.calls_by_tool("fever")
    assert run.figures("fever", "task_success") == (right / len(records),)
    assert sum(record["em"] for record in records) == right
    assert {name: calls[name] for name in recorded} == dict(recorded)


def test_an_oracle_knows_every_label(tmp_path: Path) -> None:
    cases = [str(record["id"]) for record in _fever_records()[:4]]
    run = run_shipped("fever", tmp_path, cases=cases, models=["oracle", "offline"])
    assert run.figures("oracle", "task_success", "mean_steps") == (1.0, 2.0)
    assert run.figures("offline", "task_success") == (0.0,)


def test_fever_has_no_gold_evidence_and_takes_a_file_that_has_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2-40: precision and recall of citations over the field `evidence`; without it there is no figure of recall."""
    record = next(record for record in _fever_records() if record["id"] == 3687)
    assert not any("evidence" in record for record in _fever_records())
    folder = tmp_path / "data"
    folder.mkdir()
    evidence = ["Franklin, Tennessee", "a sentence of a page that was not read"]
    cited = record | {"id": 1, "evidence": evidence[:1], "answer": "REFUTES [obs:call_1]"}
    half = record | {"id": 2, "evidence": evidence, "answer": "REFUTES [obs:call_1]"}
    path = folder / "my_fever.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in (cited, half, record)), encoding="utf-8")
    monkeypatch.setenv(DATA_FOLDER, str(folder))
    run = run_shipped("fever", tmp_path, models=["script:davinci", "oracle"])
    names = ("task_success", "citation_precision", "citation_recall")
    for configuration in ("script:davinci", "oracle"):
        assert run.figures(configuration, *names) == (1.0, 1.0, 2 / 3)
    path.write_text(json.dumps(record | {"evidence": "Franklin"}) + "\n", encoding="utf-8")
    with pytest.raises(AgentFileError, match="evidence"):
        run_shipped("fever", tmp_path)


def test_without_evidence_fever_has_no_figure_of_recall(tmp_path: Path) -> None:
    run = run_shipped("fever", tmp_path, cases=["3687"])
    assert run.figures("fever", "citation_precision", "citation_recall") == (None, None)


def test_larger_data_comes_from_a_folder_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = list(read_records("hotpotqa_sample.jsonl", "hotpotqa*.jsonl"))
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path))
    with pytest.raises(ConfigError, match=r"has 0 files hotpotqa\*\.jsonl"):
        list(hotpotqa_cases())
    path = tmp_path / "hotpotqa_mine.jsonl"
    path.write_text(json.dumps(records[0]) + "\n[]\n")
    with pytest.raises(AgentFileError, match=r"hotpotqa_mine\.jsonl:2: this line is not a JSON object"):
        list(hotpotqa_cases())
    path.write_text(json.dumps(records[0]) + "\n")
    assert [case["id"] for case in hotpotqa_cases()] == [records[0]["id"]]
