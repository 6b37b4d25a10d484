"""Doubles and contract suites for tests of agents, tools and plug-ins: shipped, so that no test has to patch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.models.real_call_switch import allow_real_calls, forbid_real_calls
    from taoloop.models.scripted import ScriptedModel
    from taoloop.testing.drift import DriftInjector
    from taoloop.testing.drift_classes import DRIFT
    from taoloop.testing.fakes import FakeClock, FakeEmbedder, FakeNames, FakePace, HttpDouble
    from taoloop.testing.recorder import Recorder
    from taoloop.testing.regression import assert_same_decisions, recorded_run
    from taoloop.testing.trace_asserts import (
        calls,
        calls_above,
        explained,
        in_order,
        observations,
        requested,
        story,
        violations,
    )

__all__ = [
    "DRIFT",
    "DriftInjector",
    "FakeClock",
    "FakeEmbedder",
    "FakeNames",
    "FakePace",
    "HttpDouble",
    "Recorder",
    "ScriptedModel",
    "allow_real_calls",
    "assert_same_decisions",
    "calls",
    "calls_above",
    "explained",
    "forbid_real_calls",
    "in_order",
    "observations",
    "recorded_run",
    "requested",
    "story",
    "violations",
]

__getattr__, __dir__ = lazy_exports(
    globals(),
    {
        "taoloop.models.real_call_switch": "allow_real_calls forbid_real_calls",
        "taoloop.models.scripted": "ScriptedModel",
        "taoloop.testing.drift": "DriftInjector",
        "taoloop.testing.drift_classes": "DRIFT",
        "taoloop.testing.fakes": "FakeClock FakeEmbedder FakeNames FakePace HttpDouble",
        "taoloop.testing.recorder": "Recorder",
        "taoloop.testing.regression": "assert_same_decisions recorded_run",
        "taoloop.testing.trace_asserts": "calls calls_above explained in_order observations requested story violations",
    },
)
