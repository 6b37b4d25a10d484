"""WasmPlugin resources: each configuration in one is an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.serve.gateway.ai_agent import FINAL, asks, data_of, load, run, world

from taoloop.errors import AgentFileError

CHOICE = "clients choose an agent by its name"


def resource(**spec: Any) -> dict[str, Any]:
    deployment = {"url": "oci://registry.example.com/ai-agent:1.0.0", "phase": "UNSPECIFIED_PHASE", "priority": 200}
    head = {"apiVersion": "extensions.higress.io/v1alpha1", "kind": "WasmPlugin", "metadata": {"name": "ai-agent"}}
    return {**head, "spec": {**deployment, **spec}}


def test_the_default_and_each_rule_are_agents_with_names(tmp_path: Path) -> None:
    weather, geo = data_of("01_weather.yaml"), data_of("02_geocode.yaml")
    rules = [
        {"config": geo, "configDisable": False, "domain": ["geo.example.com"]},
        {"config": weather, "ingress": ["default/weather"]},
        {"config": weather, "service": ["weather.dns"]},
        {"config": weather},
        {"config": geo, "domain": ["geo.example.com"]},
    ]
    config = load(tmp_path, resource(defaultConfig=weather, matchRules=rules))
    names = ["shop", "geo.example.com", "default/weather", "weather.dns", "shop-4", "geo.example.com-5"]
    assert list(config.agents) == names
    assert (config.form, config.any_model) == ("wasm_plugin", True)
    assert [agent.name for agent in config.agents.values()] == names
    [warning] = config.warnings
    assert CHOICE in warning
    with world(asks("get_place", place_id=1), FINAL) as there:
        places = {"llm.dns": there.place, "geo.dns": there.place}
        config = load(tmp_path, resource(defaultConfig=weather, matchRules=rules), resolve=places)
        assert run(config.agents["geo.example.com"].agent).answer == "It is sunny."
        assert len(there.calls) == 1


def test_a_resource_with_one_configuration_is_like_its_file(tmp_path: Path) -> None:
    config = load(tmp_path, resource(defaultConfig=data_of("01_weather.yaml")))
    assert (list(config.agents), config.any_model, config.warnings) == (["shop"], True, ())


def test_what_is_switched_off_or_not_read_is_a_warning(tmp_path: Path) -> None:
    weather = data_of("01_weather.yaml")
    rules = [
        {"config": weather, "configDisable": True, "domain": ["a.example.com"]},
        {"domain": ["b.example.com"]},
        {"config": weather, "domain": ["c.example.com", "d.example.com"]},
        {"config": weather, "domain": ["e.example.com"]},
    ]
    spec = {"defaultConfig": weather, "defaultConfigDisable": True, "matchRules": rules, "pluginConfig": {"a": 1}}
    config = load(tmp_path, resource(**spec))
    assert list(config.agents) == ["c.example.com", "e.example.com"]
    assert not config.any_model  # where Higress would not run the plugin, no agent answers
    parts = [
        "spec.pluginConfig: nothing reads this field.",
        "spec.defaultConfigDisable: it is true",
        "spec.matchRules[0].configDisable: it is true",
        "spec.matchRules[1]: it has no `config`",
        "spec.matchRules[2]: its agent is called 'c.example.com', and has none of the rule's other names.",
        CHOICE,
    ]
    assert len(config.warnings) == len(parts)
    assert [part for part, warning in zip(parts, config.warnings, strict=True) if part not in warning] == []


@pytest.mark.parametrize("spec", [{}, {"defaultConfig": {}}, {"matchRules": []}])
def test_a_resource_without_a_configuration_is_refused(spec: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(AgentFileError, match="spec: it has no configuration that is switched on"):
        load(tmp_path, resource(**spec))


def test_a_mistake_has_its_line_and_its_whole_field(tmp_path: Path) -> None:
    geo = data_of("02_geocode.yaml")
    geo["llm"]["maxTokens"] = "many"
    with pytest.raises(AgentFileError) as caught:
        load(tmp_path, resource(matchRules=[{"config": geo, "domain": ["geo.example.com"]}]))
    assert "spec.matchRules[0].config.llm.maxTokens" in str(caught.value)
    text = (tmp_path / "shop.yaml").read_text(encoding="utf-8").splitlines()
    assert "maxTokens" in text[caught.value.line - 1]


def test_an_entry_of_a_gateway_takes_a_resource_with_one_agent(tmp_path: Path) -> None:
    weather = data_of("01_weather.yaml")
    inner = tmp_path / "inner"
    inner.mkdir()
    load(inner, resource(defaultConfig=weather))
    assert list(load(tmp_path, "agents: {weather: inner/shop.yaml}").agents) == ["weather"]
    load(inner, resource(defaultConfig=weather, matchRules=[{"config": weather, "domain": ["a.example.com"]}]))
    with pytest.raises(AgentFileError, match="it holds 2 agents, and one is expected"):
        load(tmp_path, "agents: {weather: inner/shop.yaml}")


def test_another_resource_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(AgentFileError, match="no configuration of a gateway"):
        load(tmp_path, {"kind": "Deployment", "spec": {"replicas": 1}})
