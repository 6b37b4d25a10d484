"""The published schema of what `tao serve` takes, and the page about it: both say what the reader does."""

import re
from collections import defaultdict
from pathlib import Path

import pytest
from tests.docs.fenced import ROOT, blocks
from tests.docs.published import Published

from taoloop.config.settings_reader import fields_of
from taoloop.errors import AgentFileError
from taoloop.serve.gateway.config import gateway_file as own_form
from taoloop.serve.gateway.config.gateway_file import load_config

PUBLISHED = Published("gateway.schema.json", "make_gateway_schema.py")
PAGES = ("docs/gateway-config.md", "docs/gateway-config.zh.md")
CONFIGS = sorted((ROOT / "tests" / "data" / "higress" / "configs").glob("*.yaml"))


def test_the_published_schema_is_current() -> None:
    """After a change of a field: python docs/make_gateway_schema.py."""
    PUBLISHED.require_current()


def test_every_field_of_the_server_and_of_a_key_is_in_it_with_what_it_means() -> None:
    for kind in (own_form.ServerEntry, own_form.KeyEntry):
        made = PUBLISHED.schema["$defs"][kind.__name__]["properties"]
        assert set(made) == set(fields_of(kind))
        assert [name for name, field in made.items() if not field.get("description")] == []
        assert [name for name, field in made.items() if re.search(r"`\w+`: ", field["description"])] == []  # another's


@pytest.mark.parametrize("path", CONFIGS, ids=[path.stem for path in CONFIGS])
def test_every_ai_agent_file_fits(path: Path) -> None:
    assert PUBLISHED.fits(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "content",
    [
        "agents: {}",
        "agents: {a: 5}",
        "agents: {a: {modle: offline}}",
        "agents: {a: x.yaml}\nserver: {prot: 80}",
        "agents: {a: {model: offline}}\nkeys: [{name: 5}]",
        "agents: {a: {model: offline}}\ndefault: [a]",
        "model: offline\ntool: []",
        "{}",
        "llm: {}\napis: []",
        "llm: {model: m}\napis: [{}]",
        "weather: Bonn",
        "model: 5",
        "approved_tiers: [any]",
        "limits: {max_steps: many}",
        "policy: {rules: [{tool: pay}]}",
        "policy: {profil: strict}",
        "policy: 5",
        "fallback: [5]",
        "output_schema: [a]",
        "agents: {a: {file: x.yaml, tools: []}}",
        "agents: {a: {model: offline}}\nserver: {port: [1]}",
        "agents: {a: {model: offline}}\nkeys: [{digest: a}]",
    ],
)
def test_what_the_reader_refuses_the_schema_refuses(content: str, tmp_path: Path) -> None:
    assert not PUBLISHED.fits(content)
    (tmp_path / "x.yaml").write_text(content)
    with pytest.raises(AgentFileError):
        load_config(tmp_path / "x.yaml", env={})


def files(page: str) -> list[tuple[str, str]]:
    """The files that a page shows, and those whole configurations that it gives no name."""
    shown = [block for block in blocks(page) if block.language == "yaml"]
    return [(block.file or f"unnamed-{block.line}.yaml", block.text) for block in shown]


@pytest.mark.parametrize("page", PAGES)
def test_what_the_page_shows_is_read_and_fits_the_schema(page: str, tmp_path: Path) -> None:
    found = files(page)
    for name, content in found:
        (tmp_path / name).write_text(content, encoding="utf-8")
    env = defaultdict(lambda: "a-value-of-the-tests", PORT="9000")
    env |= dict.fromkeys(("SHOP_KEY", "LLM_KEY", "OPS_KEY", "EAST_KEY", "SECOND_KEY"), "a-value-of-the-tests")
    served = [name for name, content in found if not content.startswith("openapi:")]
    assert len(served) >= 4
    for name in served:
        config = load_config(tmp_path / name, env=env)
        assert config.agents
        assert PUBLISHED.fits((tmp_path / name).read_text(encoding="utf-8")), name


@pytest.mark.parametrize("page", PAGES)
def test_the_page_names_every_field(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    kinds = (own_form.GatewayFields, own_form.ServerEntry, own_form.KeyEntry, own_form.AgentByFile)
    own = [name for kind in kinds for name in fields_of(kind)]
    names = ("AiAgentFields", "LlmSettings", "ApiProvider", "ServiceKey", "LongEntry", "ShortEntry", "ShortTool")
    of_plugin = [name for kind in names for name in PUBLISHED.schema["$defs"][kind]["properties"]]
    assert [name for name in (*own, *of_plugin) if f"`{name}`" not in text] == []
