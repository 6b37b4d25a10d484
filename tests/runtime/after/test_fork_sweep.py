"""Every fork of every kind of run replays, or is refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.after.test_fork import _fresh, agent, both, call, count, forked, pay, sound, tell  # noqa: F401  # a fixture

from taoloop import Limits, ScriptedModel
from taoloop.errors import ConfigError

RUNS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "errors": (
        [call("count"), call("nothing"), "", call("count", n="2"), "done"],
        {"limits": Limits(max_consecutive_errors=9)},
    ),
    "repeated": ([call("count", n=1)] * 5, {"limits": Limits(max_steps=None)}),
    "approved": ([call("pay", amount=1), call("count", n=1), "done"], {"approve": lambda _: True}),
    "refused": ([call("pay", amount=1), "done"], {"approve": lambda _: False}),
    "waiting": ([call("count", n=1), call("pay", amount=1)], {}),
    "call limit": ([both(*(("count", {"n": n}) for n in range(3))), "done"], {"limits": Limits(max_tool_calls=2)}),
    "compacted": (
        [
            call("tell", lines=400),
            call("tell", lines=300),
            call("count", n=1),
            call("tell", lines=500),
            "s",
            "t",
            "done",
        ],
        {"context_tokens": 1500, "model_strict": False},
    ),
}


EDITS: list[dict[str, Any]] = [
    {},
    {"task": "y"},
    {"instructions": "Be brief."},
    {"thought": "So."},
    {"decision": {"tool": "count", "args": {"n": 9}}},
    {"decision": {"answer": "x"}},
    {"observation": "z"},
    {"error": "gone: it is"},
]


@pytest.mark.parametrize("name", RUNS)
def test_every_fork_of_every_run_replays_or_is_refused_with_a_reason(name: str) -> None:
    script, options = RUNS[name]
    model = ScriptedModel(script, strict=options.pop("model_strict", True))
    first = agent(model, **options).run_sync("x").trace
    made = 0
    for at in range(1, len(first.steps) + 2):
        for edit in EDITS:
            try:
                trace = forked(first, at, edit=edit)
            except ConfigError:
                continue
            sound(trace)
            made += 1
    assert made >= len(first.steps) * 4
