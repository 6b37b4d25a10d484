from __future__ import annotations

from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given, strategies as st

from taoloop.errors import InvalidArguments
from taoloop.tools.openapi.operation import DeepLists, Parameter, ParameterLocation
from taoloop.tools.openapi.value_encoding import (
    cookie_pairs,
    deep_pairs,
    header_text,
    path_text,
    query_pairs,
    text_of,
)

LIST = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200, "B": 150}


def parameter(place: ParameterLocation, style: Any = "simple", explode: bool = False, **more: Any) -> Parameter:
    return Parameter(
        arg="color", name="color", location=place, schema={}, style=style, explode=explode, required=True, **more
    )


# The table "Style Examples" of the OpenAPI Specification 3.1.1, row by row; `None` stands for its "n/a".
PATH_TABLE = [
    ("matrix", False, "blue", ";color=blue"),
    ("matrix", False, LIST, ";color=blue,black,brown"),
    ("matrix", False, OBJECT, ";color=R,100,G,200,B,150"),
    ("matrix", True, "blue", ";color=blue"),
    ("matrix", True, LIST, ";color=blue;color=black;color=brown"),
    ("matrix", True, OBJECT, ";R=100;G=200;B=150"),
    ("label", False, "blue", ".blue"),
    ("label", False, LIST, ".blue,black,brown"),
    ("label", False, OBJECT, ".R,100,G,200,B,150"),
    ("label", True, "blue", ".blue"),
    ("label", True, LIST, ".blue.black.brown"),
    ("label", True, OBJECT, ".R=100.G=200.B=150"),
    ("simple", False, "blue", "blue"),
    ("simple", False, LIST, "blue,black,brown"),
    ("simple", False, OBJECT, "R,100,G,200,B,150"),
    ("simple", True, "blue", "blue"),
    ("simple", True, LIST, "blue,black,brown"),
    ("simple", True, OBJECT, "R=100,G=200,B=150"),
]
QUERY_TABLE = [
    ("form", False, "", "color="),
    ("form", False, "blue", "color=blue"),
    ("form", False, LIST, "color=blue,black,brown"),
    ("form", False, OBJECT, "color=R,100,G,200,B,150"),
    ("form", True, "", "color="),
    ("form", True, "blue", "color=blue"),
    ("form", True, LIST, "color=blue&color=black&color=brown"),
    ("form", True, OBJECT, "R=100&G=200&B=150"),
    ("spaceDelimited", False, LIST, "color=blue%20black%20brown"),
    ("spaceDelimited", False, OBJECT, "color=R%20100%20G%20200%20B%20150"),
    ("pipeDelimited", False, LIST, "color=blue%7Cblack%7Cbrown"),
    ("pipeDelimited", False, OBJECT, "color=R%7C100%7CG%7C200%7CB%7C150"),
    ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
]


@pytest.mark.parametrize(("style", "explode", "value", "sent"), PATH_TABLE)
def test_a_path_is_as_in_the_table_of_the_specification(style: str, explode: bool, value: Any, sent: str) -> None:
    assert path_text(parameter("path", style, explode), value) == sent


@pytest.mark.parametrize(("style", "explode", "value", "sent"), QUERY_TABLE)
def test_a_query_is_as_in_the_table_of_the_specification(style: str, explode: bool, value: Any, sent: str) -> None:
    assert "&".join(query_pairs(parameter("query", style, explode), value)) == sent


@pytest.mark.parametrize(("style", "explode", "value", "sent"), [row for row in PATH_TABLE if row[0] == "simple"])
def test_a_header_is_as_in_the_table_of_the_specification(style: str, explode: bool, value: Any, sent: str) -> None:
    assert header_text(parameter("header", style, explode), value) == sent


@pytest.mark.parametrize(("style", "explode", "value", "sent"), [row for row in QUERY_TABLE if row[0] == "form"])
def test_a_cookie_is_as_in_the_table_of_the_specification(style: str, explode: bool, value: Any, sent: str) -> None:
    assert "&".join(cookie_pairs(parameter("cookie", style, explode), value)) == sent


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (4242, "4242"),
        (900719925474099312345, "900719925474099312345"),
        (36.65, "36.65"),
        (-0.0001, "-0.0001"),
        (0.00001, "0.00001"),
        (1e20, "100000000000000000000"),
        (1e-7, "0.0000001"),
        (Decimal("1.10"), "1.10"),
        (Decimal("0.12345678901234567890"), "0.12345678901234567890"),
        (True, "true"),
        (False, "false"),
        ("00012345", "00012345"),
        (None, "null"),
    ],
)
def test_every_json_scalar_has_a_text_without_an_exponent(value: Any, sent: str) -> None:  # S1-57
    assert text_of(value) == sent


def test_numbers_and_booleans_stand_in_a_path() -> None:  # S1-57
    assert path_text(parameter("path"), 1000000) == "1000000"
    assert path_text(parameter("path"), True) == "true"
    assert path_text(parameter("path"), 2.5) == "2.5"


def test_a_value_is_escaped_once() -> None:
    assert path_text(parameter("path"), "a/b c?d#e%f") == "a%2Fb%20c%3Fd%23e%25f"
    assert query_pairs(parameter("query", "form", True), "北 京&x=1+1") == ["color=%E5%8C%97%20%E4%BA%AC%26x%3D1%2B1"]


@pytest.mark.parametrize(
    "value",
    [
        *("", ".", "..", "../x", "a/../b", "..\\b", "%2e%2e", "%252e%252e%2fx", "x\r\ny", "x\x00", "%0d%0ax", " .. "),
        *([], {}, None, ["a", ".."], {"..": "a"}),
    ],
)
def test_a_value_that_would_change_the_path_is_refused(value: Any) -> None:
    with pytest.raises(InvalidArguments) as caught:
        path_text(parameter("path"), value)
    assert caught.value.code == "invalid_argument"
    assert "'color'" in str(caught.value)


def test_reserved_characters_stay_where_the_document_allows_them_but_those_that_end_a_value() -> None:
    one = parameter("query", "form", True, allow_reserved=True)
    assert query_pairs(one, "http://a.b/c?d=e&f#g h%") == ["color=http://a.b/c?d=e%26f%23g%20h%25"]


def test_content_is_sent_as_json_escaped_once() -> None:
    value = {"a": [1, "b c"], "n": 12345678901234567}
    one = parameter("query", "form", True, content="application/json")
    assert query_pairs(one, value) == ["color=%7B%22a%22%3A%5B1%2C%22b%20c%22%5D%2C%22n%22%3A12345678901234567%7D"]
    assert header_text(parameter("header", content="application/json"), {"ü": 1}) == '{"\\u00fc":1}'
    assert cookie_pairs(parameter("cookie", content="application/json"), [1]) == ["color=%5B1%5D"]
    assert path_text(parameter("path", content="application/json"), {"a": 1}) == "%7B%22a%22%3A1%7D"


ORDER = {"items": [{"price": "p_1", "tags": ["x", "y"]}, {"price": "p_2"}], "live": True, "note": None, "no": []}
DEEP: list[tuple[DeepLists, list[str]]] = [
    # as `_api_encode` of stripe-python 16.1 encodes the same data
    ("indices", ["[items][0][price]=p_1", "[items][0][tags][0]=x", "[items][0][tags][1]=y", "[items][1][price]=p_2"]),
    ("brackets", ["[items][][price]=p_1", "[items][][tags][]=x", "[items][][tags][]=y", "[items][][price]=p_2"]),
    ("repeat", ["[items][0][price]=p_1", "[items][0][tags]=x", "[items][0][tags]=y", "[items][1][price]=p_2"]),
]


@pytest.mark.parametrize(("deep_lists", "sent"), DEEP)
def test_a_deep_object_nests_objects_and_lists(deep_lists: DeepLists, sent: list[str]) -> None:
    pairs = deep_pairs("f", ORDER, deep_lists)
    assert [unquote(pair) for pair in pairs] == [f"f{pair}" for pair in [*sent, "[live]=true"]]
    assert all("[" not in pair for pair in pairs)


def test_a_list_itself_may_be_a_deep_object() -> None:
    one = parameter("query", "deepObject", True)
    assert list(map(unquote, query_pairs(one, ["a", "b"]))) == ["color[0]=a", "color[1]=b"]
    assert list(map(unquote, query_pairs(one, ["a", "b"], "brackets"))) == ["color[]=a", "color[]=b"]
    assert query_pairs(one, ["a", "b"], "repeat") == ["color=a", "color=b"]


@pytest.mark.parametrize(
    ("name", "value", "sent"),
    [
        ("Dropbox-API-Arg", '{"path":"/漢字 😀.txt"}', '{"path":"/\\u6f22\\u5b57 \\ud83d\\ude00.txt"}'),
        (
            "Content-Disposition",
            'attachment; filename="漢 字.txt"',
            "attachment; filename*=UTF-8''%E6%BC%A2%20%E5%AD%97.txt",
        ),
        ("Content-Disposition", 'attachment; filename="a.txt"', 'attachment; filename="a.txt"'),
        ("X-Title", "Grüße", "Grüße"),
    ],
)
def test_a_header_carries_foreign_signs_in_a_form_that_servers_read(name: str, value: str, sent: str) -> None:
    one = Parameter(arg="h", name=name, location="header", schema={}, style="simple")
    assert header_text(one, value) == sent


def test_a_header_that_cannot_carry_a_sign_says_which_and_what_to_write() -> None:
    with pytest.raises(InvalidArguments, match=r"'color' cannot be sent: .*'漢' is none; write %E6%BC%A2 instead"):
        header_text(parameter("header"), "a 漢字")


def test_nothing_is_sent_for_an_empty_list_and_null_is_left_out() -> None:
    assert query_pairs(parameter("query", "form", True), []) == []
    assert query_pairs(parameter("query", "form", False), {}) == []
    assert query_pairs(parameter("query", "form", True), [None, 1]) == ["color=1"]


def test_what_is_nested_deeper_than_a_style_knows_is_json() -> None:
    assert query_pairs(parameter("query", "form", True), [{"a": 1}]) == ["color=%7B%22a%22%3A1%7D"]


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b", "漢字", "a\x7f"])
def test_a_header_takes_no_line_breaks_and_no_foreign_signs(value: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        header_text(parameter("header"), value)
    assert caught.value.code == "invalid_argument"


def test_the_name_of_a_parameter_is_escaped_too() -> None:
    one = Parameter(arg="start", name="Start Time>", location="query", schema={}, style="form", explode=True)
    assert query_pairs(one, "x") == ["Start%20Time%3E=x"]


@given(st.text(min_size=1))
def test_no_text_leaves_its_step_of_the_path(text: str) -> None:
    try:
        sent = path_text(parameter("path"), text)
    except (InvalidArguments, UnicodeEncodeError):
        return
    url = urlsplit(f"http://h/a/{sent}/b")
    assert (url.query, url.fragment, len(url.path.split("/"))) == ("", "", 4)
    assert unquote(sent) == text


_NOT_EMPTY = st.one_of(st.text(), st.integers(), st.booleans(), st.lists(st.text(), min_size=1))


@given(st.text(min_size=1), _NOT_EMPTY)
def test_what_a_query_says_is_what_was_given(name: str, value: Any) -> None:
    one = Parameter(arg="a", name=name, location="query", schema={}, style="form", explode=True)
    try:
        sent = "&".join(query_pairs(one, value))
    except UnicodeEncodeError:
        return
    wanted = value if isinstance(value, list) else [value]
    assert parse_qsl(sent, keep_blank_values=True) == [(name, text_of(item)) for item in wanted]
