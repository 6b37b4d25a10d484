"""Doubles and contract suites for tests of agents, tools and plug-ins: shipped, so that no test has to patch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.evals.trouble.drift import DRIFT as DRIFT, DriftInjector as DriftInjector
    from taoloop.models.real_call_switch import (
        allow_real_calls as allow_real_calls,
        forbid_real_calls as forbid_real_calls,
    )
    from taoloop.models.scripted import ScriptedModel as ScriptedModel
    from taoloop.testing.fakes import (
        FakeClock as FakeClock,
        FakeEmbedder as FakeEmbedder,
        FakeNames as FakeNames,
        FakePace as FakePace,
        HttpDouble as HttpDouble,
    )
    from taoloop.testing.journal_contract import JournalContract as JournalContract
    from taoloop.testing.journal_query_contract import JournalQueryContract as JournalQueryContract
    from taoloop.testing.recorder import Recorder as Recorder
    from taoloop.testing.regression import assert_same_decisions as assert_same_decisions, recorded_run as recorded_run
    from taoloop.testing.trace_asserts import (
        calls as calls,
        calls_above as calls_above,
        explained as explained,
        in_order as in_order,
        observations as observations,
        requested as requested,
        story as story,
        violations as violations,
    )


__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.evals.trouble.drift": "DRIFT DriftInjector",
        "taoloop.models.real_call_switch": "allow_real_calls forbid_real_calls",
        "taoloop.models.scripted": "ScriptedModel",
        "taoloop.testing.fakes": "FakeClock FakeEmbedder FakeNames FakePace HttpDouble",
        "taoloop.testing.journal_contract": "JournalContract",
        "taoloop.testing.journal_query_contract": "JournalQueryContract",
        "taoloop.testing.recorder": "Recorder",
        "taoloop.testing.regression": "assert_same_decisions recorded_run",
        "taoloop.testing.trace_asserts": (
            "calls calls_above explained in_order observations requested story violations"
        ),
    },
)
