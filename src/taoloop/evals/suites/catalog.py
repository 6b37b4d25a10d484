"""The suites that come with taoloop, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from taoloop.config.document import is_config_file
from taoloop.core.search import suggest_names
from taoloop.errors import ConfigError
from taoloop.evals.suite import Suite
from taoloop.evals.suite_file import read_suite
from taoloop.translation import Translator

translate = Translator("evals")

_FOLDER = Path(__file__).parent


def suite_names() -> tuple[str, ...]:
    """The names, the quick one first."""
    names = {path.stem for path in _FOLDER.glob("*.yaml")}
    return tuple(sorted(names, key=lambda name: (name != "smoke", name)))


def shipped_suites(language: str | None = None) -> Iterator[Suite]:
    """The suites, the quick one first, with their descriptions in `language`; by default that of errors."""
    for name in suite_names():
        suite = read_suite(_FOLDER / f"{name}.yaml")
        yield replace(suite, description=translate(suite.description, language))


def load_suite(source: str) -> Suite:
    """The suite that a text names: a YAML file of one's own, or the name of one that comes with taoloop.

    Raises:
        AgentFileError: the file cannot be used; names the file, the line and the field.
        ConfigError: there is no suite of this name.
    """
    if is_config_file(source):
        return read_suite(source)
    names = suite_names()
    if source not in names:
        near = suggest_names(source, names, at_most=1)
        hint = translate("Did you mean {name!r}?", name=near[0]) + " " if near else ""
        listing = translate("Write FILE.yaml, or one of: {names}.", names=", ".join(names))
        raise ConfigError(translate("There is no suite {name!r}.", name=source), hint=hint + listing)
    return read_suite(_FOLDER / f"{source}.yaml")
