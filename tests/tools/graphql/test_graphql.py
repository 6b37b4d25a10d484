"""GraphQL APIs as tools, against a server that executes what it is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

pytest.importorskip("graphql")

from graphql import build_schema, get_introspection_query, graphql_sync, parse, validate
from tests.shell import Shell
from tests.tools.graphql.shop import SDL, Shop
from tests.tools.oauth.authorization_server import AuthorizationServer

from taoloop import Agent, ScriptedModel
from taoloop.config.tool_file import load_tools
from taoloop.core.cards.card_lint import lint
from taoloop.errors import AgentFileError, ConfigError, InvalidArguments, ToolError, ToolSourceError
from taoloop.tools.graphql import GraphqlSource, graphql_tools
from taoloop.tools.graphql.operation_call import GraphqlCaller
from taoloop.tools.tool import Tool, ToolContext
from taoloop.tools.toolbox import LoadResult

DOCUMENT = """
fragment Brief on Order { id status }

# Find an order,
# with its customer.
query FindOrder($id: ID!) { order(id: $id) { ...Brief customer { name } } }

mutation Place($items: [ItemInput!]!, $note: String = "by an agent") {
  placeOrder(items: $items, note: $note) { id note }
}

query Both($id: ID!, $first: Int! = 1) { order(id: $id) { id } orders(first: $first) { totalCount } }
"""


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop() as served:
        yield served


def load(shop: Shop, **settings: Any) -> LoadResult:
    settings = {"schema_file": SDL, **settings}
    return graphql_tools(GraphqlSource(endpoint=f"{shop.url}/graphql", **settings))


def tools_of(shop: Shop, **settings: Any) -> dict[str, Tool]:
    return {tool.name: tool for tool in load(shop, **settings).tools}


def call(tool: Tool, args: dict[str, Any], **context: Any) -> Any:
    """What the model reads of a call with these arguments."""

    async def run() -> str:
        values = tool.prepare(args).values
        output = await tool.invoke(values, ToolContext(**context))
        return str(tool.render(output).text)

    return json.loads(asyncio.run(run()))


def failure(tool: Tool, args: dict[str, Any], **context: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        call(tool, args, **context)
    return caught.value


def test_each_named_operation_of_a_document_is_a_tool_and_nothing_else(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "orders.graphql").write_text(DOCUMENT)
    tools = tools_of(shop, documents=[str(tmp_path / "queries")], name="shop")
    assert list(tools) == ["shop_FindOrder", "shop_Place", "shop_Both"]
    find, place = tools["shop_FindOrder"].card, tools["shop_Place"].card
    assert (find.tier, place.tier) == ("read", "write")
    assert not place.can_be_undone
    assert find.purpose.startswith("Find an order, with its customer.")
    assert find.required == ("id",)
    assert place.parameters["note"]["default"] == "by an agent"
    expected = {"data": {"order": {"id": "7", "status": "OPEN", "customer": {"name": "Ann"}}}}
    assert call(tools["shop_FindOrder"], {"id": "7"}) == expected
    [sent] = shop.executed
    assert sent["variables"] == {"id": "7"}
    assert "Brief" in sent["query"]
    assert "Place" not in sent["query"]  # only what the call needs
    assert call(tools["shop_Place"], {"items": [{"sku": "a"}]})["data"]["placeOrder"]["note"] == "by an agent"
    assert call(tools["shop_Both"], {"id": "1"})["data"] == {"order": {"id": "1"}, "orders": {"totalCount": 99}}


def test_values_are_variables_and_never_part_of_the_text(shop: Shop) -> None:
    find = tools_of(shop, documents=[DOCUMENT])["FindOrder"]
    evil = '7") { id } cancelOrder(id: "7'
    assert call(find, {"id": evil})["data"]["order"]["id"] == evil
    text = find.handler.text if isinstance(find.handler, GraphqlCaller) else ""
    assert shop.executed[0] == {"query": text, "operationName": "FindOrder", "variables": {"id": evil}}
    assert evil not in text


def test_what_cannot_be_used_of_a_document_is_told_with_its_place(shop: Shop) -> None:
    bad = "query { version }\nquery Wrong { nothing }\nsubscription S { changed { id } }\nquery A { version }\n"
    loaded = load(shop, documents=[bad, "query A { version }"])
    assert [tool.name for tool in loaded.tools] == ["A"]
    told = {(problem.place, problem.message) for problem in loaded.problems}
    assert ("line 1", "An operation has no name.") in told
    assert any(place == "Wrong" and "Cannot query field 'nothing'" in text for place, text in told)
    assert ("S", "It is a subscription; only queries and mutations are tools.") in told
    assert any(place == "A" and "already" in text for place, text in told)
    with pytest.raises(ToolSourceError, match="It is not GraphQL"):
        load(shop, documents=["query {"])


def test_each_field_of_the_root_types_is_a_tool_with_arguments_from_the_schema(shop: Shop) -> None:
    loaded = load(shop)
    tools = {tool.name: tool for tool in loaded.tools}
    assert list(tools) == [
        "order",
        "orders",
        "search",
        "version",
        "placeOrder",
        "cancelOrder",
    ]  # not what is deprecated
    assert [problem.place for problem in loaded.problems] == ["mutation attach"]  # a file
    assert {name: tool.card.tier for name, tool in tools.items() if tool.card.tier != "read"} == {
        "placeOrder": "write",
        "cancelOrder": "write",
    }
    orders = tools["orders"].card
    assert orders.required == ()
    assert orders.parameters["first"] == {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1, "default": 10}
    schema = orders.input_schema["$defs"]
    assert schema["OrderFilter"]["properties"]["status"]["items"] == {
        "type": "string",
        "enum": ["OPEN", "SHIPPED", "LOST"],
    }
    assert schema["OrderFilter"]["properties"]["any"]["items"] == {"$ref": "#/$defs/OrderFilter"}
    assert schema["OrderFilter"]["properties"]["minimum"]["default"] == 0.5
    assert schema["Range"]["properties"]["from"]["description"] == "An instant. (DateTime)"
    assert tools["placeOrder"].card.input_schema["$defs"]["ItemInput"]["required"] == ["sku"]
    for bad in ({"filter": {"status": ["GONE"]}}, {"first": "many"}, {"nothing": 1}, {"filter": {"no": 1}}):
        with pytest.raises(InvalidArguments):
            tools["orders"].prepare(bad)
    answered = call(tools["orders"], {"filter": {"status": ["OPEN"], "placed": None}, "first": 2})
    assert [node["id"] for node in answered["data"]["orders"]["nodes"]] == ["1", "2"]
    codes = {finding.code for tool in loaded.tools for finding in lint(tool.card)}
    assert not codes & {"no_rollback", "no_errors", "required_not_stated", "no_tier"}


def test_the_default_selection_is_bounded_and_never_circular(shop: Shop) -> None:
    schema = build_schema(SDL)
    for depth, most in ((1, 60), (2, 60), (6, 1_000), (6, 3)):
        for tool in tools_of(shop, depth=depth, max_fields=most).values():
            assert isinstance(tool.handler, GraphqlCaller)
            assert not validate(schema, parse(tool.handler.text)), tool.handler.text
    text = {depth: tools_of(shop, depth=depth)["order"].handler.text for depth in (1, 2, 3)}  # type: ignore[attr-defined]
    assert text[1].endswith("order(id: $id) { id status placed note secretMargin } }")
    assert "items { sku count price } customer { id name }" in text[2]
    assert "address { street city }" in text[3]
    assert text[3].count("Order") == text[2].count("Order")  # neither friends of friends nor orders of customers
    assert "history" not in text[3]  # its argument is required
    assert "old" not in text[3]
    selected = tools_of(shop, select={"order": "id customer { name }"})["order"]
    assert call(selected, {"id": "1"}) == {"data": {"order": {"id": "1", "customer": {"name": "Ann"}}}}
    found = call(tools_of(shop)["search"], {"text": "x"})["data"]["search"]
    assert [one["__typename"] for one in found] == ["Order", "Customer"]
    assert found[1]["name"] == "Ann"
    loaded = load(shop, select={"order": "id nothing"})
    assert [problem.place for problem in loaded.problems if "nothing" in problem.message] == ["select.order"]


def test_errors_and_partial_answers_are_told_as_they_are(shop: Shop) -> None:
    tools = tools_of(shop)
    error = failure(tools["cancelOrder"], {"id": "1"})
    assert error.code == "graphql_error"
    assert "It was shipped. (at cancelOrder) [ALREADY_SHIPPED]" in error.message
    assert "may have taken effect" in error.hint
    shop.answer = {
        "data": {"order": {"id": "1", "note": None}},
        "errors": [{"message": "No notes", "path": ["order", "note"]}],
    }
    answered = call(tools["order"], {"id": "1"})
    assert answered["errors"] == [{"message": "No notes", "path": ["order", "note"]}]
    assert "not known to be empty" in answered["note"]
    assert list(answered) == ["errors", "note", "data"]  # a preview cuts what is at the end
    shop.answer = {"data": None, "errors": [{"message": "Bad", "extensions": {"code": "login_required"}}]}
    assert failure(tools["order"], {"id": "1"}).code == "graphql_error"  # a server chooses no code of ours
    shop.answer = ["no answer of GraphQL"]
    assert "no answer of GraphQL" in failure(tools["order"], {"id": "1"}).message
    shop.answer = None
    assert call(tools["order"], {"id": "0"}) == {"data": {"order": None}}


def test_a_query_is_sent_again_and_a_mutation_never(shop: Shop) -> None:
    shop.routes["/graphql"] = (503, {"Retry-After": "0"}, b"")
    tools = tools_of(shop)
    assert failure(tools["version"], {}).code == "max_retries_exceeded"
    assert len(shop.got) == 3
    assert failure(tools["placeOrder"], {"items": []}).code == "unavailable"
    assert len(shop.got) == 4


def test_secrets_go_in_headers_and_into_no_output(shop: Shop) -> None:
    secret = "Bearer token-of-the-operator"
    shop.answer = lambda got: {"data": {"version": got.headers["authorization"]}}
    tool = tools_of(shop, headers={"Authorization": secret})["version"]
    assert "token-of-the-operator" not in str(call(tool, {}))
    assert shop.got[0].headers["authorization"] == secret
    assert "token-of-the-operator" in tool.secrets.values()


def test_the_schema_may_come_from_introspection_of_a_file_or_of_the_endpoint(shop: Shop, tmp_path: Path) -> None:
    result = graphql_sync(build_schema(SDL), get_introspection_query())
    (tmp_path / "schema.json").write_text(json.dumps(result.formatted))
    (tmp_path / "schema.graphql").write_text(SDL)
    names = list(tools_of(shop))
    for given in (str(tmp_path / "schema.json"), str(tmp_path / "schema.graphql"), ""):
        tools = tools_of(shop, schema_file=given, headers={"X-Key": "k-123456"})
        assert list(tools) == names
        assert tools["orders"].card.parameters["first"]["default"] == 10
    assert shop.got[-1].headers["x-key"] == "k-123456"
    shop.answer = {"errors": [{"message": "introspection is disabled"}]}
    with pytest.raises(ToolSourceError, match="introspection is disabled"):
        load(shop, schema_file="")
    for bad in ("{", "{}", "type Query {", str(tmp_path / "none.graphql"), "type Query { a: Nothing }"):
        with pytest.raises(ToolSourceError):
            load(shop, schema_file=bad)


def test_settings_select_and_declare_operations(shop: Shop) -> None:
    loaded = load(
        shop,
        name="s",
        operations=["*Order", "s_legacy", "nothing"],
        tiers={"cancelOrder": "destructive", "s_place*": "write"},
        approval=["placeOrder"],
    )
    cards = {tool.name: tool.card for tool in loaded.tools}
    assert list(cards) == ["s_legacy", "s_placeOrder", "s_cancelOrder"]
    assert cards["s_cancelOrder"].tier == "destructive"
    assert cards["s_placeOrder"].requires_approval
    assert "Use version." in cards["s_legacy"].avoid_when
    assert [problem.message for problem in loaded.problems if problem.place == "operations"] == [
        "No operation matches 'nothing'."
    ]
    with pytest.raises(ConfigError, match="endpoint"):
        GraphqlSource(endpoint="ftp://x")
    with pytest.raises(ConfigError, match="select"):
        GraphqlSource(endpoint="https://x.example", documents=("query A { b }",), select={"A": "b"})


def test_many_operations_are_found_by_search(shop: Shop) -> None:
    fields = "\n".join(f'  "List the {noun}s of a shop."\n  {noun}List(first: Int): [String!]!' for noun in NOUNS)
    tools = load(shop, schema_file=f"type Query {{\n{fields}\n}}", search_above=10).tools
    assert not any(tool.card.listed for tool in tools)
    replies = [
        'Thought: look\nAction: find_tool\nAction Input: {"query": "list invoices"}',
        "Thought: done\nFinal Answer: Found.",
    ]
    result = asyncio.run(Agent(model=ScriptedModel(replies), tools=tools, dialect="text").run("Invoices?"))
    [call_view] = result.trace.calls.values()
    assert call_view.observed is not None
    assert json.loads(call_view.observed.output)["found"][0]["name"] == "invoiceList"


NOUNS = (
    "order",
    "invoice",
    "customer",
    "product",
    "refund",
    "shipment",
    "basket",
    "supplier",
    "review",
    "coupon",
    "tax",
)


def test_a_large_schema_loads_and_each_of_its_operations_is_valid(shop: Shop) -> None:
    """The form of GitHub's: 1,500 types, connections everywhere, 300 mutations with an input object each."""
    assert len(load(shop, schema_file=large_schema(types=400, mutations=300)).tools) == 700
    sdl = large_schema(types=20, mutations=10)
    schema = build_schema(sdl)
    for tool in load(shop, schema_file=sdl).tools:
        assert isinstance(tool.handler, GraphqlCaller)
        assert not validate(schema, parse(tool.handler.text))
        assert len(tool.handler.text) < 6_000
        tool.prepare({"input": {"clientMutationId": "x"}} if tool.card.tier == "write" else {"id": "1"})


def large_schema(types: int, mutations: int) -> str:
    page_info = "type PageInfo { hasNextPage: Boolean!, endCursor: String }"
    parts = ["scalar DateTime", "interface Node { id: ID! }", page_info]
    parts += ["type Query {", *(f"  thing{n}(id: ID!): Thing{n}" for n in range(types)), "}", "type Mutation {"]
    parts += [*(f"  change{n}(input: Change{n}Input!): Change{n}Payload" for n in range(mutations)), "}"]
    for n in range(types):
        texts = " ".join(f"text{i}: String" for i in range(15))
        links = " ".join(f"link{i}: Thing{(n * 7 + i) % types}" for i in range(8))
        own = f"id: ID! at: DateTime {texts} {links} more(first: Int): Thing{n}Connection!"
        parts.append(f"type Thing{n} implements Node {{ {own} }}")
        pages = f"nodes: [Thing{n}] edges: [Thing{n}Edge] pageInfo: PageInfo! totalCount: Int!"
        parts.append(f"type Thing{n}Connection {{ {pages} }}")
        parts.append(f"type Thing{n}Edge {{ cursor: String! node: Thing{n} }}")
    for n in range(mutations):
        parts.append(f"input Change{n}Input {{ clientMutationId: String id: ID text: String }}")
        parts.append(f"type Change{n}Payload {{ clientMutationId: String thing: Thing{n % types} }}")
    return "\n".join(parts)


def test_a_tool_file_names_a_graphql_api_with_paths_beside_it(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "schema.graphql").write_text(SDL)
    (tmp_path / "orders.graphql").write_text(DOCUMENT)
    file = tmp_path / "tools.yaml"
    file.write_text(
        "tools:\n  - graphql:\n"
        f"      endpoint: {shop.url}/graphql\n      schema_file: schema.graphql\n      documents: [orders.graphql]\n"
        "      headers: {Authorization: 'Bearer ${SHOP_TOKEN}'}\n"
    )
    loaded = load_tools(file, env={"SHOP_TOKEN": "s3cret-of-the-shop"})
    assert [tool.name for tool in loaded.tools] == ["FindOrder", "Place", "Both"]
    assert call(loaded.tools[0], {"id": "3"})["data"]["order"]["id"] == "3"
    assert shop.got[-1].headers["authorization"] == "Bearer s3cret-of-the-shop"
    file.write_text(file.read_text().replace("documents", "document"))
    with pytest.raises(AgentFileError, match="documents"):
        load_tools(file, env={"SHOP_TOKEN": "s"})


def test_people_log_in_to_a_graphql_api_of_their_own(shop: Shop, tmp_path: Path) -> None:
    with AuthorizationServer() as server:
        settings = {name: value for name, value in server.settings().items() if name != "grant"}
        tool = tools_of(
            shop,
            login={**settings, "authorization_url": f"{server.url}/authorize"},
            token_file=str(tmp_path / "logins.db"),
        )["version"]
        assert tool.login is not None
        assert failure(tool, {}, user="ann").code == "login_required"
        assert not shop.executed

        async def log_in() -> None:
            assert tool.login is not None
            started = await tool.login.begin("ann", "https://agents.example/oauth/callback")
            back = httpx2.get(started.url).headers["location"]
            await tool.login.finish(dict(parse_qsl(urlsplit(back).query)), started.browser)

        asyncio.run(log_in())
        assert call(tool, {}, user="ann") == {"data": {"version": "7"}}
        assert server.access[shop.got[-1].headers["authorization"].removeprefix("Bearer ")] == "ann"
        shop.answer = {"data": None, "errors": [{"message": "Who?", "extensions": {"code": "UNAUTHENTICATED"}}]}
        assert failure(tool, {}, user="ann").code == "login_required"
        assert failure(tool, {}, user="bob").code == "login_required"
    with pytest.raises(ConfigError, match="authorization_url"):
        load(shop, login={"client_id": "x", "token_url": "https://x.example/token"})


def test_tao_tools_shows_the_operations_of_a_schema(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "schema.graphql").write_text(SDL)
    tao = Shell(tmp_path)
    for given in ("schema.graphql", f"{shop.url}/graphql"):
        shown = tao("tools", "--graphql", given, "--json", code=0)
        assert [card["name"] for card in shown.events] == [
            *("order", "orders", "search", "version", "legacy", "placeOrder", "cancelOrder")
        ]
    assert "one document" in tao("tools", "--graphql", "a", "--openapi", "b").err
