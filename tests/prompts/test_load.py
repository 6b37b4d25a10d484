"""Prompt texts from files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from taoloop import Agent
from taoloop.dialects import get_dialect, system_prompt
from taoloop.errors import PromptError, UnknownName
from taoloop.prompts import LANGUAGES, load as module, load_prompts


def test_both_languages_have_the_same_texts_and_placeholders() -> None:
    english, chinese = load_prompts("en").texts, load_prompts("zh").texts
    assert english.keys() == chinese.keys()
    for name in english:
        assert sorted(set(re.findall(r"\$\{?(\w+)", english[name]))) == sorted(
            set(re.findall(r"\$\{?(\w+)", chinese[name]))
        )
        assert english[name]
        assert english[name] == english[name].rstrip("\n")


def test_packaged_sets_are_read_once() -> None:
    assert load_prompts("zh") is load_prompts("zh")


def test_every_text_is_in_the_readme() -> None:
    readme = (Path(module.__file__).parent / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(\w+)\.txt`", readme))
    assert listed == set(load_prompts("en").texts)


def test_an_unknown_language_is_named() -> None:
    with pytest.raises(UnknownName, match=r"'fr'.*en, zh"):
        load_prompts("fr")
    assert LANGUAGES == ("en", "zh")


def test_a_folder_replaces_single_files(tmp_path: Path) -> None:
    """A byte order mark, Windows line ends and the last line break do not belong to the text."""
    (tmp_path / "role.txt").write_bytes("\ufeffYou are terse.\r\nVery.\r\n".encode())
    (tmp_path / "rules_mine.txt").write_text("- Win.\n")
    (tmp_path / "notes.md").write_text("$anything")
    prompts = load_prompts("en", tmp_path)
    assert prompts.texts["role"] == "You are terse.\nVery."
    assert prompts.texts["rules_mine"] == "- Win."
    assert prompts.texts["task"] == load_prompts("en").texts["task"]


def test_a_folder_may_have_one_folder_per_language(tmp_path: Path) -> None:
    (tmp_path / "zh").mkdir()
    (tmp_path / "zh" / "role.txt").write_text("你很简洁。\n", encoding="utf-8")
    assert load_prompts("zh", tmp_path).texts["role"] == "你很简洁。"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("task", b"$task $mood", r"task\.txt: unknown placeholder \$mood"),
        ("task", b"nothing", r"task\.txt: the placeholder \$task is missing"),
        ("observation", b"$content", r"observation\.txt: the placeholder \$nonce is missing"),
        ("role", b"costs $5", r"role\.txt: a dollar sign begins no placeholder.*\$\$"),
        ("role", b"\xff\xfe", r"role\.txt: not a UTF-8 text"),
        ("obsrvation", b"$content", r"obsrvation\.txt: there is no prompt text called 'obsrvation'"),
        ("role", b"x" * 300_000, r"role\.txt is larger than"),
    ],
)
def test_a_bad_file_is_named_with_the_way_out(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    """Bad input: the file, the placeholder and what would be right."""
    (tmp_path / f"{name}.txt").write_bytes(content)
    with pytest.raises(PromptError, match=message) as caught:
        load_prompts("en", tmp_path)
    assert caught.value.hint


def test_unreadable_places_are_named(tmp_path: Path) -> None:
    """Bad input: a folder that is not there, and a folder where a file should be."""
    with pytest.raises(PromptError, match=r"'.*gone'.*cannot be read"):
        load_prompts("en", tmp_path / "gone")
    (tmp_path / "role.txt").mkdir()
    with pytest.raises(PromptError, match=r"role\.txt is no regular file"):
        load_prompts("en", tmp_path)


def test_texts_by_name_replace_single_ones_too() -> None:
    texts = load_prompts(
        "en", {"role": "You are brief.", "system": "$role\n$tools\nLegal: $names\n$form\n$rules"}
    ).texts
    assert texts["role"] == "You are brief."
    assert texts["closing"] == load_prompts("en").texts["closing"]
    spec = Agent(
        model=[], tools=["calculator"], dialect="fenced", language="en", prompts={"system": "$names: $rules$tools$form"}
    ).spec_for("")
    shown = system_prompt(spec.prompts, get_dialect("fenced"), spec.tools, "react", "", tools=True, reasons=True)
    assert shown.startswith('"calculator", "read_observation": ')


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rol": "x"}, "the prompt text 'rol': there is no prompt text called 'rol'"),
        ({"role": "$tool"}, r"the prompt text 'role': unknown placeholder \$tool"),
        ({"task": "x"}, r"the prompt text 'task': the placeholder \$task is missing"),
    ],
)
def test_a_bad_text_is_named_with_the_way_out(given: dict[str, str], message: str) -> None:
    with pytest.raises(PromptError, match=message):
        load_prompts("en", given)
