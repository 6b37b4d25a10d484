"""Runs without a client: which of those that lost their process are resumed at the start, and what the log says."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.serve.gateway.clients import CALL, body_of, post
from tests.serve.gateway.conftest import agent, config_of, gateway, until, upstream

from taoloop import MemoryJournal
from taoloop.config.agent_file import load_agent
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError
from taoloop.serve.gateway.config.gateway_file import load_config, load_served_agent


async def _journal_after_a_kill(trace: Trace) -> MemoryJournal:
    """A journal in which nobody is at work on the run, which has made its first call."""
    journal = MemoryJournal()
    index = next(index for index, event in enumerate(trace.events) if event.fact.kind == "observed")
    await journal.append(await journal.create(trace.run_id), trace.events[: index + 1])
    return journal


@pytest.mark.parametrize(
    ("recover", "on_start", "status"),
    [(True, False, "completed"), (False, True, "completed"), (False, False, "running")],
)
def test_lost_runs_are_recovered_as_configured_and_logged(
    recover: bool, on_start: bool, status: str, caplog: pytest.LogCaptureFixture
) -> None:
    with upstream(CALL, "Eight.") as server:
        with gateway(config_of(agent(server))) as before:
            assert post(before, body_of())[0] == 200
        [trace] = before.traces()
        journal = asyncio.run(_journal_after_a_kill(trace))
        config = replace(config_of(agent(server, recover_on_start=on_start)), recover=recover)
        with caplog.at_level("WARNING"), gateway(config, journal=journal, poll_s=0.01) as running:
            last = f"run {trace.run_id} was recovered: completed" if status == "completed" else "tao recover resumes it"
            until(lambda: last in caplog.text)
            assert f"run {trace.run_id} lost its process" in caplog.text
            assert [run.status for run in running.traces()] == [status]


def test_the_agent_of_a_gateway_file_is_found_by_its_source(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text("agents:\n  shop: {model: offline, tools: [calculator]}\n  desk: agent.yaml\n")
    (tmp_path / "agent.yaml").write_text("name: desk\nmodel: offline\n")
    agents = load_config(path).agents
    assert agents["shop"].agent.source == f"{path}#shop"
    assert load_served_agent(f"{path}#shop").toolbox.names == agents["shop"].agent.toolbox.names
    assert agents["desk"].agent.source == load_agent(str(tmp_path / "agent.yaml")).source
    with pytest.raises(ConfigError, match="no agent 'gone' any more"):
        load_served_agent(f"{path}#gone")
