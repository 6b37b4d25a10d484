"""Which form a file has is told by its fields, and every form gives a configuration that can be served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from taoloop.errors import AgentFileError, ConfigError
from taoloop.serve.gateway.config.gateway_file import load_config
from taoloop.serve.gateway.config.host_overrides import HostOverrides, base_url
from taoloop.serve.gateway.config.model import ServerLimits

CONFIGS = Path(__file__).parents[2] / "data" / "higress" / "configs"
EVERY = sorted(CONFIGS.glob("*.yaml"))

FIELDS = ["agents", "keys", "server", "services", "default", "model", "tools", "name", "llm", "apis", "jsonResp", "x"]
FIELDS += ["apiProvider", "api", "url", "promptTemplate", "domain", "servicePort", "apiKey", "enable"]


def written(folder: Path, content: Any, name: str = "gate.yaml") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("content", "form"),
    [
        ("agents: {a: {model: offline}}", "own"),
        ("model: offline\ntools: [calculator]", "agent"),
        ("name: just a name", "agent"),
    ],
)
def test_the_form_is_told_by_the_fields(content: str, form: str, tmp_path: Path) -> None:
    assert load_config(written(tmp_path, content), env={}).form == form


@pytest.mark.parametrize("path", EVERY, ids=[path.stem for path in EVERY])
def test_every_ai_agent_file_loads_unchanged_and_answers_whatever_model_is_asked_for(path: Path) -> None:
    # S1-11, S1-48, S1-55: the printed form is one of them
    config = load_config(path, env={})
    assert config.form == ("flat" if path.stem == "06_flat_form" else "higress")
    assert [*config.agents] == [path.stem]
    assert config.any_model
    served = config.agent_for("whatever a client writes")
    assert served is not None
    assert served.agent.toolbox.cards
    assert served.agent.spec_for("hello").policy.profile == "supervised"
    assert config.keys == ()
    assert tuple(config.files) == (path,)


def test_a_plain_agent_file_is_served_under_its_name_with_its_journal(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, "name: sums\nmodel: offline\ndb: sums.db"), env={})
    assert [*config.agents] == ["sums"]
    assert config.db == tmp_path / "sums.db"
    assert config.agent_for("something else") is None
    unnamed = load_config(written(tmp_path, "model: offline", "helper.yaml"), env={})
    assert [*unnamed.agents] == ["helper"]


def test_what_is_given_beside_the_file_goes_first(tmp_path: Path) -> None:
    path = written(tmp_path, "agents: {a: {model: offline}}\nserver: {host: 127.0.0.2, port: 9000, db: a.db}")
    config = load_config(path, env={})
    assert (config.host, config.port, config.db) == ("127.0.0.2", 9000, tmp_path / "a.db")
    config = load_config(path, env={}, host="::1", port=0, db="b.db", any_model=True)
    assert (config.host, config.port, config.db, config.any_model) == ("::1", 0, Path("b.db"), True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("weather: {city: Bonn}", ["no configuration of a gateway", "`agents`", "`llm` and `apis`", "`model`"]),
        ("openapi: 3.1.0\npaths: {}", ["no configuration of a gateway", "OpenAPI document"]),
        ("keys: []", ["gate.yaml:1", "keys", "`agents` is missing"]),
        ("kind: WasmPlugin\nspec: {}", ["defaultConfig"]),
        ("[]", ["is a mapping of fields"]),
        ("", ["but this is empty"]),
        ("a: [", ["gate.yaml:", "not YAML"]),
    ],
)
def test_any_other_file_is_refused_with_what_would_make_it_which_form(
    content: str, said: list[str], tmp_path: Path
) -> None:
    with pytest.raises(AgentFileError) as caught:
        load_config(written(tmp_path, content), env={})
    for part in said:
        assert part in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AgentFileError, match=r"none\.yaml: there is no such file"):
        load_config(tmp_path / "none.yaml")


@given(
    data=st.recursive(
        st.none() | st.booleans() | st.integers(-5, 70_000) | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(FIELDS),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)
def test_whatever_stands_in_a_file_it_is_read_or_refused_with_its_place(
    data: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(tmp_path_factory.mktemp("any"), {"any": data} if not isinstance(data, dict) else data)
    try:
        places = [*load_config(path, env={}).agents]
    except AgentFileError as error:
        places = [error.path] if error.path == str(path) else []
    assert places


@pytest.mark.parametrize(
    ("address", "base"),
    [
        ("127.0.0.1:9", "http://127.0.0.1:9"),
        ("[::1]:80", "http://[::1]:80"),
        ("https://h.example.com/x/", "https://h.example.com/x"),
    ],
)
def test_an_address_gives_a_base_url(address: str, base: str) -> None:
    assert base_url("llm.dns", address) == base


@pytest.mark.parametrize("address", ["", "host", "h:0", "h:x", "ftp://h:1", "h:1?q", "[::1:8"])
def test_an_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        base_url("a", address)


def test_an_address_keeps_its_path_where_its_host_has_another_place() -> None:
    services = HostOverrides({"Api.example.com": base_url("", "127.0.0.1:9")})
    assert services.redirect("https://api.example.com:8443/v1") == "http://127.0.0.1:9/v1"
    assert services.redirect("https://other.example.com/v1") == "https://other.example.com/v1"
    assert services.redirect("http://[broken") == "http://[broken"
    assert services.unused() == ()
    assert services.environment({"OPENAI_BASE_URL": "https://api.example.com/v1", "A": "b"}) == {
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "A": "b",
    }


@pytest.mark.parametrize(
    "bounds",
    [
        {"max_runs": 0},
        {"max_body_bytes": True},
        {"run_timeout_s": 0},
        {"heartbeat_s": float("inf")},
        {"shutdown_s": -1},
    ],
)
def test_bounds_that_hold_nothing_are_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bounds))):
        ServerLimits(**bounds)


def test_a_whole_run_is_bounded_though_the_table_of_the_source_names_no_field_for_it() -> None:  # S1-47, S1-62
    assert ServerLimits().run_timeout_s == 300.0
    assert load_config(EVERY[0], env={}).limits.run_timeout_s == 300.0
