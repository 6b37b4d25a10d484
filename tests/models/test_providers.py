"""From variables to an address, a key and a model; and from those to the request that the SDK makes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.models.provider_answers import ask, whole

from taoloop import Agent
from taoloop.cli.database import load_environment
from taoloop.errors import MissingKey, ModelAuthError, ModelError, UnknownName
from taoloop.models.http.sdk_request import anthropic_target, openai_target
from taoloop.models.openai import OpenAIModel
from taoloop.models.providers import (
    PROVIDERS,
    Endpoint,
    configured,
    endpoint,
    missing,
    missing_packages,
    shown_address,
    variables,
)
from taoloop.models.registry import default_spec, is_provider, model_kinds, resolve_model
from taoloop.testing import HttpDouble
from taoloop.tools.builtin.calculator import calculator

FIVE = whole(200, {"choices": [{"message": {"content": "5"}, "finish_reason": "stop"}]})
AZURE = {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_RESOURCE_NAME": "acme"}


@pytest.fixture
def only_these(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], None]:
    """Makes these the proxies of the environment."""

    def name(env: dict[str, str]) -> None:
        for variable in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
            monkeypatch.delenv(variable, raising=False)
            monkeypatch.delenv(variable.upper(), raising=False)
        for variable, value in env.items():
            monkeypatch.setenv(variable, value)

    return name


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_provider_can_be_named_in_a_spec(name: str) -> None:
    """S4-14."""
    env = {"AZURE_OPENAI_RESOURCE_NAME": "acme", PROVIDERS[name].key_var: "k"}
    assert name in model_kinds()
    assert is_provider(f"{name}:x")
    assert resolve_model(f"{name}:x", env).spec == f"{name}:x"


def test_key_address_and_model_come_from_a_dotenv_file(tmp_path: Path) -> None:
    """S3-6."""
    (tmp_path / ".env").write_text("DEEPSEEK_API_KEY=k1\nDEEPSEEK_BASE_URL=http://here/v1\nDEEPSEEK_MODEL=deepseek-x\n")
    env = load_environment(tmp_path)
    assert default_spec({name: env[name] for name in env if name.startswith("DEEPSEEK")}) == "deepseek:deepseek-x"
    found = endpoint("deepseek", "", env)
    assert (found.api_key, found.base_url, found.model) == ("k1", "http://here/v1", "deepseek-x")


def test_another_compatible_platform_needs_only_the_three_variables_changed() -> None:
    """S3-6."""
    with HttpDouble([FIVE]) as server:
        env = {"DEEPSEEK_API_KEY": "other", "DEEPSEEK_BASE_URL": f"{server.url}/api/v4", "DEEPSEEK_MODEL": "glm"}
        assert ask(resolve_model(None, env)).text == "5"
    assert [request["path"] for request in server.requests] == ["/api/v4/chat/completions"]
    assert server.headers[0]["authorization"] == "Bearer other"
    assert server.requests[0]["model"] == "glm"


@pytest.mark.parametrize(
    ("env", "spec"),
    [
        ({"AI_PROVIDER_API_KEY": "k"}, "openai:gpt-4o-mini"),
        ({"AI_PROVIDER_API_KEY": "k", "OPENAI_MODEL": "m"}, "openai:m"),
        ({"AI_PROVIDER": "azure", "AI_PROVIDER_API_KEY": "k", "OPENAI_MODEL": "m"}, "azure:m"),
        ({"AI_PROVIDER": "qwen", "AI_PROVIDER_API_KEY": "k"}, "qwen:qwen-plus"),
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic:claude-haiku-5-5"),
        ({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_MODEL": "m"}, "anthropic:m"),
        ({"DASHSCOPE_API_KEY": "k"}, "dashscope:qwen-plus"),
        ({"AZURE_OPENAI_API_KEY": "k"}, "offline"),
        (AZURE, "azure:gpt-4o-mini"),
        ({**AZURE, "AZURE_OPENAI_MODEL": "d"}, "azure:d"),
        ({"OLLAMA_MODEL": "qwen3"}, "ollama:qwen3"),
        ({"VLLM_MODEL": "m"}, "vllm:m"),
        ({"LLAMACPP_MODEL": "m"}, "llamacpp:m"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "OLLAMA_MODEL": "m"}, "openai:gpt-4o-mini"),
        ({"OPENAI_API_KEY": " "}, "offline"),
    ],
)
def test_the_environment_chooses_provider_and_model(env: dict[str, str], spec: str) -> None:
    """S4-15, S4-16: the provider is openai and its model gpt-4o-mini where nothing else is said."""
    assert default_spec(env) == spec


@pytest.mark.parametrize("name", [name for name, provider in PROVIDERS.items() if provider.needs_key])
def test_a_missing_key_names_its_variable(name: str) -> None:
    """S4-18."""
    with pytest.raises(MissingKey, match=f"variable {PROVIDERS[name].key_var} is not set"):
        resolve_model(f"{name}:x", {})
    assert missing({})[name] == PROVIDERS[name].key_var


def test_what_else_is_missing_is_named_too() -> None:
    with pytest.raises(MissingKey, match=r"AZURE_OPENAI_BASE_URL.*AZURE_OPENAI_RESOURCE_NAME"):
        endpoint("azure", "x", {"AZURE_OPENAI_API_KEY": "k"})
    with pytest.raises(MissingKey, match="OLLAMA_MODEL"):
        endpoint("ollama", "", {})
    with pytest.raises(UnknownName, match="nowhere"):
        endpoint("nowhere", "", {})
    assert missing({"AZURE_OPENAI_API_KEY": "k"})["azure"] == "AZURE_OPENAI_BASE_URL"
    assert missing({})["vllm"] == "VLLM_MODEL"
    assert configured({"AI_PROVIDER": "nowhere"}) == ["nowhere"]


def test_the_general_key_goes_to_no_other_provider_than_the_one_it_is_for() -> None:
    env = {"AI_PROVIDER": "deepseek", "AI_PROVIDER_API_KEY": "k"}
    assert endpoint("deepseek", "x", env).key_var == "AI_PROVIDER_API_KEY"
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        endpoint("openai", "x", env)


@pytest.mark.parametrize("name", ["ollama", "vllm", "llamacpp"])
def test_a_local_server_needs_no_key_and_takes_one(name: str) -> None:
    provider = PROVIDERS[name]
    with HttpDouble([FIVE, FIVE]) as server:
        env = {provider.base_url_var: f"{server.url}/v1", provider.model_var: "m"}
        assert ask(resolve_model(None, env)).cost_usd == 0.0
        ask(resolve_model(None, {**env, provider.key_var: "mine"}))
    assert [headers["authorization"] for headers in server.headers] == ["Bearer none", "Bearer mine"]


def test_another_address_for_openai_needs_no_key() -> None:
    assert endpoint("openai", "x", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}).api_key == "none"


DEPLOYED = "/openai/deployments/gpt/chat/completions?api-version="


@pytest.mark.parametrize(
    ("env", "url"),
    [
        ({"AZURE_OPENAI_RESOURCE_NAME": "acme"}, "https://acme.openai.azure.com/openai/v1/chat/completions"),
        (
            {"AZURE_OPENAI_RESOURCE_NAME": "acme", "AZURE_OPENAI_API_VERSION": "2024-10-21"},
            f"https://acme.openai.azure.com{DEPLOYED}2024-10-21",
        ),
        ({"AZURE_OPENAI_BASE_URL": "https://here/openai"}, "https://here/openai/v1/chat/completions"),
        ({"AZURE_OPENAI_BASE_URL": "https://here/openai/v1/"}, "https://here/openai/v1/chat/completions"),
        (
            {"AZURE_OPENAI_BASE_URL": "https://here/openai/v1", "AZURE_OPENAI_API_VERSION": "preview"},
            "https://here/openai/v1/chat/completions?api-version=preview",
        ),
        (
            {"AZURE_OPENAI_BASE_URL": "https://here/", "AZURE_OPENAI_API_VERSION": "2025-01-01-preview"},
            f"https://here{DEPLOYED}2025-01-01-preview",
        ),
        ({"AZURE_OPENAI_BASE_URL": "https://here/openai/deployments/gpt"}, f"https://here{DEPLOYED}2024-10-21"),
        ({"AZURE_OPENAI_BASE_URL": "https://here/gateway"}, "https://here/gateway/v1/chat/completions"),
    ],
)
def test_azure_is_called_where_its_variables_say(env: dict[str, str], url: str) -> None:
    """S4-15."""
    target = openai_target(endpoint("azure", "gpt", {"AZURE_OPENAI_API_KEY": "k", **env}))
    assert target.url == url
    assert target.headers["api-key"] == "k"


def test_azure_is_called_with_the_general_key() -> None:
    """S4-15."""
    with HttpDouble([FIVE]) as server:
        env = {
            "AI_PROVIDER": "azure",
            "AI_PROVIDER_API_KEY": "k",
            "AZURE_OPENAI_BASE_URL": f"{server.url}/openai",
            "AZURE_OPENAI_API_VERSION": "2024-10-21",
            "OPENAI_MODEL": "gpt",
        }
        assert ask(resolve_model(None, env)).text == "5"
    assert [request["path"] for request in server.requests] == [f"{DEPLOYED}2024-10-21"]
    assert server.headers[0]["api-key"] == "k"


def test_the_sdks_say_where_and_how_to_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere")  # only what the model was made with counts
    found = openai_target(endpoint("openai", "x", {"OPENAI_API_KEY": "k"}))
    assert (found.url, found.headers["authorization"]) == ("https://api.openai.com/v1/chat/completions", "Bearer k")
    assert found.headers["content-type"] == "application/json"
    assert not {"host", "content-length", "accept-encoding"} & found.headers.keys()
    assert found.tls is not None
    env = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://here/v1"}
    assert anthropic_target(endpoint("anthropic", "x", env)).url == "http://here/v1/messages"


@pytest.mark.parametrize(
    ("env", "proxy"),
    [
        ({}, None),
        ({"https_proxy": "http://proxy:3128"}, "http://proxy:3128"),
        ({"all_proxy": "http://proxy:3128"}, "http://proxy:3128"),
        ({"http_proxy": "http://proxy:3128"}, None),
        ({"https_proxy": "http://proxy:3128", "no_proxy": "api.openai.com"}, None),
        ({"https_proxy": "proxy:3128"}, "http://proxy:3128"),
        ({"https_proxy": "socks5://proxy:1080", "no_proxy": "api.openai.com:8443"}, None),
    ],
)
def test_the_proxy_of_the_environment_is_used(
    env: dict[str, str], proxy: str | None, only_these: Callable[[dict[str, str]], None]
) -> None:
    only_these(env)
    port = ":8443" if "no_proxy" in env else ""
    address = f"https://api.openai.com{port}/v1"
    assert openai_target(Endpoint(provider="openai", model="x", api_key="k", base_url=address)).proxy == proxy


@pytest.mark.parametrize("proxy", ["socks5://user:pass-word@proxy:1080", "http://", "http://["])
def test_a_proxy_that_cannot_be_used_is_refused_and_not_passed_by(
    proxy: str, only_these: Callable[[dict[str, str]], None]
) -> None:
    only_these({"all_proxy": proxy})
    with pytest.raises(ModelError, match="HTTPS_PROXY or ALL_PROXY") as caught:
        openai_target(Endpoint(provider="openai", model="x", api_key="k"))
    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-a\r\nX-Evil: 1", "“sk-quoted”", "sk-é", "\0"])
@pytest.mark.parametrize("provider", ["openai", "anthropic", "azure", "deepseek"])
def test_a_key_that_no_header_can_hold_is_blamed_by_its_variable(provider: str, key: str) -> None:
    target = anthropic_target if provider == "anthropic" else openai_target
    variable = PROVIDERS[provider].key_var
    with pytest.raises(ModelAuthError, match=f"the key in {variable}") as caught:
        target(Endpoint(provider=provider, model="x", api_key=key, base_url="http://here/v1"))
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("end", ["", "/", "//", "/chat/completions"])
def test_an_openai_address_may_end_in_several_ways(end: str) -> None:
    found = openai_target(Endpoint(provider="openai", model="x", api_key="k", base_url=f"http://here/v1{end}"))
    assert found.url == "http://here/v1/chat/completions"


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "/v1/messages"])
def test_an_anthropic_address_may_end_in_several_ways(end: str) -> None:
    found = anthropic_target(Endpoint(provider="anthropic", model="x", api_key="k", base_url=f"http://here/way{end}"))
    assert found.url == "http://here/way/v1/messages"


def test_what_the_environment_says_for_openai_goes_to_no_other_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-acme")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-acme")
    for provider, told in (("openai", True), ("deepseek", False), ("vllm", False)):
        headers = openai_target(Endpoint(provider=provider, model="x", api_key="k", base_url="http://here/v1")).headers
        assert ("acme" in str(headers)) == told
        assert headers["authorization"] == "Bearer k"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://user:pass@host:8443/v1?key=1", "https://host:8443/v1"),
        ("host:8000", "the address given"),
        ("http://[", "the address given"),
        ("http://host:no", "the address given"),
        ("", "the provider's own address"),
        (None, "the provider's own address"),
    ],
)
def test_an_address_is_shown_without_its_secrets(address: str | None, shown: str) -> None:
    assert shown_address(address) == shown


def test_every_variable_is_known() -> None:
    assert {"AI_PROVIDER", "AI_PROVIDER_API_KEY", "AZURE_OPENAI_RESOURCE_NAME", "OPENAI_MODEL"} <= variables()
    assert missing_packages("anthropic:x") == missing_packages("offline") == ()


SCHEMA = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}


def model(server: HttpDouble, provider: str = "openai") -> OpenAIModel:
    return OpenAIModel(Endpoint(provider=provider, model="m", api_key="k", base_url=f"{server.url}/v1"))


def test_a_schema_for_the_reply_is_sent_where_the_provider_has_it() -> None:
    """S4-19: chat with system, user and assistant messages, optionally with an output schema."""
    loose = {"type": "object", "properties": {"sum": {"type": "integer"}}}
    with HttpDouble([FIVE] * 4) as server:
        ask(model(server), reply_schema=SCHEMA)
        ask(model(server), reply_schema=loose)
        ask(model(server))
        ask(model(server, "deepseek"), reply_schema=SCHEMA)
    strict, wished, none, never = server.requests
    assert [message["role"] for message in strict["messages"]] == ["system", "user"]
    assert strict["response_format"]["json_schema"] == {"name": "reply", "schema": SCHEMA, "strict": True}
    assert wished["response_format"]["json_schema"]["strict"] is False
    assert "response_format" not in none | never


@pytest.mark.parametrize(
    ("provider", "sent"), [("openai", False), ("azure", True), ("vllm", False), ("ollama", False), ("dashscope", False)]
)
def test_servers_that_force_a_schema_keep_their_tools(provider: str, sent: bool) -> None:
    """Any server may be behind OpenAI's name at an address of one's own."""
    tools = (calculator.card,)
    with HttpDouble([FIVE] * 3) as server:
        ask(model(server, provider), reply_schema=SCHEMA, tools=tools)
        ask(model(server, provider), reply_schema=SCHEMA, tools=tools, native=False)
        ask(model(server, provider), reply_schema=SCHEMA)
    assert ["response_format" in request for request in server.requests] == [sent, True, True]


@pytest.mark.parametrize("base_url", [None, "https://api.openai.com/v1/"])
def test_openai_itself_takes_a_schema_beside_tools(base_url: str | None) -> None:
    assert Endpoint(provider="openai", model="m", api_key="k", base_url=base_url).structured == "always"


def test_an_agent_with_tools_sends_the_schema_of_its_answer_strictly_where_it_can() -> None:
    """What pydantic leaves open is closed; an object with optional fields is a wish."""

    class Line(BaseModel):
        name: str

    class Order(BaseModel):
        total: int
        lines: list[Line]

    class Loose(BaseModel):
        total: int = 0

    answer = {"choices": [{"message": {"content": '{"total": 5, "lines": []}'}, "finish_reason": "stop"}]}
    formats = []
    for output_type in (Order, Loose):
        with HttpDouble([(200, answer)]) as server:
            agent: Agent[Any, Any] = Agent(model=model(server, "azure"), tools=[calculator], output_type=output_type)
            output = agent.run_sync("How much?").output
            assert output is not None
            assert output.total == 5
        [request] = server.requests
        assert request["tools"]
        formats.append(request["response_format"]["json_schema"])
    strict, wished = formats
    assert strict["strict"] is True
    assert strict["schema"]["additionalProperties"] is False
    assert strict["schema"]["$defs"]["Line"]["additionalProperties"] is False
    assert wished["strict"] is False
    assert "additionalProperties" not in wished["schema"]


@pytest.mark.parametrize(
    ("body", "again"),
    [
        ({"message": "Invalid schema for response_format 'reply': too deep", "param": "response_format"}, True),
        ({"message": "Failed to parse grammar"}, True),
        ({"message": "'response_format' is not supported by this model"}, False),
    ],
)
def test_a_schema_that_the_provider_refuses_is_left_out_from_then_on(body: dict[str, Any], again: bool) -> None:
    other = {**SCHEMA, "title": "another"}
    with HttpDouble([whole(400, {"error": body}), FIVE, FIVE, FIVE]) as server:
        target = model(server)
        for schema in (SCHEMA, dict(SCHEMA), other):
            assert ask(target, reply_schema=schema).text == "5"
    assert ["response_format" in request for request in server.requests] == [True, False, False, again]


def test_temperature_and_top_p_reach_the_wire() -> None:
    """S3-23: decisions with temperature 0.2 and top_p 0.9."""
    with HttpDouble([FIVE]) as server:
        ask(model(server), temperature=0.2, top_p=0.9)
    assert (server.requests[0]["temperature"], server.requests[0]["top_p"]) == (0.2, 0.9)


def test_the_system_message_is_sent_once() -> None:
    """S4-60."""
    with HttpDouble([FIVE]) as server:
        ask(model(server))
    assert [message["role"] for message in server.requests[0]["messages"]] == ["system", "user"]
    assert "system" not in server.requests[0]
