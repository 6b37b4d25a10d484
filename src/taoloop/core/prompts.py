"""Prompt texts as data. Their files are read elsewhere; the core only fills them in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from string import Template

from taoloop.errors import PromptError


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSet:
    """The prompt texts of one language."""

    language: str
    """The language, such as `en`."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The texts by name, with `$name` placeholders as in `string.Template`."""

    def narrowed(
        self,
        dialect: str,
        *rules: str,
        output: bool = False,
        pin: bool = False,
        handles: bool = False,
        evidence: bool = False,
    ) -> PromptSet:
        """Only the texts that a run with this dialect can use, so that its trace contains no others.

        `rules`: whose rules its prompts have, such as `react`. `output`: the run has an output schema, and so a text
        for it. `pin`: its model is asked what the task asks for. `handles`: its model reads no observations.
        `evidence`: its answers are to cite observations.
        """
        names = {f"form_{dialect}", f"form_{dialect}_answer", f"thought_{dialect}"}
        names |= {f"rules_{name}" for name in rules}
        names |= {f"reminder_{dialect}", f"thought_{dialect}_example"}
        names |= {f"answer_{dialect}_output_example" if output else f"answer_{dialect}_example"}
        names |= {"evidence_output" if output else "evidence"} if evidence else set()
        families: tuple[str, ...] = ("rules_", "form_", "thought_", "reminder_", "answer_", "evidence")
        families += () if "reflect" in rules else ("reflect_",)
        families += (() if output else ("output",)) + (() if pin else ("pin",)) + (() if handles else ("handles",))
        families += () if "plan_execute" in rules else ("plan_",)
        texts = {name: text for name, text in self.texts.items() if name in names or not name.startswith(families)}
        return PromptSet(language=self.language, texts=texts)

    def fill(self, name: str, /, **values: object) -> str:
        """The text called `name` with its placeholders filled.

        Raises:
            PromptError: there is no such text, or it has a placeholder that nothing fills.
        """
        text = self.texts.get(name)
        if text is None:
            raise PromptError(f"The prompt set {self.language!r} has no text called {name!r}.")
        if "$" not in text:
            return text
        try:
            pattern, get_values = _compile_template(text)
            return pattern % get_values(values)
        except (KeyError, ValueError) as error:
            raise PromptError(
                f"The prompt text {name!r} ({self.language}) cannot be filled: {error}.",
                hint=f"Placeholders that it may use: {', '.join('$' + key for key in values) or 'none'}; "
                "a dollar sign itself is written $$.",
            ) from error


@lru_cache(maxsize=256)
def _compile_template(text: str) -> tuple[str, Callable[[Mapping[str, object]], tuple[object, ...]]]:
    """A text as a `%` pattern, which is quick to fill, and a function that takes its values in order.

    Raises:
        ValueError: a dollar sign in it begins no placeholder.
    """
    Template(text).substitute(defaultdict(str))  # says what is wrong with it, and where
    fields = [match["named"] or match["braced"] for match in Template.pattern.finditer(text) if not match["escaped"]]
    pattern = Template.pattern.sub(lambda match: "$" if match["escaped"] else "%s", text.replace("%", "%%"))
    if len(fields) > 1:
        return pattern, itemgetter(*fields)  # which returns a tuple only for several fields
    return pattern, lambda values: tuple(values[name] for name in fields)
