"""Doubles and contract suites for tests of agents, tools and plug-ins: shipped, so that nobody has to patch."""

from __future__ import annotations

from taoloop.models.scripted import ScriptedModel
from taoloop.testing.clock import FakeClock
from taoloop.testing.http import HttpDouble

__all__ = ["FakeClock", "HttpDouble", "ScriptedModel"]
