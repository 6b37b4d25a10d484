"""`tao eval`."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.shell import Shell, until_true, waiting

from taoloop.cli import exit_codes as exits
from taoloop.evals.trials.record_file import open_records, record_path

DESK = '''
from pathlib import Path

from taoloop import tool
from taoloop.evals.worlds import current_world


@tool(tier="read")
def count(by: int) -> int:
    """Count.

    Args:
        by: by how much
    """
    gate = Path(__file__).with_name("gate")
    if gate.exists() and by == 3:
        gate.read_text()  # waits until somebody writes
    state = current_world().state
    state["n"] = state.get("n", 0) + by
    return state["n"]


@tool(tier="read")
def leak(text: str) -> str:
    """Leak.

    Args:
        text: what
    """
    Path(__file__).with_name("leaked.txt").write_text(text)
    return text


def right(answer: str) -> bool:
    return answer == "Done."
'''
LEAKING_LINE = DESK[: DESK.index("leaked.txt")].count("\n") + 1


def counting_cases(numbers: range) -> list[dict[str, Any]]:
    return [
        {
            "id": f"count-{number}",
            "task": f"Count by {number}.",
            "expect": {"number": number, "world": {"n": number}},
            "script": [{"tool_calls": [{"name": "count", "args": {"by": number}}]}, f"{number}"],
        }
        for number in numbers
    ]


def write_suite(tao: Shell, cases: list[dict[str, Any]], **fields: Any) -> str:
    tao.write("desk.py", DESK)
    suite = {"suite": "counts", "tools": ["desk:count", "desk:leak"], "model": "oracle", "cases": cases, **fields}
    tao.write("suite.json", json.dumps(suite, indent=1))
    return "suite.json"


def results_of(tao: Shell, name: str = "out.json") -> dict[str, Any]:
    results: dict[str, Any] = json.loads((tao.folder / name).read_text("utf-8"))
    return results


def test_the_smoke_suite_passes_offline_and_its_results_have_every_fixed_metric(tao: Shell) -> None:
    """S2-36, S2-37, S2-38, S2-39, S2-42, S3-53 to S3-57: every metric that was asked for, with its interval."""
    shown = tao("eval", "smoke", "--out", "out.json", "--db", "evals.db", code=exits.OK)

    results = results_of(tao)
    (metrics,) = results["metrics"].values()
    assert set(metrics) >= {
        *("task_success", "pass_hat_k", "no_answer", "mean_steps", "tool_success", "tool_selection"),
        *("repeated_actions", "citation_precision", "citation_recall", "high_risk_interception"),
        *("questions_per_task", "duplicate_effects", "cost_usd", "latency_p50_s", "latency_p95_s"),
    }
    assert all({"value", "low", "high", "n"} <= set(metric) for metric in metrics.values())
    assert metrics["task_success"]["value"] == 1.0
    assert metrics["citation_precision"]["value"] is None, "none is not zero"
    assert "100% right" in shown.out
    run_id = results["trials"][0]["run_id"]
    assert run_id.startswith("product-1-")
    assert "391" in tao("show", run_id, "--db", "evals.db", code=exits.OK).out


def test_suites_that_come_with_taoloop_are_listed(tao: Shell) -> None:
    assert "smoke" in tao("eval", "--list", code=exits.OK).out
    assert "快速检查智能体" in tao("eval", "--list", TAOLOOP_LANG="zh", code=exits.OK).out
    assert "There is no suite 'smok'. Did you mean 'smoke'?" in tao("eval", "smok", code=exits.USAGE).one_line


def test_configurations_are_the_product_of_the_axes_and_named_by_what_differs(tao: Shell) -> None:
    tao("eval", "smoke", "--strategy", "react,reason_only", "--dialect", "native,json", "--model", "oracle", "--case",
        "product", "--out", "out.json", code=exits.OK)  # fmt: skip

    assert [each["name"] for each in results_of(tao)["configurations"]] == [
        "react / native",
        "react / json",
        "reason_only / native",
        "reason_only / json",
    ]


def test_a_second_call_runs_nothing_again_and_fresh_does(tao: Shell) -> None:
    suite = write_suite(tao, counting_cases(range(1, 4)))
    tao("eval", suite, "--out", "first.json", "--trials", "2", code=exits.OK)
    again = tao("eval", suite, "--out", "second.json", "--trials", "2", code=exits.OK)
    tao("eval", suite, "--out", "third.json", "--trials", "2", "--fresh", code=exits.OK)

    first, second, third = (results_of(tao, f"{name}.json")["trials"] for name in ("first", "second", "third"))
    assert first == second
    assert "6 trials were kept from an earlier call" in again.out
    assert {trial["run_id"] for trial in first}.isdisjoint(trial["run_id"] for trial in third)


def test_a_changed_case_alone_is_run_again_and_changed_checks_alone_are_only_checked_again(tao: Shell) -> None:
    cases = counting_cases(range(1, 4))
    tao("eval", write_suite(tao, cases), "--out", "first.json", code=exits.OK)
    cases[0]["expect"]["number"] = 7
    cases[1]["task"] = "Count by two."
    tao("eval", write_suite(tao, cases), "--out", "second.json", code=exits.OK)

    first, second = (
        {trial["case_id"]: trial for trial in results_of(tao, f"{name}.json")["trials"]} for name in ("first", "second")
    )
    assert [first[name]["run_id"] == second[name]["run_id"] for name in first] == [True, False, True]
    assert [second[name]["passed"] for name in first] == [False, True, True]


def test_results_are_measured_again_without_running(tao: Shell) -> None:
    cases = counting_cases(range(1, 3))
    tao("eval", write_suite(tao, cases), code=exits.OK)
    cases[0]["expect"] = {"number": 9}
    cases.append(counting_cases(range(8, 9))[0])
    shown = tao("eval", write_suite(tao, cases), "--remeasure", "--out", "out.json", code=exits.OK)

    assert [trial["passed"] for trial in results_of(tao)["trials"]] == [False, True]
    assert "1 of 3 trials could not be measured again" in shown.out


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe with a name, and signals")
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGKILL, -signal.SIGKILL),
        pytest.param(signal.SIGINT, exits.INTERRUPTED, marks=pytest.mark.nightly),
    ],
)
def test_after_a_crash_in_the_middle_finished_cases_are_kept_and_the_rest_is_resumed(
    tao: Shell, number: signal.Signals, code: int
) -> None:
    suite = write_suite(tao, counting_cases(range(1, 6)))
    gate = tao.folder / "gate"
    os.mkfifo(gate)
    process = tao.start("eval", suite, "--concurrency", "1", "--db", "evals.db")
    records = record_path(tao.folder / "evals.db")
    until_true(process, "two records", lambda: records.exists() and records.read_text("utf-8").count("count-2-1") > 0)
    with waiting(process, "the third trial"), gate.open("w"):  # its tool has opened the gate, too
        process.send_signal(number)
        process.wait()
    errors = process.communicate()[1]
    before = records.read_bytes()
    gate.unlink()

    tao("eval", suite, "--concurrency", "1", "--db", "evals.db", "--out", "out.json", code=exits.OK)

    assert process.returncode == code, errors
    assert records.read_bytes().startswith(before)
    assert before.count(b"\n") == 3, "the header and two finished trials"
    trials = results_of(tao)["trials"]
    assert [trial["case_id"] for trial in trials] == [f"count-{n}" for n in range(1, 6)]
    assert all(trial["passed"] for trial in trials)
    kinds = [event["kind"] for event in tao("show", trials[2]["run_id"], "--db", "evals.db", "--json").events]
    assert kinds.count("run_started") == kinds.count("resumed") == 1, "the third run went on where it was"


def test_two_evaluations_do_not_work_on_one_database(tao: Shell) -> None:
    suite = write_suite(tao, counting_cases(range(1, 2)))
    database = tao.folder / "evals.db"
    with open_records(record_path(database), "counts", "abc"):
        refused = tao("eval", suite, "--db", "evals.db", code=exits.HELD)

    assert "Another `tao eval` is at work on" in refused.err
    tao("eval", suite, "--db", "evals.db", code=exits.OK)


def test_a_tool_that_writes_outside_its_folder_is_named_with_file_and_line(tao: Shell) -> None:
    leaking = {"tool_calls": [{"name": "leak", "args": {"text": "secret"}}]}
    case = {"id": "leaks", "task": "Leak.", "expect": {"exact": "Done."}, "script": [leaking, "Done."]}
    shown = tao("eval", write_suite(tao, [case, *counting_cases(range(1, 2))]), "--out", "out.json", code=exits.OK)

    assert f"the tool leak tried to write {tao.folder / 'leaked.txt'} outside its folder" in shown.out
    assert f"({tao.folder / 'desk.py'}:{LEAKING_LINE})" in shown.out
    assert not (tao.folder / "leaked.txt").exists()
    assert [trial["passed"] for trial in results_of(tao)["trials"]] == [None, True]
    assert results_of(tao)["metrics"]["agent"]["task_success"]["n"] == 1, "an invalid trial counts in no rate"


def test_the_budget_ends_an_evaluation_and_a_higher_one_goes_on(tao: Shell) -> None:
    cases = counting_cases(range(1, 6))
    for case in cases:
        case["script"][0]["cost_usd"] = 0.4
    suite = write_suite(tao, cases, max_cost_usd=1.0, concurrency=1)
    shown = tao("eval", suite, "--out", "out.json", code=exits.OK)

    assert "The limit of 1.00 USD (max_cost_usd) was reached." in shown.out
    assert "3 of 5 trials did not end" in shown.out
    assert len(results_of(tao)["trials"]) == 2

    tao("eval", suite, "--max-cost", "9", "--out", "out.json", code=exits.OK)
    assert sum(trial["cost_usd"] for trial in results_of(tao)["trials"]) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tols": []}, "suite.json:33: tols: there is no such field. Did you mean 'tools'?"),
        ({"model": "script:bad"}, "suite.json:9: the case 'count-1' has no script for the model 'script:bad'."),
        ({"tools": ["desk:cuont"]}, "suite.json:4: tools[0]: "),
    ],
)
def test_a_mistake_in_a_suite_is_one_line_with_file_and_line(tao: Shell, change: dict[str, Any], message: str) -> None:
    suite = write_suite(tao, counting_cases(range(1, 2)), **change)

    assert message in tao("eval", suite, code=exits.USAGE).one_line
    assert not list(Path(tao.folder).glob("evals/*.jsonl")), "nothing was run"


def test_a_line_that_is_no_record_is_named_and_one_that_a_crash_cut_off_is_run_again(tao: Shell) -> None:
    suite = write_suite(tao, counting_cases(range(1, 3)))
    tao("eval", suite, "--db", "evals.db", "--concurrency", "1", code=exits.OK)
    records = record_path(tao.folder / "evals.db")
    whole = records.read_text("utf-8")
    records.write_text(whole[:-20], "utf-8")

    tao("eval", suite, "--db", "evals.db", "--out", "out.json", code=exits.OK)

    assert records.read_text("utf-8").splitlines()[:2] == whole.splitlines()[:2]
    assert len(results_of(tao)["trials"]) == 2
    records.write_text(whole.replace('"passed": true', '"passt": true', 1), "utf-8")
    assert (
        f"{records}:2: this is not the record of a trial"
        in tao("eval", suite, "--db", "evals.db", code=exits.USAGE).err
    )


def test_an_evaluation_in_which_no_trial_counts_is_no_success(tao: Shell) -> None:
    case = {"id": "broken", "task": "Say it.", "expect": {"function": "desk:broken"}, "script": ["Done."]}
    suite = write_suite(tao, [case])
    tao.write("desk.py", DESK + "\n\ndef broken(answer: str) -> bool:\n    raise SystemExit('no')\n")
    shown = tao("eval", suite, "--out", "out.json", code=exits.FOUND)

    (trial,) = results_of(tao)["trials"]
    assert (trial["passed"], trial["fault"]) == (None, "environment")
    assert f"the check raised SystemExit: no at {tao.folder / 'desk.py'}:" in shown.out


def test_a_run_that_did_not_complete_says_why(tao: Shell) -> None:
    case = {"id": "loop", "task": "Count.", "expect": {"number": 1}}
    case["scripts"] = {"endless": [{"tool_calls": [{"name": "count", "args": {"by": 1}}]}]}
    shown = tao("eval", write_suite(tao, [case]), "--model", "script:endless", "--out", "out.json", code=exits.OK)

    (trial,) = results_of(tao)["trials"]
    assert (trial["status"], trial["passed"], trial["fault"]) == ("model_failed", False, "agent")
    assert trial["reason"] in shown.out
    assert "'script:endless' of the case 'loop' is over" in trial["reason"]


def test_a_configuration_that_the_baseline_lacks_is_said_to_be_not_compared(tao: Shell) -> None:
    suite = write_suite(tao, counting_cases(range(1, 3)))
    tao("eval", suite, "--strategy", "react,reflect", "--out", "first.json", code=exits.OK)
    shown = tao("eval", suite, "--strategy", "reflect,act_only", "--baseline", "first.json", "--out", "out.json")

    note = "has none of this name: act_only. It has: react, reflect."
    assert any(note in line for line in results_of(tao)["notes"])
    assert note in shown.out.replace("\n", " ")
    assert [each["first"] for each in results_of(tao)["comparisons"]] == ["reflect", "baseline: reflect"]


def test_a_baseline_with_none_of_the_configurations_is_refused_before_anything_is_run(tao: Shell) -> None:
    suite = write_suite(tao, counting_cases(range(1)))
    tao("eval", suite, "--strategy", "react,reflect", "--out", "first.json")
    refused = tao("eval", suite, "--strategy", "act_only,standard", "--baseline", "first.json", code=exits.USAGE)
    assert "none of the configurations act_only, standard. It has: react, reflect." in refused.err


def test_a_baseline_of_another_suite_or_version_is_refused_before_anything_is_run(tao: Shell) -> None:
    suite = write_suite(tao, counting_cases(range(2)))
    tao("eval", suite, "--out", "first.json")
    results = json.loads((tao.folder / "first.json").read_text(encoding="utf-8"))
    for change, message in (
        ({"suite": "other"}, "The baseline 'first.json' has results of the suite 'other', not of '"),
        ({"version": "9.0", "new": 1}, "these are results of taoloop 9.0, which this version, "),
    ):
        (tao.folder / "first.json").write_text(json.dumps(results | change), encoding="utf-8")
        refused = tao("eval", suite, "--baseline", "first.json", "--fresh", code=exits.USAGE)
        assert message in refused.err
        assert not refused.out


def test_where_nothing_was_run_there_is_nothing_to_measure_again_and_nothing_is_made(tao: Shell) -> None:
    write_suite(tao, counting_cases(range(1)))
    refused = tao("eval", "suite.json", "--db", "new/evals.db", "--remeasure")
    assert refused.code == exits.USAGE
    assert "no trial of 'counts' was run with the database" in refused.err
    assert not (tao.folder / "new").exists()


def test_worlds_that_cannot_be_made_are_reported(tao: Shell) -> None:
    write_suite(tao, counting_cases(range(1)))
    (tao.folder / "evals.db.worlds").touch()
    refused = tao("eval", "suite.json", "--db", "evals.db")
    assert refused.code == exits.JOURNAL
    assert "evals.db.worlds: the folder for the worlds of trials cannot be made: " in refused.err


def test_a_mistake_in_the_code_of_a_tool_names_its_line(tao: Shell) -> None:
    write_suite(tao, counting_cases(range(1)))
    desk = tao.folder / "desk.py"
    desk.write_text(DESK.replace('@tool(tier="read")', '@tool(tier="reed")', 1))
    line = desk.read_text().splitlines().index('@tool(tier="reed")') + 1
    refused = tao("eval", "suite.json")
    assert f"desk.py:{line}: The tool 'count' has tier = 'reed'. Tiers are: read" in refused.err


def test_an_unknown_model_is_answered_with_those_that_only_suites_have(tao: Shell) -> None:
    refused = tao("eval", "smoke", "--model", "orcale")
    assert "oracle, hijacked, script:NAME. Did you mean 'oracle'?" in refused.err
    assert refused.code == exits.USAGE
