"""Tool files: what they give, what is told of a malformed one, and what comes from the environment."""

import asyncio
import json
import logging
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, strategies as st
from tests.sizes import examples

from taoloop.config.agent_file import load_agent
from taoloop.config.document import is_config_file
from taoloop.config.settings_reader import EnvValues, fields_of
from taoloop.config.tool_entries import SOURCE_KINDS
from taoloop.config.tool_file import LoadedFile, load_tools, read_tools, tools_named
from taoloop.core.cards.tool_card import ToolCard
from taoloop.errors import AgentFileError, ConfigError, ToolDefinitionError, ToolError
from taoloop.runtime.agent import Agent
from taoloop.runtime.tool_source import ToolSource, sources_in
from taoloop.testing import FakeEmbedder
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.toolbox import LoadResult

CODE = '''
from taoloop import tool

@tool(tier="read")
def shout(text: str) -> str:
    """Write a text in capitals, at most a line."""
    return text.upper()

def plain(city: str) -> str:
    return city
'''


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a module, a table, documents and a database."""
    folder = tmp_path_factory.mktemp("template")
    (folder / "toolcode.py").write_text(CODE)
    (folder / "facts.yaml").write_text("capital: Paris\n")
    (folder / "handbook").mkdir()
    (folder / "handbook" / "rest.md").write_text("# Rest\n\nWho works at night rests by day.\n")
    with closing(sqlite3.connect(folder / "shop.db")) as database, database:
        database.execute("create table orders (id integer primary key, town text)")
        database.execute("insert into orders values (7, 'Bern')")
    return folder


@pytest.fixture(autouse=True)
def here(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A copy of that folder, as `files` in the current folder."""
    shutil.copytree(template, tmp_path / "files")
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:  # another test may have a module of the same name
        if str(tmp_path) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def written(content: str, name: str = "tools.yaml") -> Path:
    path = Path("files") / name
    path.write_text(content, encoding="utf-8")
    return path.absolute()


def loaded(content: str, **env: str) -> LoadedFile:
    found = load_tools(written(content), env=env)
    found.close()
    return found


def names(found: LoadResult) -> list[str]:
    return [one.name for one in found.tools]


def refused(content: str, **env: str) -> AgentFileError:
    with pytest.raises(AgentFileError) as caught:
        loaded(content, **env)
    return caught.value


ALL_PLAIN = """
tools:
- calculator
- toolcode:shout
- lookup: {table: facts.yaml}
- function: toolcode:plain
  card: {name: echo, purpose: Say the city., tier: read, input_schema: {type: object, required: [city],
    properties: {city: {type: string}}}}
"""


def test_a_file_names_built_in_tools_code_tables_and_cards() -> None:
    found = loaded(ALL_PLAIN)
    assert names(found) == ["calculator", "shout", "lookup", "echo"]
    assert found.problems == ()
    assert found.tools[2](key="capital") == "Paris"


def test_a_file_may_be_json() -> None:
    path = written(json.dumps({"tools": ["calculator", "toolcode:shout"]}), "tools.json")
    assert names(load_tools(path)) == ["calculator", "shout"]


def test_a_folder_and_a_database_are_found_beside_the_file() -> None:
    found = loaded(
        """
tools:
- documents: {path: handbook, index: index.db}
- sql: {name: shop, url: "sqlite:///shop.db"}
"""
    )
    assert found.problems == ()
    assert "search_documents" in names(found)
    query = next(one for one in found.tools if one.name == "shop.query")
    assert query.card.tier == "read"
    assert "orders" in query.card.purpose + json.dumps(dict(query.card.input_schema)) + query.card.use_when
    assert Path("files/index.db").is_file()
    assert not Path("shop.db").exists()


def test_the_embedding_model_of_a_folder_is_an_object_of_a_module_beside_the_file() -> None:
    Path("files/meaning.py").write_text(
        "from taoloop.testing import FakeEmbedder\nmodel = FakeEmbedder(synonyms={'exhausted': 'rests'})\n"
    )
    try:
        found = loaded("tools: [{documents: {path: handbook, index: i.db, embedder: 'meaning:model'}}]\n")
        assert [one["file"] for one in found.tools[0]("exhausted", 1)] == ["rest.md"]
    finally:
        sys.modules.pop("meaning", None)


def test_the_embedding_model_of_an_api_is_one_too() -> None:
    Path("files/apis.py").write_text("from taoloop.testing import FakeEmbedder\nmodel = FakeEmbedder()\n")
    paths = {"/a": {"get": {"operationId": "a", "responses": {}}}}
    api = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "servers": [{"url": "https://a.example"}]}
    Path("files/shop.json").write_text(json.dumps({**api, "paths": paths}))
    try:
        found = loaded("tools: [{openapi: {document: shop.json, search_above: 0, embedder: 'apis:model'}}]\n")
        assert [type(tool.embedder) for tool in found.tools] == [FakeEmbedder], found.problems
    finally:
        sys.modules.pop("apis", None)


@pytest.mark.parametrize(("code", "told"), [("nowhere:model", "no module 'nowhere'"), ("model", "of the form module:")])
def test_an_embedding_model_that_cannot_be_loaded_is_a_problem_of_its_folder(code: str, told: str) -> None:
    found = loaded(f"tools:\n- calculator\n- documents: {{path: handbook, embedder: '{code}'}}\n")
    assert names(found) == ["calculator"]
    (problem,) = found.problems
    assert (problem.source, problem.place) == ("tools.yaml:3", "tools[1].documents.embedder")
    assert told in problem.message


def test_a_plain_text_stands_for_the_main_field_of_a_source() -> None:
    (source,) = sources_in(tools_named(written("tools:\n- documents: handbook\n")))[:1]
    assert source.where == "tools.yaml:2: tools[0].documents"


def test_fetch_may_be_named_alone() -> None:
    assert names(loaded("tools: [fetch]\n")) == ["fetch"]


def test_a_web_search_takes_its_key_from_the_environment() -> None:
    found = loaded("tools: [web_search]\n", BRAVE_API_KEY="b-key-of-brave")
    assert names(found) == ["web_search"]
    assert found.tools[0].secrets == {"BRAVE_API_KEY": "b-key-of-brave"}
    assert found.secrets["BRAVE_API_KEY"] == "b-key-of-brave"
    assert loaded("tools:\n- web_search: duckduckgo\n", BRAVE_API_KEY="b").tools[0].secrets == {}
    named = "tools:\n- web_search: {name: look, provider: tavily, api_key: '${T}', count: 3}\n"
    (look,) = loaded(named, T="t-key-of-tavily").tools
    assert (look.name, look.card.parameters["count"]["default"]) == ("look", 3)
    ruled = loaded("egress: {deny: [api.tavily.com]}\n" + named, T="t-key-of-tavily")
    with pytest.raises(ToolError, match=r"api\.tavily\.com.*deny list"):
        asyncio.run(ruled.tools[0].handler(query="tea"))
    error = refused("tools:\n- calculator\n- web_search\n")
    assert (error.line, error.field) == (3, "tools[1]")
    assert "SEARXNG_URL, BRAVE_API_KEY or TAVILY_API_KEY" in error.hint
    assert "needs TAVILY_API_KEY" in refused("tools:\n- web_search: tavily\n").message


def test_a_file_may_name_another() -> None:
    written("tools: [toolcode:shout]\n", "more.yaml")
    assert names(loaded("tools:\n- calculator\n- file: more.yaml\n")) == ["calculator", "shout"]


def test_a_file_that_names_itself_is_refused() -> None:
    error = refused("tools:\n- file: tools.yaml\n")
    assert (error.line, error.field) == (2, "tools[0].file")
    assert "names itself" in error.message


def test_the_built_in_tools_may_have_a_workspace_of_the_file() -> None:
    found = loaded("workspace: handbook\ntools: [list_files]\n")
    assert "rest.md" in str(found.tools[0](path="."))


def test_the_workspace_of_the_file_may_come_from_a_variable() -> None:
    path = written("workspace: ${PLACE}\ntools: [list_files]\n")
    assert "rest.md" in str(load_tools(path, env={"PLACE": "handbook"}).tools[0](path="."))


@pytest.mark.parametrize(
    ("content", "line", "field", "text"),
    [
        ("", 1, "", "a tool file is a mapping of fields, but this is empty"),
        ("- calculator\n", 1, "", "a tool file is a mapping of fields, but this is a list"),
        ("egress: {}\n", 1, "", "the field `tools` is missing"),
        ("tool: []\n", 1, "tool", "Did you mean 'tools'?"),
        ("openapi: 3.1.0\npaths: {}\n", 1, "openapi", "tao tools --openapi FILE"),
        ("mcpServers: {}\n", 1, "mcpServers", "Name each server under `tools`"),
        ("model: offline\ntools: []\n", 1, "model", "--agent"),
        ("tools:\n- file: ''\n", 2, "tools[0].file", "a path is expected, not ''"),
        ("tools:\n- file: handbook\n", 2, "tools[0].file", "it is a folder"),
        ("tools:\n- mcp: {name: a, command: b, folder: {}}\n", 2, "tools[0].mcp.folder", "a path is expected"),
        ("tools:\n- openapi: {document: a, auth: {k: 7}}\n", 2, "tools[0].openapi.auth.k", "Put it in quotes."),
        ("tools: [list_files]\nworkspace: ''\n", 2, "workspace", "a path is expected, not ''"),
        ("tools: [list_files]\nworkspace: ${NOWHERE}\n", 2, "workspace", "NOWHERE is not set"),
        ("tools:\n- documents:\n    pth: handbook\n", 3, "tools[0].documents.pth", "Did you mean 'path'?"),
        ("tools:\n- documents: {name: a}\n", 2, "tools[0].documents", "the field `path` is missing"),
        (
            "tools:\n- documents: {path: ~nobody-here/a}\n",
            2,
            "tools[0].documents.path",
            "names the home folder of a user",
        ),
        ("tools:\n- documents:\n    path: handbook\n    max_files: many\n", 4, "tools[0].documents.max_files", "whole"),
        ("tools:\n- documents:\n    path: handbook\n    name: a b\n", 4, "tools[0].documents.name", "'a b'"),
        ("tools:\n- documents: {path: h, embedder: 3}\n", 2, "tools[0].documents.embedder", "module:attribute is exp"),
        (
            "tools:\n- documents: {path: h, embedder: 'toolcode:plain'}\n",
            2,
            "tools[0].documents.embedder",
            "an object, not a class, with a text `name`",
        ),
        ("tools:\n- sql:\n    name: 7\n    url: sqlite:///x.db\n", 3, "tools[0].sql.name", "Put it in quotes."),
        ("tools:\n- fetch:\n    allow: localhost\n", 3, "tools[0].fetch.allow", "not 'localhost'. Put it in brackets."),
        ("tools:\n- fetch:\n    ports: [80, x]\n", 3, "tools[0].fetch.ports[1]", "a whole number is expected"),
        ("tools: [fetch]\negress:\n  denied: [x]\n", 3, "egress.denied", "Did you mean 'deny'?"),
        (
            "tools: [fetch]\negress:\n  schemes: [ftp]\n",
            3,
            "egress.schemes[0]",
            "matches ^https?$ is expected",
        ),
        ("tools:\n- mcp: {name: a}\n", 2, "tools[0].mcp", "`command` or `url`"),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_field(content: str, line: int, field: str, text: str) -> None:
    error = refused(content)
    assert (error.line, error.field) == (line, field)
    assert error.path.endswith("tools.yaml")
    assert text in f"{error.message} {error.hint}"
    assert "\n" not in error.message


def test_a_file_that_is_not_there_is_told() -> None:
    with pytest.raises(AgentFileError, match=r"none\.yaml: there is no such file"):
        load_tools("none.yaml")


def test_two_tools_of_one_name_are_an_error_that_names_both_places() -> None:
    error = refused("tools:\n- toolcode:shout\n- calculator\n- function: toolcode:shout\n")
    assert error.line == 4
    assert "Two tools are called 'shout': that of tools.yaml:2, and that of tools.yaml:4." in error.message
    assert "`name`" in error.hint


def test_two_folders_need_names() -> None:
    folders = "tools:\n- documents: {path: handbook, index: a.db%s}\n- documents: {path: handbook, index: b.db}\n"
    assert "Two tools are called" in refused(folders % "").message
    assert len(set(names(loaded(folders % ", name: other")))) == 2 * len(
        names(loaded("tools: [{documents: handbook}]"))
    )


# What comes from the environment


def test_values_come_from_the_environment_and_are_known_as_secrets() -> None:
    found = loaded(
        """
tools:
- sql: {name: shop, url: 'sqlite:///${FILE:-shop.db}'}
- mcp: {name: a, command: nosuchprogram, env: {KEY: '${WHO}'}}
""",
        WHO="Ann-12345678",
    )
    assert "shop.query" in names(found)
    assert found.secrets == {"WHO": "Ann-12345678"}
    assert "Ann-12345678" not in repr(found)


@pytest.mark.parametrize(
    ("given", "env", "text"),
    [
        ("${TOKEN}", {}, "the environment variable TOKEN is not set"),
        ("${TOKEN}", {"TOKEN": ""}, "the environment variable TOKEN is empty"),
        ("${TO KEN}", {}, "'${TO KEN}' is not of the form ${NAME}"),
        ("x ${TOKEN", {}, "'${TOKEN' is not of the form ${NAME}"),
        ("${}", {}, "is not of the form ${NAME}"),
    ],
)
def test_a_missing_variable_is_told_with_its_name_and_line(given: str, env: dict[str, str], text: str) -> None:
    error = refused(f"tools:\n- calculator\n- documents:\n    path: handbook\n    about: '{given}'\n", **env)
    assert (error.line, error.field) == (5, "tools[1].documents.about")
    assert text in error.message
    assert "$" in error.hint


def test_defaults_numbers_switches_and_the_signs_themselves() -> None:
    found = loaded(
        """
tools:
- fetch: {timeout_s: "${T}", links: "${L:-false}", user_agent: "$${me} ${A:-}", max_bytes: "${B:-1000}"}
""",
        T="2.5",
    )
    assert found.tools[0].card.timeout_s >= 2.5
    assert "false is expected, not '${L}'" in refused("tools:\n- fetch: {links: '${L}'}\n", L="maybe").message


@pytest.mark.parametrize(
    ("value", "is_secret"),
    [
        ("s3cr3t-value", True),
        ("https://user:pass@example.com/x", True),
        ("https://hooks.example.com/services/T0000/B0000/XXXXXXXXXXXXXXXXXXXX", True),
        ("https://api.example.com/v1", False),
        ("http://localhost:8080", False),
        ("/", False),
        ("/definitely/not/there", True),
    ],
)
def test_addresses_and_paths_are_no_secrets(value: str, is_secret: bool) -> None:
    found = loaded("tools:\n- documents: {path: handbook, about: '${V}'}\n", V=value)
    assert ("V" in found.secrets) is is_secret
    assert loaded("tools:\n- documents: {path: '${V}'}\n", V=str(Path("files/handbook").absolute())).secrets == {}
    assert loaded("tools: [fetch]\negress: {deny: ['${V}']}\n", V="blocked.example.com").secrets == {}


def test_a_secret_is_never_shown_when_its_settings_are_refused() -> None:
    error = refused("tools:\n- sql: {name: shop, url: '${DB_LOGIN}'}\n", DB_LOGIN="hunter2hunter2")
    assert "hunter2" not in f"{error.message} {error.hint} {error!r}"
    found = load_tools(
        written("tools:\n- sql: {name: shop, url: 'nosuch://u:${DB_LOGIN}@h/x'}\n- calculator\n"),
        env={"DB_LOGIN": "hunter2hunter2"},
    )
    assert "hunter2" not in " ".join(map(str, found.problems))
    assert names(found) == ["calculator"]
    assert found.problems


# What holds for all


def test_the_rules_of_the_file_hold_for_every_source() -> None:
    entries = tools_named(
        written("egress: {deny: [bad.example.com], only_allowed: true}\ntools:\n- fetch: {deny: [worse.example.com]}\n")
    )
    (source, _mark) = sources_in(entries)
    settings = source.settings
    assert settings.deny == ("bad.example.com", "worse.example.com")
    assert settings.only_allowed is True
    written("egress: {deny: [bad.example.com], ports: [443]}\ntools:\n- mcp: {name: a, url: 'http://localhost:1/m'}\n")
    (remote, _mark) = sources_in(tools_named(Path("files/tools.yaml")))
    assert remote.settings.egress == EgressRules(deny=("bad.example.com",), ports=(443,))


def test_a_program_of_a_server_starts_beside_the_file() -> None:
    content = """
tools:
- mcp: {name: a, command: ./bin/serve, args: [x.txt]}
- mcp: {name: b, command: serve, folder: inner}
"""
    first, second, _mark = (source.settings for source in sources_in(tools_named(written(content))))
    folder = Path("files").absolute()
    assert (first.command, first.folder, first.args) == (str(folder / "bin" / "serve"), folder, ("x.txt",))
    assert (second.command, second.folder) == ("serve", folder / "inner")


# Whatever stands there


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("${X}") | st.just("${"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_NAMES = sorted({name for form in SOURCE_KINDS.values() for name in fields_of(form.settings_class())})


@examples(80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    form=st.sampled_from([*SOURCE_KINDS, "lookup", "file", "agent", "function", "none"]),
    value=_ANYTHING | st.dictionaries(st.sampled_from(_NAMES), _ANYTHING, max_size=4),
)
def test_whatever_stands_in_a_file_is_taken_or_told_in_one_line(form: str, value: object) -> None:
    content = json.dumps({"tools": [{form: value}]})
    told = None
    try:
        read_tools(written(content, "any.json"), env={"X": "s3cr3t-value"})
    except AgentFileError as error:
        told = error
    if told is not None:
        assert told.path.endswith("any.json")
        assert told.line >= 1
        assert len(told.message.splitlines()) == 1
        if form not in ("file", "lookup"):  # paths may be shown
            assert "s3cr3t" not in f"{told.message} {told.hint}"


@given(st.text(), st.text(alphabet="ab${}:-X "))
def test_texts_without_references_stay_and_others_are_filled_or_refused(plain: str, mixed: str) -> None:
    values = EnvValues({"X": "value"})
    if "${" not in plain:
        assert values.text(plain) == plain
    if "${" not in mixed:
        assert values.text(mixed) == mixed
    else:
        with suppress(ConfigError):
            assert isinstance(values.text(mixed), str)
    assert values.text("$${X} ${X} ${Y:-d} ${Y:-}") == "${X} value d "


# Cards


CARD: dict[str, Any] = {
    "name": "get_weather",
    "purpose": "Read the weather of one city, today only.",
    "use_when": "The weather is asked for.",
    "avoid_when": "The climate is asked for.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "minLength": 2}, "day": {"type": "string", "format": "date"}},
        "required": ["city"],
    },
    "output_schema": {"type": "string"},
    "errors": [{"code": "no_city", "retryable": False, "advice": "Name another city."}],
    "examples": [{"args": {"city": "上海"}, "output": {"degrees": 30}}],
    "tier": "read",
    "approval": "required",
    "timeout_s": 5,
    "max_input_bytes": 1024,
    "max_preview_chars": 500,
    "idempotent": True,
    "parallel": True,
    "compensation": "forget_weather",
    "compensation_args": {"city": "args.city"},
    "egress": ["city"],
    "roles": {"city": "target", "day": "minor"},
    "ids": {"id": "report"},
    "reversible": True,
    "repeatable": True,
    "probes": False,
    "transactional": False,
    "listed": False,
}


def with_card(card: dict[str, Any]) -> str:
    written("def weather(city: str, day: str = '') -> str:\n    return city + day\n", "cardcode.py")
    return json.dumps({"tools": [{"function": "cardcode:weather", "card": card}]}, indent=1)


def test_a_card_is_read_with_every_field() -> None:
    """S2-19 to S2-25."""
    card = loaded(with_card({**CARD, "compensation": None})).tools[0].card
    other = ("errors", "examples", "egress", "compensation")
    assert {name: getattr(card, name) for name in CARD if name not in other} == {
        name: value for name, value in CARD.items() if name not in other
    }
    assert (card.errors[0].code, card.examples[0].output) == ("no_city", {"degrees": 30})
    assert (card.egress, card.compensation) == (("city",), None)
    assert set(CARD) == set(ToolCard.__dataclass_fields__) - {
        "performed_by",
        "described_by",
        "contents",
    }  # no file may say these


def test_a_missing_tier_stays_unknown() -> None:
    schema = CARD["input_schema"]
    assert loaded(with_card({"name": "x1", "purpose": "p", "input_schema": schema})).tools[0].card.tier is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"purpos": "x"}, "card.purpos: there is no such field. Did you mean 'purpose'?"),
        ({"performed_by": "caller"}, "card.performed_by: there is no such field."),
        ({"tier": "reed"}, "card.tier: one of read, draft, write, destructive is expected, not 'reed'"),
        ({"approval": "always"}, "card.approval: one of required is expected, not 'always'"),
        ({"max_input_bytes": -1}, "card.max_input_bytes: The tool 'get_weather' has max_input_bytes = -1. It must be"),
        ({"timeout_s": "5"}, "card.timeout_s: a number is expected, not '5'"),
        ({"timeout_s": True}, "card.timeout_s: a number is expected, not true"),
        ({"max_input_bytes": 0}, "card.max_input_bytes: The tool 'get_weather' has max_input_bytes = 0. It must be"),
        ({"errors": [{"advice": "x"}]}, "card.errors[0]: the field `code` is missing"),
        ({"examples": ["x"]}, "card.examples[0]: a mapping is expected"),
        ({"errors": "x"}, "card.errors: a list is expected, not 'x'"),
        ({"name": "天气"}, "card: A tool cannot be called '天气'"),
        ({"input_schema": None}, "card.input_schema: a mapping is expected, not nothing"),
        ({"egress": "city"}, "card.egress: true or false or a list is expected, not 'city'"),
        ({"egress": ["town"]}, "'get_weather' has egress = ('town',)"),
        ({"egress": [["city"]]}, "card.egress[0]: a text is expected"),
        ({"roles": ["city"]}, "card.roles: a mapping is expected"),
        ({"roles": {"town": "target"}}, "gives a role to 'town', which is not one of its arguments"),
        ({"roles": {"city": "goal"}}, "the role 'goal'"),
        ({"roles": {"city": ["target"]}}, "card.roles.city: a text is expected"),
        ({"ids": ["id"]}, "card.ids: a mapping is expected"),
        ({"ids": {"id": 5}}, "card.ids.id: a text is expected, not 5"),
        ({"ids": {"id": "ref:file"}}, "has ids = {'id': 'ref:file'}"),
        ({"reversible": "no"}, "card.reversible: true or false is expected, not 'no'"),
        ({"compensation_args": "city"}, "card.compensation_args: a mapping is expected, not 'city'"),
    ],
)
def test_a_wrong_field_of_a_card_is_named(change: dict[str, Any], message: str) -> None:
    error = refused(with_card({**CARD, **change}))
    assert error.line > 1
    assert message in str(error)


# A part that fails


def test_a_source_that_fails_is_a_problem_and_the_rest_is_there() -> None:
    found = loaded("tools:\n- calculator\n- sql: {name: shop, url: 'nosuch://h/x'}\n- toolcode:shout\n")
    assert names(found) == ["calculator", "shout"]
    (problem,) = found.problems
    assert str(problem).startswith("tools.yaml:3: tools[1].sql: ")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("nosuchmodule:thing", "tools[1]: nosuchmodule:thing: there is no module 'nosuchmodule'."),
        ("toolcode:nothing", "has no attribute 'nothing'."),
        ("needs_another:tell", "raised ModuleNotFoundError: No module named 'nosuchmodule'"),
        ("ends:tell", "raised SystemExit: 3"),
        ("untyped:tell", "The parameter 'x' of the tool 'tell' has no type."),
        ("{function: nosuchmodule:thing, card: {name: thing, purpose: p}}", "tools[1].function: nosuchmodule:thing: "),
    ],
)
def test_code_that_cannot_be_loaded_is_a_problem_and_the_rest_is_there(entry: str, message: str) -> None:
    written("import nosuchmodule\n", "needs_another.py")
    written("raise SystemExit(3)\n", "ends.py")
    written("def tell(x): return x\n", "untyped.py")
    found = loaded(f"tools:\n- calculator\n- {entry}\n- toolcode:shout\n")
    assert names(found) == ["calculator", "shout"]
    (problem,) = found.problems
    assert str(problem).startswith("tools.yaml:3: tools[1]")
    assert message in str(problem)
    agent = written(f"tools:\n- {entry}\n", "agent.yaml")
    with pytest.raises(AgentFileError):  # an agent file says what this one agent is made of
        load_agent(str(agent))


def test_what_a_loader_raises_does_not_take_the_others_with_it() -> None:
    location = sources_in(tools_named(written("tools: [fetch]\n")))[0].location

    def broken() -> LoadResult:
        raise ValueError("what s3cr3t-value")

    source = ToolSource(location, broken, secrets={"S": "s3cr3t-value"})
    (problem,) = source.loaded().problems
    assert "ValueError" in problem.message
    assert "s3cr3t" not in problem.message
    assert source.take_problems() == (problem,)
    assert source.take_problems() == ()


# In an agent


def test_an_agent_loads_a_source_once_and_knows_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    written("tools:\n- sql: {name: gone, url: 'nosuch://h/x'}\n- fetch\n")
    written(
        "model: offline\ntools:\n- calculator\n- file: tools.yaml\n- documents: {path: handbook, about: '${A}'}\n",
        "a.yaml",
    )
    agent = load_agent("files/a.yaml", env={"A": "s3cr3t-value"})
    assert agent.secrets == {"A": "s3cr3t-value"}
    with caplog.at_level(logging.WARNING, "taoloop"):
        assert {"calculator", "fetch", "search_documents", "read_observation"} <= set(agent.toolbox.names)
    assert "tools.yaml:2: tools[0].sql" in caplog.text
    assert all(source.loaded() is source.loaded() for source in sources_in(agent.tools))


def test_two_tools_of_one_name_in_an_agent_name_both_sources() -> None:
    written("tools: [fetch]\n", "one.yaml")
    written("tools: [{fetch: {links: false}}]\n", "two.yaml")
    agent = Agent(tools=[*tools_named("files/one.yaml"), *tools_named("files/two.yaml")])
    with pytest.raises(
        ToolDefinitionError, match=r"one\.yaml:1: tools\[0\], and that of two\.yaml:1: tools\[0\]\.fetch"
    ):
        _ = agent.toolbox


def test_an_agent_that_was_given_a_file_remembers_it() -> None:
    path = written("tools: [calculator]\n")
    assert Agent(tools=tools_named(path)).spec_for("x").tools_from == (str(path),)


@pytest.mark.parametrize(("name", "expected"), [("a.yaml", True), ("b.yml", True), ("C.JSON", True), ("m:a", False)])
def test_a_tool_file_is_told_by_its_ending(name: str, expected: bool) -> None:
    assert is_config_file(name) is expected
