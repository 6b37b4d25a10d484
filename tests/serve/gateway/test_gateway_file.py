"""The gateway's own form: agents by file or in place, keys, the server, services; each mistake with its place."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.serve.gateway.conftest import upstream

from taoloop.config.settings_reader import fields_of
from taoloop.errors import AgentFileError
from taoloop.journals.retention import Retention
from taoloop.models.prices import Price
from taoloop.runtime.bound_agent import bind
from taoloop.serve.gateway.config.config_summary import config_summary
from taoloop.serve.gateway.config.gateway_file import GatewayFields, load_config
from taoloop.serve.gateway.config.model import GatewayConfig
from taoloop.tools.openapi.operation_call import OperationCaller

DIGEST = f"sha256:{sha256(b'tao-a-key-of-the-tests').hexdigest()}"
API = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "https://shop.example.com/v1"}],
    "paths": {"/stock": {"get": {"operationId": "stock", "summary": "Tell what is there."}}},
}


def load(folder: Path, content: Any, **options: Any) -> GatewayConfig:
    path = folder / "gate.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return load_config(path, **{"env": {}, **options})


def test_agents_stand_in_files_or_in_place_and_have_the_names_that_are_given_here(tmp_path: Path) -> None:
    (tmp_path / "sums.yaml").write_text("name: other\nmodel: offline\ntools: [calculator]\nmax_steps: 3")
    content = """
agents:
  sums: sums.yaml
  again: {file: sums.yaml, description: The same once more.}
  notes:
    description: Looks things up.
    model: offline
    tools: [calculator, time_now]
    policy: strict
    limits: {max_steps: 9}
"""
    config = load(tmp_path, content)
    assert [*config.agents] == ["sums", "again", "notes"]
    assert [one.agent.name for one in config.agents.values()] == ["sums", "again", "notes"]
    assert [one.description for one in config.agents.values()] == ["", "The same once more.", "Looks things up."]
    assert config.agents["sums"].agent.source == str(tmp_path / "sums.yaml")
    spec = config.agents["notes"].agent.spec_for("")
    assert (spec.limits.max_steps, spec.policy.profile) == (9, "strict")
    assert config.agents["notes"].agent.toolbox
    assert tuple(config.files) == (tmp_path / "gate.yaml", tmp_path / "sums.yaml")
    assert (config.any_model, config.keys, config.db) == (False, (), None)
    assert config.agent_for("sums") is config.agents["sums"]
    assert config.agent_for("nobody") is None


def test_the_default_answers_where_no_agent_is_named_so(tmp_path: Path) -> None:
    config = load(tmp_path, "agents: {a: {model: offline}, b: {model: offline}}\ndefault: b")
    assert config.agent_for("gpt-4o") is config.agents["b"]
    assert config.agent_for("a") is config.agents["a"]


def test_the_server_has_its_place_and_its_bounds(tmp_path: Path) -> None:  # S1-62: the whole run has a bound of its own
    content = """
agents: {a: {model: offline}}
server:
  host: ${HOST:-127.0.0.1}
  port: "${PORT}"
  db: data/runs.db
  run_timeout_s: 12.5
  max_runs: 4
  max_runs_per_key: 2
  max_body_bytes: 1000
"""
    config = load(tmp_path, content, env={"PORT": "9001"})
    assert (config.host, config.port, config.db) == ("127.0.0.1", 9001, tmp_path / "data" / "runs.db")
    limits = config.limits
    assert (limits.run_timeout_s, limits.max_runs, limits.max_runs_per_key) == (12.5, 4, 2)
    assert (limits.max_body_bytes, limits.heartbeat_s) == (1000, 15.0)


def test_keys_are_kept_as_digests_only(tmp_path: Path) -> None:
    content = f"""
agents: {{a: {{model: offline}}, b: {{model: offline}}}}
keys:
  - {{name: web, digest: "{DIGEST}", agents: [a], requests_per_minute: 60, tokens_per_minute: 9000, usd_per_day: 1.5}}
  - {{name: ops, key: "${{OPS_KEY}}", may_approve: false}}
"""
    config = load(tmp_path, content, env={"OPS_KEY": "tao-the-key-of-ops"})
    web, ops = config.keys
    assert (web.digest, web.agents, web.requests_per_minute) == (DIGEST, ("a",), 60)
    assert (web.tokens_per_minute, web.usd_per_day, web.may_approve) == (9000, 1.5, True)
    assert ops.digest == f"sha256:{sha256(b'tao-the-key-of-ops').hexdigest()}"
    assert (ops.agents, ops.may_approve) == ((), False)
    assert config.secrets == {"OPS_KEY": "tao-the-key-of-ops"}
    assert "tao-the-key-of-ops" not in repr(config)


BAD: list[tuple[Any, str, str]] = [
    ({"agents": {}}, "agents", "names no agent"),
    ({"agents": []}, "agents", "a mapping is expected"),
    ({"agents": {"a": 5}}, "agents.a", "an agent is expected"),
    ({"agents": {"": {"model": "offline"}}}, "agents.", "no name of an agent"),
    ({"agents": {5: {"model": "offline"}}}, "agents.5", "no name of an agent"),
    ({"agents": {"a": "none.yaml"}}, "agents.a", "there is no such file"),
    ({"agents": {"a": {"file": "none.yaml"}}}, "agents.a.file", "there is no such file"),
    ({"agents": {"a": {"file": "x.yaml", "tools": []}}}, "agents.a.tools", "no such field"),
    ({"agents": {"a": {"name": "b"}}}, "agents.a.name", "the name that is its key"),
    ({"agents": {"a": {"modle": "offline"}}}, "agents.a.modle", "Did you mean 'model'?"),
    ({"agents": {"a": {"model": "offlin"}}}, "agents.a.model", "There is no model called"),
    ({"agents": {"a": {"limits": {"max_stepz": 3}}}}, "agents.a.limits.max_stepz", "Did you mean 'max_steps'?"),
    ({"agents": {"a": {"tools": ["calculater"]}}}, "agents.a.tools[0]", "Did you mean 'calculator'?"),
    ({"agents": {"a": {"description": 5}}}, "agents.a.description", "a text is expected"),
    ({"servr": {}}, "servr", "Did you mean 'server'?"),
    ({"server": {"prot": 1}}, "server.prot", "Did you mean 'port'?"),
    ({"server": {"port": 70000}}, "server.port", "from 0 to 65535"),
    ({"server": {"port": "x"}}, "server.port", "a whole number is expected"),
    ({"server": {"host": ""}}, "server.host", "Write 127.0.0.1"),
    ({"server": {"max_runs": 0}}, "server.max_runs", "above 0"),
    ({"server": {"run_timeout_s": -1}}, "server.run_timeout_s", "above 0"),
    ({"server": []}, "server", ""),
    ({"server": 5}, "server", "a mapping is expected"),
    ({"services": {"a": 5}}, "services.a", "a text is expected"),
    ({"services": {"a": "nowhere"}}, "services.a", "HOST:PORT"),
    ({"services": ["a"]}, "services", "a mapping is expected"),
    ({"default": "b"}, "default", "Known: a."),
    ({"default": 5}, "default", "a text is expected"),
    ({"keys": {}}, "keys", ""),
    ({"keys": "x"}, "keys", "a list is expected"),
    ({"keys": ["x"]}, "keys[0]", "a mapping is expected"),
    ({"keys": [{"digest": DIGEST}]}, "keys[0]", "`name` is missing"),
    ({"keys": [{"name": "a"}]}, "keys[0]", "neither `digest` nor `key`"),
    ({"keys": [{"name": "a", "digest": DIGEST, "key": "${K}"}]}, "keys[0].key", "and so is `digest`"),
    ({"keys": [{"name": "a", "key": "tao-in-the-file"}]}, "keys[0].key", "must not be written in a file"),
    ({"keys": [{"name": "a", "digest": "md5:1"}]}, "keys[0].digest", "64 hex digits"),
    ({"keys": [{"name": " ", "digest": DIGEST}]}, "keys[0].name", "1 to 100 characters"),
    ({"keys": [{"name": "a", "digest": DIGEST, "agents": ["b"]}]}, "keys[0].agents[0]", "Known: a."),
    ({"keys": [{"name": "a", "digest": DIGEST, "usd_per_day": 0}]}, "keys[0].usd_per_day", "above 0"),
    ({"keys": [{"name": "a", "digest": DIGEST, "requests_per_minute": 1.5}]}, "keys[0].requests_per_minute", ""),
    ({"keys": [{"name": "a", "digest": DIGEST}, {"name": "a", "digest": "x"}]}, "keys[1].digest", ""),
    ({"keys": [{"name": "a", "digest": DIGEST}, {"name": "b", "digest": DIGEST}]}, "keys[1]", "same digest"),
    ({"keys": [{"name": "a", "key": "${NOT_SET}"}]}, "keys[0].key", "NOT_SET is not set"),
]


@pytest.mark.parametrize(("change", "field", "said"), BAD, ids=[f"{n}-{field}" for n, (_, field, _) in enumerate(BAD)])
def test_a_field_that_is_no_good_is_named_with_its_line(change: Any, field: str, said: str, tmp_path: Path) -> None:
    if field in ("server", "keys") and not said:  # an empty list stands for nothing
        assert load(tmp_path, {"agents": {"a": {"model": "offline"}}, **change}).agents
        return
    with pytest.raises(AgentFileError) as caught:
        load(tmp_path, {"agents": {"a": {"model": "offline"}}, **change}, env={"K": "value-of-k"})
    error = caught.value
    assert (error.path, error.field) == (str(tmp_path / "gate.yaml"), field)
    assert error.line > 0
    assert said in str(error)
    assert "tao-in-the-file" not in str(error)


def test_an_agent_in_place_has_its_tools_from_a_tool_file_and_its_own_secrets(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(API))
    (tmp_path / "tools.yaml").write_text("tools: [{openapi: {document: api.json, headers: {X-Key: '${SHOP_KEY}'}}}]")
    content = "agents: {a: {model: offline, tools: [{file: tools.yaml}]}}"
    config = load(tmp_path, content, env={"SHOP_KEY": "shop-key-0123"})
    agent = config.agents["a"].agent
    assert next(iter(agent.toolbox)).name == "stock"
    assert config.secrets == {"SHOP_KEY": "shop-key-0123"}
    assert {path.name for path in config.files} == {"gate.yaml", "tools.yaml", "api.json"}
    with pytest.raises(AgentFileError, match=r"tools\.yaml:1: .*SHOP_KEY is not set"):
        load(tmp_path, content)


@pytest.mark.parametrize("how", ["services", "resolve"])
def test_a_host_has_another_place_for_tools_and_models(how: str, tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(API))
    places = {"shop.example.com": "127.0.0.1:9", "api.openai.com": "127.0.0.1:8"}
    content: dict[str, Any] = {"agents": {"a": {"model": "openai:gpt-4o", "tools": [{"openapi": "api.json"}]}}}
    if how == "services":
        content["services"] = places
        config = load(tmp_path, content)
    else:
        content["services"] = {"shop.example.com": "http://10.0.0.1:1"}  # which the command line goes before
        config = load(tmp_path, content, resolve=places)
    agent = config.agents["a"].agent
    (tool, *_) = agent.toolbox
    assert isinstance(tool.handler, OperationCaller)
    assert tool.handler.api.source.base_url == "http://127.0.0.1:9/v1"
    assert agent.env == {"OPENAI_BASE_URL": "http://127.0.0.1:8/v1"}
    assert bind(agent).model.spec == "openai:gpt-4o"


def test_a_plain_agent_file_has_its_hosts_resolved_too(tmp_path: Path) -> None:
    with upstream("Hello there.") as there:
        path = tmp_path / "one.yaml"
        path.write_text("model: openai:demo")
        place = there.url.removeprefix("http://")
        config = load_config(path, env={"OPENAI_API_KEY": "sk-0123456789abcdef"}, resolve={"api.openai.com": place})
        assert config.agents["one"].agent.run_sync("Hello?").answer == "Hello there."
        assert there.paths == ["/v1/chat/completions"]


def test_a_source_that_names_no_server_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps({**API, "servers": [{"url": "/v1"}]}))
    content = "agents: {a: {model: offline, tools: [{openapi: api.json}]}}\nservices: {x: 'h:1'}"
    assert load(tmp_path, content).agents["a"].agent.toolbox


def test_the_journal_of_an_agent_is_not_used_and_the_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "sums.yaml").write_text("model: offline\ndb: sums.db")
    config = load(tmp_path, "agents:\n  a: sums.yaml\n  b:\n    model: offline\n    journal: x.db")
    assert [one.agent.journal for one in config.agents.values()] == [None, None]
    assert [warning.partition(": the agent's")[0] for warning in config.warnings] == [
        "gate.yaml:2: agents.a",
        "gate.yaml:5: agents.b.journal",
    ]


def test_every_field_at_the_top_is_read(tmp_path: Path) -> None:
    order = ("agents", "keys", "auth", "tls", "server", "keep", "prices", "services", "default")
    assert tuple(fields_of(GatewayFields)) == order
    content = {"agents": {"a": {"model": "offline"}}, "keys": None, "server": None, "services": None, "default": None}
    assert load(tmp_path, content).port == 8080


def test_runs_are_kept_as_the_file_says(tmp_path: Path) -> None:
    content = "agents: {a: {model: offline}}\n"
    assert load(tmp_path, content).keep is None
    config = load(tmp_path, content + "keep: {days: 30, runs: 1000}")
    assert config.keep == Retention(days=30, runs=1_000)
    assert "finished runs are kept: days 30, runs 1000" in config_summary(config)
    for keep, problem in (("{}", "neither"), ("{days: 0}", "above 0"), ("{weeks: 1}", "weeks")):
        with pytest.raises(AgentFileError, match=problem) as raised:
            load(tmp_path, content + f"keep: {keep}")
        assert "gate.yaml:2" in str(raised.value)


BUDGET = """
agents:
  a:
    model: openai:own
    limits: {max_cost_usd: 0.5}
"""
OPENAI = {"OPENAI_API_KEY": "k"}


def test_a_budget_needs_the_price_of_its_model(tmp_path: Path) -> None:
    with pytest.raises(AgentFileError, match="every run at its first reply") as raised:
        load(tmp_path, BUDGET, env=OPENAI)
    assert "gate.yaml:5" in str(raised.value)
    assert "`prices`" in raised.value.hint
    config = load(tmp_path, BUDGET + "prices: {'openai:own': {input: 0.5, output: 1.5}}", env=OPENAI)
    assert config.agents["a"].agent.prices["openai:own"] == Price(input=0.5, output=1.5)
    [warning] = load(tmp_path, BUDGET.replace("openai:own", "openai:gpt-4o-mini | openai:own"), env=OPENAI).warnings
    assert "gate.yaml:5" in warning
    assert "falls back" in warning


def test_a_model_may_have_several_endpoints(tmp_path: Path) -> None:
    content = """
agents:
  a:
    model: openai:gpt-4o-mini
    endpoints:
      - {base_url: "https://east.example/v1", api_key_env: EAST_KEY, weight: 3}
      - {api_key_env: WEST_KEY}
"""
    env = {"EAST_KEY": "east-secret-0123456789", "WEST_KEY": "west-secret-0123456789"}
    config = load(tmp_path, content, env=env)
    assert [health.weight for health in bind(config.agents["a"].agent).endpoint_health] == [3, 1]
    assert set(config.secrets.values()) == set(env.values())
    summary = config_summary(config)
    assert "https://east.example/v1" in summary
    assert "secret-0123" not in summary
    with pytest.raises(AgentFileError, match="WEST_KEY"):
        load(tmp_path, content, env={"EAST_KEY": "x"})
    with pytest.raises(AgentFileError, match="above 0"):
        load(tmp_path, content.replace("weight: 3", "weight: 0"), env=env)


# Protocols beside OpenAI's


def test_a_protocol_is_off_until_the_file_or_an_option_names_it(tmp_path: Path) -> None:
    agents = {"a": {"model": "offline"}}
    assert load(tmp_path, {"agents": agents}).protocols == ()
    config = load(tmp_path, {"agents": agents, "server": {"protocols": ["agui", "a2a", "agui"]}})
    assert config.protocols == ("agui", "a2a")
    assert "agui, a2a" in config_summary(config)
    assert load(tmp_path, {"agents": agents}, protocols=("messages",)).protocols == ("messages",)
    with pytest.raises(AgentFileError, match=r"server\.protocols\[0\].*agui") as caught:
        load(tmp_path, {"agents": agents, "server": {"protocols": ["ag-ui"]}})
    assert caught.value.line > 0
