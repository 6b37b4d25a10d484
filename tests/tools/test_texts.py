"""The texts that tools report in a run: the same in English and Chinese, and in the language of the run."""

from __future__ import annotations

import asyncio
import re
import socket
import string
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import pytest
from pydantic import Field
from pydantic_core.core_schema import ErrorType
from tests.chinese import chinese_of, english_in

from taoloop.core.text import TextCatalog, chinese_texts
from taoloop.errors import InvalidArguments, ToolError
from taoloop.tools.builtin.calculator import calculator
from taoloop.tools.builtin.catalog import builtin_tools
from taoloop.tools.builtin.lookup import lookup_tool
from taoloop.tools.builtin.observations import ask_about
from taoloop.tools.documents import DocumentFolder, locate
from taoloop.tools.documents.pages import paper_tools
from taoloop.tools.egress import EgressClient, EgressRules
from taoloop.tools.egress.texts import TEXTS as EGRESS_TEXTS
from taoloop.tools.function import tool
from taoloop.tools.graphql.texts import TEXTS as GRAPHQL_TEXTS
from taoloop.tools.json_schema import compile_schema, findings
from taoloop.tools.mcp.texts import TEXTS as MCP_TEXTS
from taoloop.tools.oauth.texts import TEXTS as OAUTH_TEXTS
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.texts import TEXTS as OPENAPI_TEXTS
from taoloop.tools.skills.texts import TEXTS as SKILL_TEXTS
from taoloop.tools.sql.texts import TEXTS as SQL_TEXTS
from taoloop.tools.texts import TEXTS as TOOL_TEXTS
from taoloop.tools.web_search import web_search_tools
from taoloop.tools.web_search.texts import TEXTS as SEARCH_TEXTS

CATALOGUES = {
    "egress": EGRESS_TEXTS,
    "openapi": OPENAPI_TEXTS,
    "graphql": GRAPHQL_TEXTS,
    "oauth": OAUTH_TEXTS,
    "skills": SKILL_TEXTS,
}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("catalogue", CATALOGUES.values(), ids=CATALOGUES)
def test_both_languages_have_the_same_values_filled_in(catalogue: TextCatalog) -> None:
    for name, text in catalogue.english.items():
        chinese = chinese_of(catalogue)[name]
        assert placeholders(chinese) == placeholders(text), name
        prose = re.sub(r"`[^`]*`|https?://\S+", "", "".join(part for part, *_ in string.Formatter().parse(chinese)))
        assert not prose.isascii(), name
        assert not set(prose) & set(",;:!?()"), name


@pytest.mark.usefixtures("chinese_run")
def test_a_refused_request_is_reported_in_chinese() -> None:
    with pytest.raises(ToolError) as error:
        asyncio.run(EgressClient().send("GET", "http://169.254.169.254/"))
    assert error.value.message == (
        "不允许向 169.254.169.254:80 发送请求：它是 169.254.169.254，这是云平台的元数据服务。"
    )
    assert error.value.hint == "请使用其他地址。"


@pytest.mark.usefixtures("chinese_run")
def test_a_connection_that_the_system_refuses_is_reported_in_chinese() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound, and nobody listens
        port = free.getsockname()[1]
        rules = EgressRules(allow=(f"127.0.0.1:{port}",))
        with pytest.raises(ToolError) as error:
            asyncio.run(EgressClient(rules).send("GET", f"http://127.0.0.1:{port}/"))
    assert error.value.message == f"无法连接 127.0.0.1:{port}：连接被拒绝。"


@pytest.mark.usefixtures("chinese_run")
@pytest.mark.parametrize(("expression", "reason"), [("1/", "无法解析"), ("(1", "括号不匹配")])
def test_what_is_no_expression_is_reported_in_chinese(expression: str, reason: str) -> None:
    with pytest.raises(ToolError) as error:
        calculator(expression)
    assert error.value.message == f"{expression!r} 不是算术表达式：{reason}。"


@pytest.mark.usefixtures("chinese_run")
def test_arguments_that_do_not_fit_are_reported_in_chinese() -> None:
    document = '{"openapi": "3.1.0", "paths": {"/a/{id}": {"get": {"operationId": "a"}}}}'
    (tool,) = openapi_tools(OpenapiSource(document=document, base_url="https://api.example")).tools
    with pytest.raises(ToolError) as error:
        tool.check(b"{}")
    assert error.value.message == "'a' 的参数不符合要求：缺少 'id'。"
    assert error.value.hint.startswith("应为：")


@pytest.mark.usefixtures("chinese_run")
def test_an_unknown_citation_is_reported_in_chinese(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as error:
        locate(DocumentFolder(path=tmp_path, index=tmp_path / "index.db"), "[doc:000000000000]")
    assert error.value.message == "没有 ID 为 '[doc:000000000000]' 的段落。"


@pytest.mark.parametrize("catalogue", [TOOL_TEXTS, SQL_TEXTS, MCP_TEXTS], ids=["tools", "sql", "mcp"])
def test_a_chinese_text_takes_no_value_that_the_english_one_does_not(catalogue: TextCatalog) -> None:
    english, chinese = catalogue.english, chinese_of(catalogue)
    own = {name: placeholders(text) - placeholders(english[name]) for name, text in chinese.items()}
    assert {name: values for name, values in own.items() if values} in ({}, {"bad_pointer": {"pointer"}})
    assert {name for name, text in chinese.items() if english_in(text)} == set()


def test_every_chinese_text_is_that_of_an_english_one(tmp_path: Path) -> None:
    used: set[str] = set()
    waiting: list[Any] = [
        catalogue.english
        for catalogue in (TOOL_TEXTS, SQL_TEXTS, *CATALOGUES.values(), MCP_TEXTS, SEARCH_TEXTS, SKILL_TEXTS)
    ]
    search = web_search_tools(env={"BRAVE_API_KEY": "key"}).tools
    (tmp_path / "Front Row.txt").write_text("A media center.")
    tools = (*builtin_tools().values(), ask_about, lookup_tool({}), *search, *paper_tools(tmp_path))
    waiting += [asdict(tool.card) for tool in tools]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            used.add(value)
        elif isinstance(value, dict | list | tuple):
            waiting += value.values() if isinstance(value, dict) else value
    libraries = {text for text in chinese_texts("tools") if text.startswith(("pydantic: ", "schema: "))}
    assert chinese_texts("tools").keys() - used == libraries


def test_every_chinese_text_for_pydantic_is_that_of_one_of_its_errors() -> None:
    kinds = {kind for error_type in get_args(ErrorType) for kind in accumulate(error_type.split("_"), "{}_{}".format)}
    names = {text.removeprefix("pydantic: ") for text in chinese_texts("tools") if text.startswith("pydantic: ")}
    assert names - kinds == {""}


@tool(tier="read", purpose="Book.")
def book(
    name: Annotated[str, Field(min_length=2)],
    seats: Annotated[int, Field(ge=1, le=8)],
    kind: Literal["window", "aisle"] = "aisle",
    *,
    days: Annotated[list[str], Field(max_length=1)] | None = None,
) -> str:
    return f"{name} {seats} {kind} {days}"


@pytest.mark.usefixtures("chinese_run")
@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"name": "张三"}, "缺少 'seats'"),
        ({"name": "张三", "seats": 2, "row": 3}, "未知的参数 'row'"),
        ({"name": "张", "seats": 2}, "'name'：至少要有 2 个字符"),
        ({"name": "张三", "seats": 9}, "'seats'：不能大于 8"),
        ({"name": "张三", "seats": 0}, "'seats'：不能小于 1"),
        ({"name": "张三", "seats": "many"}, "'seats'：应为整数"),
        ({"name": "张三", "seats": 2, "kind": "door"}, "'kind'：应为其中之一：'window'、'aisle'"),
        ({"name": "张三", "seats": 2, "days": ["a", "b"]}, "'days'：最多 1 项"),
    ],
)
def test_arguments_of_a_function_that_do_not_fit_are_reported_in_chinese(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidArguments) as error:
        book.prepare(args)
    assert error.value.message == f"'book' 的参数不符合要求：{problem}。"
    assert error.value.hint == (
        '应为：{"name": string, "seats": integer, "kind": string（可选）, "days": array（可选）}'
    )


@pytest.mark.usefixtures("chinese_run")
@pytest.mark.parametrize(
    ("rule", "value", "problem"),
    [
        ({"type": "integer"}, "x", "应为 integer 类型"),
        ({"enum": ["a", "b"]}, "c", "应为其中之一：a、b"),
        ({"type": "string", "maxLength": 1}, "ab", "最多 1 个字符"),
        ({"type": "array", "minItems": 2}, [], "至少要有 2 项"),
        ({"type": "string", "format": "date"}, "x", "不是有效的 date"),
        ({"not": {"type": "string"}}, "x", "不符合 Schema 的 not 要求"),
    ],
)
def test_values_that_a_schema_refuses_are_reported_in_chinese(rule: dict[str, Any], value: Any, problem: str) -> None:
    schema = {"type": "object", "properties": {"a": rule}}
    assert findings(compile_schema(schema, "the schema"), {"a": value}) == [f"'a'：{problem}"]
