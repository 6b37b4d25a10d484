"""How a parser gives up: an error with the problem in it, whose message is written in the language of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from taoloop.core.decision import Problem, excerpt
from taoloop.dialects.texts import TEXTS


@dataclass(frozen=True, slots=True)
class LocalizedText:
    """A text of the catalogue with its values, written out once the language is known."""

    name: str
    """The name of the text in `taoloop.dialects.texts`."""
    values: Mapping[str, object] = field(default_factory=dict)
    """What is filled in; a value may be such a text itself."""

    def render(self, language: str) -> str:
        """The text in a language; in English where the language is not known."""
        values = {
            name: value.render(language) if isinstance(value, LocalizedText) else value
            for name, value in self.values.items()
        }
        return TEXTS.text(language, self.name, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyProblem(Problem):
    """A problem that a parser of this package found; its `message` is the English one."""

    text: LocalizedText = field(compare=False, repr=False)
    """What `message` was rendered from."""


def problem_message(problem: Problem, language: str) -> str:
    """The message of a problem in the language of the run, where it has one; else as it is."""
    if language != "en" and isinstance(problem, ReplyProblem):
        return problem.text.render(language)
    return problem.message


class ReplyParseError(Exception):
    """A reply cannot be read as one decision. Internal to the parsers: `Dialect.read` returns the `problem`.

    Args:
        code: The stable code of the problem, one of those that `Problem` lists.
        name: The name of the message in the catalogue.
        part: The unusable part of the reply, which the problem quotes.
        values: What is filled into the message.
    """

    def __init__(self, code: str, name: str, part: str = "", /, **values: object) -> None:
        self.code, self.part = code, part
        self.text = LocalizedText(name, values)
        super().__init__(code, name)

    def __str__(self) -> str:
        return self.text.render("en")

    @property
    def problem(self) -> ReplyProblem:
        """The error as what `Dialect.read` returns."""
        return ReplyProblem(code=self.code, message=self.text.render("en"), excerpt=excerpt(self.part), text=self.text)
