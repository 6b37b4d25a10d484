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
    from taoloop.testing.assertions import (
        assert_asked as assert_asked,
        assert_called as assert_called,
        assert_denied as assert_denied,
        assert_limit_reached as assert_limit_reached,
        assert_not_asked as assert_not_asked,
        assert_not_called as assert_not_called,
    )
    from taoloop.testing.engine_contract import EngineContract as EngineContract
    from taoloop.testing.fakes import (
        FakeClock as FakeClock,
        FakeEmbedder as FakeEmbedder,
        FakeNames as FakeNames,
        FakePace as FakePace,
        HttpDouble as HttpDouble,
    )
    from taoloop.testing.journal_contract import JournalContract as JournalContract
    from taoloop.testing.journal_query_contract import JournalQueryContract as JournalQueryContract
    from taoloop.testing.killed_journal import (
        Killed as Killed,
        KillingJournal as KillingJournal,
        KillPoint as KillPoint,
    )
    from taoloop.testing.recorder import Recorder as Recorder
    from taoloop.testing.regression import assert_same_decisions as assert_same_decisions, recorded_run as recorded_run
    from taoloop.testing.restart_harness import (
        Restart as Restart,
        assert_effect_once as assert_effect_once,
        restarts as restarts,
        restarts_of_processes as restarts_of_processes,
    )
    from taoloop.testing.trace_asserts import (
        calls as calls,
        calls_above as calls_above,
        denied as denied,
        explained as explained,
        in_order as in_order,
        observations as observations,
        questions as questions,
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
        "taoloop.testing.engine_contract": "EngineContract",
        "taoloop.testing.fakes": "FakeClock FakeEmbedder FakeNames FakePace HttpDouble",
        "taoloop.testing.journal_contract": "JournalContract",
        "taoloop.testing.journal_query_contract": "JournalQueryContract",
        "taoloop.testing.recorder": "Recorder",
        "taoloop.testing.regression": "assert_same_decisions recorded_run",
        "taoloop.testing.assertions": "assert_asked assert_called assert_denied assert_limit_reached assert_not_asked"
        " assert_not_called",
        "taoloop.testing.killed_journal": "Killed KillPoint KillingJournal",
        "taoloop.testing.restart_harness": "Restart assert_effect_once restarts restarts_of_processes",
        "taoloop.testing.trace_asserts": "calls calls_above denied explained in_order observations questions requested"
        " story violations",
    },
)
