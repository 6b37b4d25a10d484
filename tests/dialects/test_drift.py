"""The drift corpus: nothing may be believed that should not be.

This file is also the adapter of the scorer: `python ../shared/drift/score.py tests/dialects/test_drift.py`.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from taoloop.core.cards import ToolCard
from taoloop.core.decision import Act, Answer
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.dialects import get_dialect

CORPUS = Path(__file__).parents[2].parent / "shared" / "drift"
UNDERSTOOD_AT_LEAST = {"text": 78, "json": 28, "native": 17}


def scorer() -> Any:
    spec = importlib.util.spec_from_file_location("drift_score", CORPUS / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not (CORPUS / "dev.jsonl").exists(), reason="the drift corpus is not on this machine")
@pytest.mark.parametrize("dialect", sorted(UNDERSTOOD_AT_LEAST))
def test_nothing_wrong_is_believed(dialect: str) -> None:
    """Design, promise 2 (fail closed): no wrong belief, no leaked text, no crash."""
    lines = (CORPUS / "dev.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case["dialect"] == dialect]
    score = scorer()
    total = score.summary(score.run(parse, cases))
    assert (total["wrong"], total["leaky"], total["crash"]) == (0, 0, 0)
    assert total["correct"] >= UNDERSTOOD_AT_LEAST[dialect]


def parse(case: dict[str, Any]) -> dict[str, Any]:
    cards = tuple(
        ToolCard(name=tool["name"], purpose=tool.get("description", ""), input_schema=tool["parameters"])
        for tool in case["tools"]
    )
    reply = (
        native_reply(case["output"])
        if case["dialect"] == "native"
        else ModelReply(text=case["output"], finish_reason=case["finish_reason"])
    )
    decision = get_dialect(case["dialect"]).read(reply, cards)
    if isinstance(decision, Act) and len(decision.calls) == 1:
        call = decision.calls[0]
        return {"kind": "action", "tool": call.tool, "args": call.args, "answer": None}
    if isinstance(decision, Answer):
        return {"kind": "final", "tool": None, "args": None, "answer": decision.text}
    return {"kind": "reject", "tool": None, "args": None, "answer": None}


def native_reply(output: str) -> ModelReply:
    """One choice of the API as the model adapter hands it on."""
    choice = json.loads(output)
    message = choice["message"]
    functions = [(call["function"], call.get("id")) for call in message.get("tool_calls") or ()]
    if message.get("function_call"):
        functions.append((message["function_call"], None))
    calls = tuple(
        ToolCallText(name=function["name"], arguments=_text(function["arguments"]), id=ref)
        for function, ref in functions
    )
    return ModelReply(text=message.get("content") or "", tool_calls=calls, finish_reason=choice.get("finish_reason"))


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
