"""The drift corpus: nothing may be believed that should not be.

This file is also the adapter of the scorer: `python ../shared/drift/score.py tests/dialects/test_drift.py`.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from taoloop.dialects import read_reply

CORPUS = Path(__file__).parents[2].parent / "shared" / "drift"
UNDERSTOOD_AT_LEAST = 0.98


def scorer() -> Any:
    spec = importlib.util.spec_from_file_location("drift_score", CORPUS / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not (CORPUS / "dev.jsonl").exists(), reason="the drift corpus is not on this machine")
@pytest.mark.parametrize("dialect", ["fenced", "json", "native", "text"])
def test_nothing_wrong_is_believed(dialect: str) -> None:
    """Design, promise 2 (fail closed): no wrong belief, no leaked text, no crash; and most replies are understood."""
    lines = (CORPUS / "dev.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case["dialect"] == dialect]
    score = scorer()
    total = score.summary(score.run(parse, cases, strict=True))
    assert (total["wrong"], total["leaky"], total["crash"]) == (0, 0, 0)
    assert total["correct"] >= UNDERSTOOD_AT_LEAST * len(cases)


def parse(case: dict[str, Any]) -> dict[str, Any]:
    reading = read_reply(case["dialect"], case["tools"], case["output"], case["finish_reason"])
    return {"kind": reading.kind, "tool": reading.tool, "args": reading.args, "answer": reading.answer}
