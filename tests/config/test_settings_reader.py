"""The reader of settings: what an annotation allows, the place of every error, and what the modes differ in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Required, TypedDict

import pytest

from taoloop.config.document import ConfigDocument, read_document
from taoloop.config.settings_reader import (
    LITERAL,
    SECRET,
    Mode,
    SettingsReader,
    Span,
    checked,
    expected,
    json_schema,
    required_fields,
)
from taoloop.errors import AgentFileError, ConfigError


def no_blank(value: str, _reader: SettingsReader) -> str:
    if " " in value:
        raise expected("a word")
    return value


@dataclass(frozen=True, kw_only=True)
class Part:
    word: Annotated[str, checked(no_blank)]
    port: Annotated[int, Span(1, 99)] = 7

    def __post_init__(self) -> None:
        if self.port == 13:
            raise ConfigError("port is 13, which brings bad luck.", hint="Take 12.")


@dataclass(frozen=True, kw_only=True)
class Whole:
    name: str = ""
    share: float = 1.0
    active: bool = False
    kind: Literal["small", "large"] = "small"
    folder: Path | None = None
    key_value: Annotated[str, SECRET] = field(default="", repr=False)
    template: Annotated[str, LITERAL] = ""
    parts: tuple[Part, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    either: str | tuple[str, ...] = ""


class Open(TypedDict, total=False):
    name: Required[str]
    rest: Any


def document(folder: Path, text: str) -> ConfigDocument:
    path = folder / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return read_document(path)


def read(folder: Path, text: str, kind: type[Any] = Whole, mode: Mode = "filled", **env: str) -> Any:
    found = document(folder, text)
    return SettingsReader(found, env).read(kind, (), found.data, mode=mode)


def test_values_come_in_the_types_of_the_fields(tmp_path: Path) -> None:
    whole = read(
        tmp_path,
        "share: 1\nfolder: sub\nparts: [{word: a}, {word: b, port: '${P}'}]\nheaders: {1: x}\ntemplate: ${T}\n",
        P="8",
    )
    assert whole == Whole(
        share=1.0,
        folder=tmp_path / "sub",
        parts=(Part(word="a"), Part(word="b", port=8)),
        headers={"1": "x"},
        template="${T}",
    )


@pytest.mark.parametrize(
    ("text", "line", "place", "message"),
    [
        ("name: a\nnme: b", 2, "nme", "there is no such field. Did you mean 'name'?"),
        ("name: 5", 1, "name", "a text is expected, not 5. Put it in quotes."),
        ("share: x", 1, "share", "a number is expected, not 'x'."),
        ("share: .inf", 1, "share", "a number is expected"),
        ("5: x", 1, "5", "there is no such field."),
        ("active: 1", 1, "active", "true or false is expected, not 1."),
        ("kind: huge", 1, "kind", "one of small, large is expected, not 'huge'."),
        ("folder: ' '", 1, "folder", "a path is expected, not ' '."),
        ("parts:\n- word: a\n- wrd: b", 3, "parts[1].wrd", "Did you mean 'word'?"),
        ("parts:\n- word: a\n- port: 5", 3, "parts[1]", "the field `word` is missing. Add `word: …`."),
        ("parts:\n- word: a\n- x", 3, "parts[1]", "a mapping is expected, not 'x'. Write its fields: `{word: …}`."),
        ("parts:\n- word: a\n  port: 100", 3, "parts[0].port", "a whole number from 1 to 99 is expected, not 100."),
        ("parts:\n- word: a\n  port: 13", 3, "parts[0].port", "port is 13, which brings bad luck. Take 12."),
        ("parts:\n- word: a b", 2, "parts[0].word", "a word is expected, not 'a b'."),
        ("parts: x", 1, "parts", "a list is expected, not 'x'. Put it in brackets."),
        ("headers:\n  a: b\n  c: []", 3, "headers.c", "a text is expected, not []."),
        ("either: 5", 1, "either", "a text or a list is expected, not 5."),
        ("either:\n- a\n- 5", 3, "either[1]", "a text is expected, not 5."),
        ("name: ${MISSING}", 1, "name", "the environment variable MISSING is not set."),
        ("share: x\nname: 5", 1, "share", "a number is expected"),
    ],
)
def test_an_error_has_the_line_and_the_field(text: str, line: int, place: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(AgentFileError) as caught:
        read(tmp_path, text)
    error = caught.value
    assert (error.line, error.field) == (line, place)
    assert message in str(error)


def test_a_value_of_the_environment_is_never_shown(tmp_path: Path) -> None:
    with pytest.raises(AgentFileError, match=r"a number is expected, not '\$\{SECRET\}'") as caught:
        read(tmp_path, "share: ${SECRET}", SECRET="s3cr3t-value")
    assert "s3cr3t" not in repr(caught.value)


def test_written_references_stay_and_numbers_keep_their_form(tmp_path: Path) -> None:
    whole = read(tmp_path, "name: ${X}\nshare: 2", mode="written")
    assert (whole.name, whole.share, type(whole.share)) == ("${X}", 2, int)


def test_leniently_null_empty_and_zero_count_as_absent_and_unknown_fields_are_warned_of(tmp_path: Path) -> None:
    text = "name: ' '\nkeyValue: ${KEY}\ntemplate: null\nparts:\n- {word: a, port: 0, extra: 1}\nmore: 2\n5: x\n"
    found = document(tmp_path, text)
    reader = SettingsReader(found, {"KEY": "s3cr3t-value"})
    assert reader.read(Whole, (), found.data, mode="lenient") == Whole(
        key_value="s3cr3t-value", parts=(Part(word="a"),)
    )
    assert sorted(reader.warnings) == [
        "settings.yaml:5: parts[0].extra: nothing reads this field.",
        "settings.yaml:6: more: nothing reads this field.",
        "settings.yaml:7: 5: nothing reads this field.",
    ]
    assert reader.secrets == {"KEY": "s3cr3t-value"}
    assert "extra" in found.data["parts"][0]
    with pytest.raises(AgentFileError, match=r"parts\[0\]\.word: it is missing, or empty\."):
        read(tmp_path, "parts: [{port: 5}]", mode="lenient")


def test_a_typed_dict_gives_only_what_is_in_the_file(tmp_path: Path) -> None:
    assert required_fields(Open) == ("name",)
    assert read(tmp_path, "name: a\nrest: [1, {b: '${X}'}]", Open) == {"name": "a", "rest": [1, {"b": "${X}"}]}
    with pytest.raises(AgentFileError, match="the field `name` is missing"):
        read(tmp_path, "rest: 1", Open)


def test_the_schema_says_what_the_reader_takes() -> None:
    schema = json_schema(Part)
    reference = {"type": "string", "pattern": r"\$\{"}
    assert schema["properties"]["port"]["anyOf"] == [{"type": "integer", "minimum": 1}, reference]
    assert (schema["required"], schema["additionalProperties"]) == (["word"], False)
    assert json_schema(Part, "written")["properties"]["word"]["type"] == "string"
