"""Read prompt texts: those of the package, and a folder whose files replace single ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from taoloop.core.prompts import PromptSet
from taoloop.errors import PromptError, UnknownName

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = ("en", "zh")
"""The languages that have a packaged set of prompt texts."""

MAX_FILE_BYTES = 256 * 1024

_PLACEHOLDERS = {
    "system": "role rules! tools! names form! instructions",
    "system_plain": "role rules! form! instructions",
    "role": "",
    "instructions": "text",
    "card": "tool! purpose schema! details",
    "card_use_when": "text",
    "card_avoid_when": "text",
    "card_errors": "text",
    "card_examples": "text",
    "no_tools": "",
    "task": "task!",
    "observation": "tool call status nonce! content! note",
    "observation_cut": "size artifact",
    "output": "schema!",
    "correction": "problem! form!",
    "closing": "reason form!",
    "resumed": "",
    "compact": "words",
    "pin": "tools!",
    "summary": "through nonce! content!",
    "notice": "by text!",
    "repeated": "tool count",
    "plan_step": "number goal! task! plan calls expect results!",
    "evidence": "",
    "evidence_output": "",
    "handles": "",
    "handles_observation": "tool call status nonce content! note",
    "handles_summary": "through nonce content!",
    "handles_read": "",
    "handles_question": "question! answer! nonce! content!",
    "reflect_critique": "most",
    "reflect_draft": "task! instructions observations! nonce! draft!",
    "reflect_revision": "nonce! findings!",
    "reflect_lesson": "",
    "reflect_attempt": "task! reason! nonce! steps!",
    "reflect_lessons": "nonce! lesson!",
}
"""What is filled into each text; a `!` marks what must be there."""

_FAMILIES = {
    **dict.fromkeys(("rules_", "thought_", "answer_", "reminder_"), ""),
    "form_": "thought thought_example answer_example",
}
"""The same for the texts of strategies and dialects, by what their names begin with."""


def load_prompts(language: str, own: Path | Mapping[str, str] | None = None) -> PromptSet:
    """The prompt texts of a language; `own` ones, texts by name or a folder of files, replace the packaged ones.

    A folder holds the files themselves, or one sub-folder per language. Beside the packaged names it may have
    `rules_NAME.txt`, `form_NAME.txt`, `form_NAME_answer.txt`, `thought_NAME.txt` and `reminder_NAME.txt` for
    strategies and dialects of your own. A line break at the end of a file does not belong to the text.

    Raises:
        UnknownName: there is no packaged set for the language.
        PromptError: a file is missing, cannot be read, has an unknown name or placeholder, or lacks a
            placeholder that must be there.
    """
    packaged = _load_packaged(language)
    if own is None:
        return packaged
    if isinstance(own, Mapping):
        texts = {name: _check_text(name, text.encode(), f"the prompt text {name!r}") for name, text in own.items()}
    else:
        texts = _read_folder(own, language)
    return PromptSet(language=language, texts={**packaged.texts, **texts})


def prompts_for(
    language: str,
    own: Path | Mapping[str, str] | None,
    dialect: str,
    *rules: str,
    output: bool,
    pin: bool = False,
    handles: bool = False,
    evidence: bool = False,
) -> PromptSet:
    """`load_prompts`, narrowed to what a run with these `rules` can use; the packaged ones are narrowed once."""
    if own is None:
        return _narrow_packaged(language, dialect, rules, output, pin, handles, evidence)
    prompts = load_prompts(language, own)
    return prompts.narrowed(dialect, *rules, output=output, pin=pin, handles=handles, evidence=evidence)


@cache
def _narrow_packaged(  # keys of the cache
    language: str, dialect: str, rules: tuple[str, ...], output: bool, pin: bool, handles: bool, evidence: bool
) -> PromptSet:
    prompts = _load_packaged(language)
    return prompts.narrowed(dialect, *rules, output=output, pin=pin, handles=handles, evidence=evidence)


@cache
def _load_packaged(language: str) -> PromptSet:
    if language not in LANGUAGES:
        raise UnknownName("prompt language", language, LANGUAGES)
    texts: dict[str, str] = {}
    for entry in files("taoloop.prompts").joinpath(language).iterdir():
        if entry.name.endswith(".txt"):
            name = entry.name.removesuffix(".txt")
            texts[name] = _check_text(name, entry.read_bytes(), entry.name)
    for name in _PLACEHOLDERS:
        if name not in texts:
            raise PromptError(
                f"The packaged prompt text {language}/{name}.txt is missing.", hint="Install taoloop again."
            )
    return PromptSet(language=language, texts=texts)


def _read_folder(folder: Path, language: str) -> dict[str, str]:
    try:
        root = folder / language if (folder / language).is_dir() else folder
        files = sorted(path for path in root.iterdir() if path.suffix == ".txt")
    except OSError as error:
        raise PromptError(
            f"The prompt folder {str(folder)!r} cannot be read: {error.strerror or error}.",
            hint="Give a folder with .txt files; copy the packaged ones to begin with.",
        ) from error
    return {path.stem: _check_text(path.stem, _read_bytes(path), str(path)) for path in files}


def _read_bytes(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise PromptError(f"{path} is no regular file.", hint="A prompt text is a UTF-8 text file.")
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise PromptError(
            f"The prompt file {path} cannot be read: {error.strerror or error}.", hint="Check its permissions."
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise PromptError(f"The prompt file {path} is larger than {MAX_FILE_BYTES} bytes.", hint="Shorten it.")
    return content


def _check_text(name: str, content: bytes, where: str) -> str:
    """The text of a file, once its name and its placeholders are known to be right."""
    placeholders = _placeholders_of(name)
    if placeholders is None:
        known = ", ".join([*_PLACEHOLDERS, *(f"{family}NAME" for family in _FAMILIES)])
        raise PromptError(f"{where}: there is no prompt text called {name!r}.", hint=f"Known: {known}.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PromptError(f"{where}: not a UTF-8 text (byte {error.start}).", hint="Save the file as UTF-8.") from error
    template = Template(text)
    listed = ", ".join("$" + placeholder for placeholder in placeholders) or "none"
    if not template.is_valid():
        raise PromptError(
            f"{where}: a dollar sign begins no placeholder.", hint=f"Write $$ for it. Placeholders: {listed}."
        )
    used = template.get_identifiers()
    for placeholder in used:
        if placeholder not in placeholders:
            raise PromptError(
                f"{where}: unknown placeholder ${placeholder}.",
                hint=f"Placeholders of this text: {listed}; a dollar sign itself is written $$.",
            )
    for placeholder, is_required in placeholders.items():
        if is_required and placeholder not in used:
            raise PromptError(
                f"{where}: the placeholder ${placeholder} is missing.", hint=f"It must have ${placeholder}."
            )
    return text.replace("\r\n", "\n").rstrip("\n")


def _placeholders_of(name: str) -> dict[str, bool] | None:
    """The placeholders of a text, and whether each must be there; None for a text that there is not."""
    family = next((family for family in _FAMILIES if name.startswith(family)), "")
    listed = _PLACEHOLDERS.get(name, _FAMILIES.get(family))
    return None if listed is None else {word.rstrip("!"): word.endswith("!") for word in listed.split()}
