"""Files of the `ai-agent` plugin: what each field gives, and how a mistake in it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.serve.gateway.ai_agent import CONFIGS, FINAL, asks, changed, data_of, load, one, run, tools_of, world

from taoloop.errors import AgentFileError, ConfigError
from taoloop.models.providers import Endpoint
from taoloop.serve.gateway.config.gateway_file import load_config
from taoloop.serve.gateway.higress.file import FixedUrlModel

# llm


@pytest.mark.parametrize(
    ("change", "url"),
    [
        ({}, "https://llm.example.com/v1/chat/completions"),
        ({"llm.servicePort": 80}, "http://llm.example.com/v1/chat/completions"),
        ({"llm.servicePort": 8443}, "http://llm.example.com:8443/v1/chat/completions"),
        ({"llm.path": "v1/x"}, "https://llm.example.com/v1/x"),
    ],
)
def test_where_the_model_is_follows_from_domain_port_and_path(change: dict[str, Any], url: str, tmp_path: Path) -> None:
    config = load(tmp_path, changed("02_geocode.yaml", change))
    model = one(config).agent.model
    assert isinstance(model, FixedUrlModel)
    assert model.endpoint.url == url
    assert model.spec == "llm:demo-chat"
    assert model.is_language_model
    assert any("without encryption" in warning for warning in config.warnings) == url.startswith("http:")


@pytest.mark.parametrize("name", ["llm.dns", "llm.example.com"])
def test_a_service_or_a_domain_that_is_resolved_goes_there(name: str, tmp_path: Path) -> None:
    config = load(tmp_path, data_of("02_geocode.yaml"), resolve={name: "10.0.0.7:81"})
    model = one(config).agent.model
    assert isinstance(model, FixedUrlModel)
    assert model.endpoint.url == "http://10.0.0.7:81/v1/chat/completions"
    assert config.warnings == ()


def test_a_name_that_the_file_does_not_have_is_a_warning(tmp_path: Path) -> None:
    config = load(tmp_path, data_of("02_geocode.yaml"), resolve={"lmm.dns": "10.0.0.7:81"})
    assert config.services.unused() == ("lmm.dns",)


@pytest.mark.parametrize("given", [..., 0, None])
def test_what_is_missing_or_zero_has_its_default(given: Any, tmp_path: Path) -> None:  # S1-44, S1-49
    fields = ("llm.maxIterations", "llm.maxExecutionTime", "llm.maxTokens")
    config = load(tmp_path, changed("01_weather.yaml", dict.fromkeys(fields, given)))
    agent = one(config).agent
    assert agent.limits.max_tool_calls == 15
    assert agent.model_timeout_s == 50.0
    assert agent.max_output_tokens == 1000


def test_the_suggested_bounds_are_what_the_files_give() -> None:  # S1-42, S1-43, S1-45, S1-46, S1-48
    agents = {path.stem: one(load_config(path, env={})).agent for path in CONFIGS.glob("*.yaml")}
    calls = {name[:2]: agent.limits.max_tool_calls for name, agent in agents.items()}
    assert calls == {"01": 5, "02": 3, "03": 10, "04": 5, "05": 15, "06": 5}
    sample = agents["06_flat_form"]
    assert (sample.max_output_tokens, sample.model_timeout_s, sample.language) == (2000, 60.0, "zh")
    assert {tool.card.timeout_s for tool in sample.toolbox if tool.name != "read_observation"} == {10.0}


NO_TEXTS: list[Any] = [..., None, "", 5, [], True]
NO_PORTS: list[Any] = [..., None, "443", 0, -1, 65536, 1.5, True]
NO_COUNTS: list[Any] = [-1, "5", 2.5, True, [1], False]
BAD: list[tuple[dict[str, Any], str, str]] = [
    ({f"llm.{name}": given}, f"llm.{name}", "")
    for name in ("apiKey", "serviceName", "domain", "path", "model")
    for given in NO_TEXTS
]
BAD += [({"llm.servicePort": given}, "llm.servicePort", "") for given in NO_PORTS]
BAD += [
    ({f"llm.{name}": given}, f"llm.{name}", "")
    for name in ("maxIterations", "maxExecutionTime", "maxTokens")
    for given in NO_COUNTS
]
BAD += [
    ({"llm": ...}, "llm", "missing"),
    ({"llm": []}, "llm", "a mapping is expected"),
    ({"llm.domain": "https://llm.example.com"}, "llm.domain", "a host such as"),
    ({"llm.domain": "a b"}, "llm.domain", "a host such as"),
    ({"llm.path": "https://x/y"}, "llm.path", "a path such as"),
    ({"llm.path": "/a b"}, "llm.path", "a path such as"),
    ({"apis": ...}, "apis", "missing"),
    ({"apis": []}, "apis", "missing, or empty"),
    ({"apis": {}}, "apis", "a list is expected"),
    ({"apis": [5]}, "apis[0]", "a mapping is expected"),
    ({"apis": [{}]}, "apis[0].apiProvider", "missing"),
    ({"apis.0.api": ...}, "apis[0].api", "missing"),
    ({"apis.0.api": {"openapi": "3.1.0"}}, "apis[0].api", "a text is expected"),
    ({"apis.0.apiProvider.serviceName": ...}, "apis[0].apiProvider.serviceName", "missing"),
    ({"apis.0.apiProvider.domain": ...}, "apis[0].apiProvider.domain", "missing"),
    ({"apis.0.apiProvider.servicePort": ...}, "apis[0].apiProvider.servicePort", "missing"),
    ({"apis.0.apiProvider.servicePort": 0}, "apis[0].apiProvider.servicePort", "from 1 to 65535"),
    ({"apis.0.apiProvider.maxExecutionTime": "10s"}, "apis[0].apiProvider.maxExecutionTime", "a whole number"),
    ({"apis.0.apiProvider.apiKey.in": "cookie"}, "apis[0].apiProvider.apiKey.in", "query, header, none"),
    ({"apis.0.apiProvider.apiKey.value": 12}, "apis[0].apiProvider.apiKey.value", "a text is expected"),
    ({"apis.0.api": "openapi: 3.1.0\npaths: {}"}, "apis[0].api", "servers[0].url"),
    ({"promptTemplate": "CH"}, "promptTemplate", "a mapping is expected"),
    ({"promptTemplate.language": 5}, "promptTemplate.language", "a text is expected"),
    ({"promptTemplate.chTemplate.question": []}, "promptTemplate.chTemplate.question", "a text is expected"),
    ({"jsonResp.enable": "yes"}, "jsonResp.enable", "true or false"),
    ({"jsonResp.jsonSchema": {"type": "nothing"}}, "jsonResp.jsonSchema", ""),
    ({"jsonResp.jsonSchema": 5}, "jsonResp.jsonSchema", "a JSON Schema is expected"),
    ({"jsonResp.jsonSchema": "[1]"}, "jsonResp.jsonSchema", "a JSON Schema is expected"),
    ({"jsonResp.jsonSchema": "{"}, "jsonResp.jsonSchema", ""),
    ({"returnResponseTemplate": 5}, "returnResponseTemplate", "a text is expected"),
]


@pytest.mark.parametrize(("change", "field", "said"), BAD, ids=[f"{n}-{field}" for n, (_, field, _) in enumerate(BAD)])
def test_a_field_that_is_no_good_is_named_with_its_line(
    change: dict[str, Any], field: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(AgentFileError) as caught:
        load(tmp_path, changed("01_weather.yaml", change))
    error = caught.value
    assert (error.path, error.field) == (str(tmp_path / "shop.yaml"), field)
    assert error.line > 0
    assert said in str(error)
    lines = (tmp_path / "shop.yaml").read_text(encoding="utf-8").splitlines()
    if ... not in change.values() and "apis" not in change:
        assert field.rpartition(".")[2] in lines[error.line - 1]


# What stands inside the texts


def test_a_mistake_in_an_openapi_text_has_its_line_in_the_file(tmp_path: Path) -> None:
    text = (CONFIGS / "01_weather.yaml").read_text(encoding="utf-8")
    broken = text.replace("        title: City weather", "        title: [City weather")
    with pytest.raises(AgentFileError) as caught:
        load(tmp_path, broken)
    assert caught.value.field == "apis[0].api"
    begin = broken.splitlines().index("    api: |")
    assert begin + 1 < caught.value.line <= begin + 8


def test_the_same_operation_twice_is_refused_where_it_stands_again(tmp_path: Path) -> None:
    text = (CONFIGS / "01_weather.yaml").read_text(encoding="utf-8")
    twice = text.replace("operationId: get_forecast", "operationId: get_current_weather")
    with pytest.raises(AgentFileError, match="two operations are called 'get_current_weather'") as caught:
        load(tmp_path, twice)
    lines = twice.splitlines()
    assert lines[caught.value.line - 1].strip() == "operationId: get_current_weather"
    assert caught.value.line > lines.index("            operationId: get_current_weather") + 1


def test_the_same_operation_in_two_apis_is_refused(tmp_path: Path) -> None:
    data = data_of("01_weather.yaml")
    data["apis"].append(data["apis"][0])
    with pytest.raises(AgentFileError, match=r"apis\[1\]\.api: a tool is called 'get_current_weather'"):
        load(tmp_path, data)


def test_an_operation_that_cannot_be_sent_is_left_out_with_a_warning(tmp_path: Path) -> None:
    text = (CONFIGS / "03_maps.yaml").read_text(encoding="utf-8")
    config = load(tmp_path, text.replace("search_nearby\n", "search_nearby\n            requestBody: {$ref: '#/no'}\n"))
    assert any("apis[0].api" in warning for warning in config.warnings)
    api = "openapi: 3.1.0\nservers: [{url: 'https://h.example.com'}]\npaths: {}"
    with pytest.raises(AgentFileError, match=r"apis\[0\]\.api: it has no usable operation"):
        load(tmp_path, changed("01_weather.yaml", {"apis.0.api": api}))


# Warnings


def test_what_higress_ignores_is_read_past_with_a_warning_each(tmp_path: Path) -> None:
    change = {
        "llm.temperature": 1,
        "extra": {},
        "apis.0.nickname": "x",
        "apis.0.apiProvider.weight": 1,
        "apis.0.apiProvider.apiKey.prefix": "x",
        "promptTemplate.deTemplate": {},
        "promptTemplate.chTemplate.tone": "x",
        "jsonResp.strict": True,
    }
    config = load(tmp_path, changed("01_weather.yaml", change))
    assert len(config.warnings) == len(change)
    for place in ("llm.temperature", "extra", "apis[0].nickname", "apis[0].apiProvider.weight", "jsonResp.strict"):
        assert any(f"{place}: nothing reads this field." in one for one in config.warnings)
    assert all(one.startswith("shop.yaml:") for one in config.warnings)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"promptTemplate.language": "DE"}, "it counts as EN"),
        ({"promptTemplate.chTemplate.finalAnswer": "x"}, "it has no effect"),
        ({"returnResponseTemplate": "no place"}, "no single %s"),
        ({"apis.0.apiProvider.servicePort": 80}, "port 80 does not belong to https"),
        ({"apis.0.apiProvider.apiKey.name": ...}, "so no key is sent"),
        ({"apis.0.apiProvider.apiKey.in": "none"}, "so no key is sent"),
    ],
)
def test_what_may_not_be_meant_is_said(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    warnings = load(tmp_path, changed("01_weather.yaml", change)).warnings
    assert len(warnings) == 1
    assert said in warnings[0]


def test_a_template_with_one_place_is_accepted(tmp_path: Path) -> None:
    template = '{"choices":[{"message":{"content":"%s"}}]}'
    assert load(tmp_path, changed("01_weather.yaml", {"returnResponseTemplate": template})).warnings == ()


# apis


def test_each_provider_has_its_own_place_and_its_own_limit() -> None:  # S1-46
    agent = one(load_config(CONFIGS / "03_maps.yaml", resolve={"route.dns": "127.0.0.1:9"}, env={})).agent
    tools = tools_of(agent)
    assert tools["find_place"].card.timeout_s == 5.0
    assert tools["plan_route"].card.timeout_s == 20.0
    bases = {name: tools[name].handler.api.source.base_url for name in ("find_place", "plan_route")}  # type: ignore[attr-defined]  # a Caller
    assert bases == {"find_place": "http://poi.example.com", "plan_route": "http://127.0.0.1:9/api"}


def test_the_tiers_and_approvals_of_a_file_hold() -> None:
    cards = {card.name: card for card in one(load_config(CONFIGS / "04_orders_post.yaml", env={})).agent.toolbox.cards}
    assert (cards["search_orders"].tier, cards["create_refund"].tier) == ("read", "destructive")
    assert cards["create_refund"].requires_approval
    with world(asks("create_refund", order_id=1, amount=5, reason="late"), FINAL) as there:
        places = {"llm.dns": there.place, "orders.dns": there.place}
        ended = run(one(load_config(CONFIGS / "04_orders_post.yaml", resolve=places, env={})).agent, "Refund order 1.")
        assert ended.status == "waiting"
        assert (len(there.chats), there.calls) == (1, [])  # no other question to the model, and nothing was sent


# The short form


def test_the_short_form_is_read_though_the_plugin_refuses_it(tmp_path: Path) -> None:  # S1-14, S1-55
    data = data_of("06_flat_form.yaml")
    data["apis"][0]["tools"].append(
        {
            "toolName": "book_table",
            "description": "Book a table",
            "method": "POST",
            "path": "/tables/{id}",
            "paramName": ["id", "guests"],
            "parameter": {"type": "object", "properties": {"id": {"type": "string"}, "guests": {"type": "integer"}}},
            "x-tier": "read",
        }
    )
    with world(asks("book_table", id="7", guests=2), asks("search_weather", city="Bonn"), FINAL) as there:
        config = load(tmp_path, data, resolve={"llm": there.place, "api.example.com": there.place})
        assert (config.form, config.warnings) == ("flat", ())
        assert run(one(config).agent).answer == "It is sunny."
        (first, second) = there.calls
    assert (first[0], first[1], first[4]) == ("POST", "/tables/7", {"guests": 2})
    assert (second[0], second[1], second[2]) == ("GET", "/weather", [("city", "Bonn")])
    assert first[3]["authorization"] == "Bearer flat-token-for-tests"


def test_the_shortest_sample_loads_with_the_defaults_filled_in(tmp_path: Path) -> None:  # S1-49
    data = changed("06_flat_form.yaml", {"promptTemplate": ..., "jsonResp": ..., "apis.0.apiKey": ...})
    for name in ("maxTokens", "maxIterations", "maxExecutionTime"):
        del data["llm"][name]
    del data["apis"][0]["maxExecutionTime"]
    config = load(tmp_path, data)
    agent = one(config).agent
    assert (agent.language, agent.limits.max_tool_calls, agent.model_timeout_s) == ("en", 15, 50.0)
    assert tools_of(agent)["search_weather"].card.timeout_s == 50.0
    assert (one(config).reshape, config.warnings) == (None, ())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"apis.0.url": ...}, "apis[0].url"),
        ({"apis.0.url": "api.example.com"}, "apis[0].url"),
        ({"apis.0.tools": []}, "apis[0].tools"),
        ({"apis.0.tools": "x"}, "apis[0].tools"),
        ({"apis.0.tools.1": 5}, "apis[0].tools[1]"),
        ({"apis.0.tools.1.toolName": ...}, "apis[0].tools[1].toolName"),
        ({"apis.0.tools.1.method": "FETCH"}, "apis[0].tools[1].method"),
        ({"apis.0.tools.1.parameter": "{"}, "apis[0].tools[1].parameter"),
        ({"apis.0.tools.1.parameter": 5}, "apis[0].tools[1].parameter"),
        ({"apis.0.tools.1.toolName": "search_weather"}, "apis[0].tools"),
        ({"apis.0.maxExecutionTime": -1}, "apis[0].maxExecutionTime"),
        ({"apis.0.apiKey": "x"}, "apis[0].apiKey"),
    ],
)
def test_a_field_of_the_short_form_that_is_no_good_is_named(change: dict[str, Any], field: str, tmp_path: Path) -> None:
    with pytest.raises(AgentFileError) as caught:
        load(tmp_path, changed("06_flat_form.yaml", change))
    assert caught.value.field == field
    assert caught.value.line > 0


# jsonResp


@pytest.mark.parametrize(
    "given",
    [
        {"type": "object", "required": ["city"]},
        '{"type": "object", "required": ["city"]}',
        "type: object\nrequired: [city]\n",
    ],
)
def test_the_schema_of_answers_is_a_mapping_or_a_text(given: Any, tmp_path: Path) -> None:
    config = load(tmp_path, changed("01_weather.yaml", {"jsonResp.jsonSchema": given}))
    assert one(config).reshape == {"type": "object", "required": ["city"]}


@pytest.mark.parametrize("given", [None, "", " "])
def test_without_a_schema_any_object_will_do(given: Any, tmp_path: Path) -> None:
    assert one(load(tmp_path, changed("01_weather.yaml", {"jsonResp.jsonSchema": given}))).reshape == {"type": "object"}
    assert one(load(tmp_path, changed("01_weather.yaml", {"jsonResp": {"enable": False}}))).reshape is None


# Secrets


def test_keys_of_the_file_and_of_the_environment_are_secrets(tmp_path: Path) -> None:
    change = {
        "llm.apiKey": "${LLM_KEY}",
        "llm.domain": "${LLM_HOST:-llm.example.com}",
        "llm.servicePort": "${LLM_PORT}",
        "apis.0.apiProvider.apiKey.value": "pre-${CITY_KEY}",
    }
    env = {"LLM_KEY": "from-the-environment", "CITY_KEY": "city-key-0123", "LLM_PORT": "8080"}
    config = load(tmp_path, changed("01_weather.yaml", change), env=env)
    model = one(config).agent.model
    assert isinstance(model, FixedUrlModel)
    assert (model.endpoint.api_key, model.endpoint.url) == (
        "from-the-environment",
        "http://llm.example.com:8080/v1/chat/completions",
    )
    assert {"LLM_KEY": "from-the-environment", "CITY_KEY": "city-key-0123"}.items() <= config.secrets.items()
    assert "pre-city-key-0123" in config.secrets.values()
    assert "LLM_PORT" not in config.secrets
    for shown in (repr(config), repr(model.endpoint)):
        assert "from-the-environment" not in shown
    with pytest.raises(AgentFileError, match=r"llm\.apiKey: the environment variable LLM_KEY is not set"):
        load(tmp_path, changed("01_weather.yaml", change), env={"LLM_PORT": "80"})


def test_dollars_in_an_openapi_text_are_its_own(tmp_path: Path) -> None:
    text = data_of("01_weather.yaml")["apis"][0]["api"].replace("City weather", "City ${weather}")
    assert one(load(tmp_path, changed("01_weather.yaml", {"apis.0.api": text}))).agent.toolbox


def test_a_key_that_no_header_can_hold_is_named_by_its_place(tmp_path: Path) -> None:
    config = load(tmp_path, changed("01_weather.yaml", {"llm.apiKey": "schlüssel"}), resolve={"llm.dns": "127.0.0.1:9"})
    ended = run(one(config).agent)
    assert ended.status == "model_failed"
    assert "llm.apiKey" in ended.reason
    assert "schlüssel" not in str(ended.trace.events)


def test_an_endpoint_with_a_whole_address_has_no_other() -> None:
    endpoint = Endpoint(provider="llm", model="m", api_key="k", url="https://h.example.com/x")
    assert endpoint.address == "https://h.example.com/x"
    assert issubclass(AgentFileError, ConfigError)
