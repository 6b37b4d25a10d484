"""Judges in `tao eval`: what the results say of them before and after people marked runs; and baselines that stay."""

from __future__ import annotations

import json

from tests.shell import Shell

from taoloop.cli import exit_codes as exits
from taoloop.evals.results import read_results

ARGS = ("eval", "suite.json", "--db", "judged.db", "--out", "out.json")


def write_suite(tao: Shell) -> None:
    judge = {"judge": {"question": "Is it polite?", "model": "scripted:judge.json"}}
    cases = [
        {"id": case_id, "task": f"Say {case_id}.", "expect": judge, "script": [answer]}
        for case_id, answer in (("hi", "Hi!"), ("bye", "Go."), ("thanks", "Thanks!"))
    ]
    tao.write("suite.json", json.dumps({"suite": "judged", "model": "oracle", "cases": cases}))
    tao.write("judge.json", '["right"]')


def test_a_judge_is_not_believed_until_people_marked_runs(tao: Shell) -> None:
    write_suite(tao)
    shown = tao(*ARGS, code=exits.OK).out
    assert "is not calibrated" in shown
    assert "corrected for its errors" not in shown
    first = read_results(tao.folder / "out.json")
    (judge,) = first.judges.values()
    assert (judge["calibrated"], judge["specificity"]["value"]) == (False, None)

    marks = {"hi": "right", "bye": "wrong"}
    for trial in first.trials[:2]:
        tao("mark", trial.run_id, marks[trial.case_id], "--db", "judged.db", code=exits.OK)
    shown = tao(*ARGS, code=exits.OK).out
    (judge,) = read_results(tao.folder / "out.json").judges.values()
    assert (judge["sensitivity"]["value"], judge["specificity"]["value"]) == (1, 0)
    assert "is not calibrated" not in shown
    assert "agrees with people on 100% (20.7% to 100%) of what they marked right" in shown
    assert "cannot be estimated" in shown  # it calls everything right


def test_the_results_never_replace_a_file_that_the_evaluation_reads(tao: Shell) -> None:
    write_suite(tao)
    tao(*ARGS, code=exits.OK)
    before = (tao.folder / "out.json").read_bytes()
    refused = tao(*ARGS, "--baseline", str(tao.folder / "out.json"), code=exits.USAGE)
    assert "--out would replace" in refused.err
    assert (tao.folder / "out.json").read_bytes() == before
    for replaced in ("out.json", "suite.json"):
        assert "--html would replace" in tao(*ARGS, "--html", str(tao.folder / replaced), code=exits.USAGE).err
