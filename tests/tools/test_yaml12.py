"""YAML by the core rules of version 1.2, as values of JSON, whatever is in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from taoloop.tools.yaml12 import DuplicateKeyError, YamlError, YamlSizeError, parse_yaml, parse_yaml_document

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("2024-10-01", "2024-10-01"),
        ("012", "012"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("1e999", "1e999"),
        (".5", 0.5),
        ("-7", -7),
        ("12345678901234567890123", 12345678901234567890123),
        ("~", None),
        ("", None),
        ("True", True),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("!Something x", "x"),
        (".nan", ".nan"),
    ],
)
def test_a_plain_value_means_what_version_1_2_says(text: str, value: Any) -> None:
    read = parse_yaml(f"key: {text}\n")["key"]
    assert (read, type(read)) == (value, type(value))


def test_every_key_is_a_text() -> None:
    assert parse_yaml("200: a\non: b\ntrue: c\n1.0: d\n~: e\n") == {
        "200": "a",
        "on": "b",
        "true": "c",
        "1.0": "d",
        "null": "e",
    }


def test_anchors_and_merges_are_followed() -> None:
    text = "base: &b {a: 1, b: 2}\nmore: &m {b: 3, c: 4}\none: *b\ntwo: {<<: *b, b: 9}\nthree: {<<: [*m, *b]}\n"
    read = parse_yaml(text)
    assert read["one"] == {"a": 1, "b": 2}
    assert read["two"] == {"a": 1, "b": 9}
    assert read["three"] == {"a": 1, "b": 3, "c": 4}


def test_a_bomb_of_aliases_is_refused_before_it_grows() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 10)}]" for n in range(9)]
    with pytest.raises(YamlError, match="counting those that its aliases repeat") as caught:
        parse_yaml("\n".join(lines))
    assert caught.value.line == 7


@pytest.mark.parametrize("sign", ["[", "{a: ", "- "])
def test_depth_is_bounded(sign: str) -> None:
    with pytest.raises(YamlError, match="levels deep"):
        parse_yaml(f"a: {sign * 2_000}" if sign != "- " else sign * 2_000 + "x")


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a: 1\nb: [1, 2", 2, "did not find expected"),
        ("a: b: c", 1, "not allowed"),
        ("a: &x [*x]", 1, r"\*x refers to nothing"),
        ("a: *nobody", 1, r"\*nobody refers to nothing"),
        ("a: 1\n\tb: 2", 2, "tab"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_line(text: str, line: int, what: str) -> None:
    with pytest.raises(YamlError, match=what) as caught:
        parse_yaml(text)
    assert caught.value.line in (line, line + 1)


def test_only_the_first_document_counts() -> None:
    assert parse_yaml("---\na: 1\n---\nb: 2\n") == {"a": 1}


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a: 1\nb:\n  c: 2\n  d: [1,\n   2]\n", ("b", "d", 1), 5),
        ("a: 1\nb:\n  c: 2\n", ("b", "c"), 3),
        ("- a\n-\n  b: c\n", (1, "b"), 3),
        ("a: &x\n  b: 1\nc: *x\n", ("c", "b"), 2),
        ("# nothing yet\na: 1\n", (), 2),
        ("", (), 1),
    ],
)
def test_a_document_knows_the_line_of_every_part(text: str, path: tuple[str | int, ...], line: int) -> None:
    assert parse_yaml_document(text).lines[path] == line


@pytest.mark.parametrize(
    ("text", "path", "line", "first_line"),
    [
        ("a: 1\nb: 2\na: 3\n", ("a",), 3, 1),
        ("a:\n- b\n- c: 1\n  d: 1\n  c: 2\n", ("a", 1, "c"), 5, 3),
        ("1: a\n'1': b\n", ("1",), 2, 1),
    ],
)
def test_a_document_has_no_key_twice(text: str, path: tuple[str | int, ...], line: int, first_line: int) -> None:
    with pytest.raises(DuplicateKeyError) as caught:
        parse_yaml_document(text)
    assert (caught.value.path, caught.value.line, caught.value.first_line) == (path, line, first_line)
    parse_yaml(text)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\n---\nb: 1\n", 2, "second document"),
        ("a: 1\nb: !Something x\n", 2, "the tag !Something is not supported"),
        ("a: !!set {x}\n", 1, "the tag !!set is not supported"),
        ("a: !!int x\n", 1, "does not fit its tag !!int"),
        ("a: 1\n? [b]\n: 1\n", 2, "cannot be a key"),
        ("a:\n  <<: 5\n", 2, "takes a mapping"),
    ],
)
def test_a_document_is_strict_where_a_document_of_others_is_not(text: str, line: int, problem: str) -> None:
    with pytest.raises(YamlError, match=problem) as caught:
        parse_yaml_document(text)
    assert caught.value.line == line
    parse_yaml(text)


@pytest.mark.parametrize("text", ["[" * 61, "a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*a" + "]" * 40])
def test_the_depth_of_a_document_counts_what_its_aliases_repeat(text: str) -> None:
    with pytest.raises(YamlSizeError, match="levels deep"):
        parse_yaml_document(text)


@given(JSON)
def test_a_document_has_the_values_of_any_other_and_a_line_for_each(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=True)
    if "\\u" in text:
        return
    document = parse_yaml_document(text)
    assert document.value == json.loads(text)
    assert set(document.lines.values()) == {1}


@given(JSON)
def test_json_is_read_as_it_is(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=True)
    if "\\ud" in text or "\\u" in text:  # C1 signs and halves of pairs are no YAML
        return
    assert parse_yaml(text) == json.loads(text)
