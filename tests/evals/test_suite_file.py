"""Suites from YAML."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taoloop.errors import AgentFileError
from taoloop.evals.suite_file import read_suite

CASE = "  - {id: sum, task: Add 2 and 3., expect: {number: 5}}\n"


def suite_file(folder: Path, text: str) -> Path:
    path = folder / "suite.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_suite_has_the_fields_of_its_file(tmp_path: Path) -> None:
    path = suite_file(
        tmp_path,
        """\
suite: orders
description: Refunds.
tools: [calculator]
model: oracle
compare: {strategies: [react, reflect], seeds: [1, 2]}
trials: 3
max_cost_usd: 1.5
limits: {max_steps: 4}
policy: strict
world: {orders: {A1: open}}
people: {refund: approve}
thresholds: {task_success: {at_least: 0.9}}
cases:
  - id: refund
    task: Refund A1.
    category: safety
    files: {notes/a.txt: hello}
    world: {orders: {A2: open}}
    expect:
      number: {value: 3, tolerance: 0.5}
      regex: [a, b]
      em: [Paris, paris]
      json_path: {path: "$.a[0]", equals: 1}
    actions: [{tool: calculator, args: {expression: 1 + 2}}]
    forbidden: [{tool: calculator, args: {expression: 1 / 0}}]
    script: [Done.]
""",
    )

    suite = read_suite(path)
    (case,) = suite.cases()

    assert (suite.name, suite.trials, suite.max_cost_usd, suite.model) == ("orders", 3, 1.5, "oracle")
    assert suite.compare == {"strategies": ("react", "reflect"), "seeds": (1, 2)}
    assert suite.policy is not None
    assert suite.policy.profile == "strict"
    assert (case.category, case.files, case.line) == ("safety", {"notes/a.txt": "hello"}, 14)
    assert [(check.kind, check.expected, check.line) for check in case.checks] == [
        ("number", 3, 20),
        ("regex", "a", 21),
        ("regex", "b", 21),
        ("em", ["Paris", "paris"], 22),
        ("json_path", 1, 23),
    ]
    assert case.checks[0].settings == {"tolerance": 0.5}
    assert case.expected_actions[0].args == {"expression": "1 + 2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("suite: a\ncases:\n  - {id: a, taks: x}\n", ":3: cases[0].taks: there is no such field. Did you mean 'task"),
        ("suite: a\ntirals: 2\ncases: []\n", ":2: tirals: there is no such field. Did you mean 'trials'?"),
        (
            "suite: a\ncases:\n  - id: a\n    task: b\n    expect: {nmber: 1}\n",
            ":5: cases[0].expect.nmber: there is",
        ),
        ("suite: a\ncases:\n  - id: a\n    task: b\n    expect: {regex: '('}\n", ":5: cases[0].expect.regex: the patt"),
        (
            "suite: a\ncases:\n  - id: a\n    task: b\n    expect: {number: five}\n",
            ":5: cases[0].expect.number: a num",
        ),
        (
            "suite: a\ncases:\n  - id: a\n    task: b\n    files: {../x: y}\n",
            ":5: cases[0].files.../x: the path",
        ),
        ("suite: a\npeople: maybe\ncases: []\n", ":2: people: one of approve, refuse, "),
        ("suite: a\n", "suite.yaml:1: the suite has no cases."),
        ("suite: a\nmodel: opnai:x\ncases: []\n", ":2: model: There is no model called 'opnai:x'."),
        ("suite: a\ncompare:\n  strategies: [react, raect]\ncases: []\n", ":3: compare.strategies[1]: There is no str"),
        ("suite: a\nmax_cost_usd: -1\ncases: []\n", ":2: max_cost_usd: a number above 0 is expected, not -1."),
        (
            "suite: a\nthresholds: {task_success: {at_least: 90}}\ncases: []\n",
            ":2: thresholds.task_success.at_least: task_success is a share from 0 to 1, not 90. 90 % is 0.9.",
        ),
        ("suite: ../a\ncases: []\n", ":1: suite: a name of letters, digits"),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(AgentFileError) as error:
        read_suite(suite_file(tmp_path, text))

    assert message in str(error.value)


def test_cases_of_another_file_are_read_one_by_one_and_mistakes_name_their_line(tmp_path: Path) -> None:
    lines = [json.dumps({"id": f"c{n}", "task": "Add.", "expect": {"number": n}}) for n in (1, 2)]
    (tmp_path / "cases.jsonl").write_text("\n".join([*lines, '{"id": "c3", "tsk": 1}']), encoding="utf-8")
    suite = read_suite(suite_file(tmp_path, f"suite: a\ncases:\n{CASE}cases_from: {{file: cases.jsonl}}\n"))

    cases = iter(suite.cases())

    assert [next(cases).case_id for _ in range(3)] == ["sum", "c1", "c2"]
    with pytest.raises(AgentFileError, match=r"cases\.jsonl:3: .*tsk: there is no such field"):
        next(cases)


def test_cases_of_a_function_have_the_same_fields(tmp_path: Path) -> None:
    (tmp_path / "made_cases.py").write_text(
        "def many():\n    for n in range(3):\n        yield {'id': f'c{n}', 'task': 'Add.', 'expect': {'number': n}}\n",
        encoding="utf-8",
    )
    suite = read_suite(suite_file(tmp_path, "suite: a\ncases_from: {function: 'made_cases:many'}\n"))

    assert [case.case_id for case in suite.cases()] == ["c0", "c1", "c2"]
    assert next(iter(suite.cases())).line == 2
