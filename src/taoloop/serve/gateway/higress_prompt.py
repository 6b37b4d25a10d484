"""The prompt of an `ai-agent` file: its parts in their order, with the four texts that a file may replace."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from string import Template
from typing import Literal

Language = Literal["en", "zh"]

DEFAULTS: dict[Language, dict[str, str]] = {
    "en": {
        "question": "input question to answer",
        "thought1": "consider previous and subsequent steps",
        "observation": "action result",
        "thought2": "I know what to respond",
    },
    "zh": {
        "question": "输入要回答的问题",
        "thought1": "考虑之前和之后的步骤",
        "observation": "行动结果",
        "thought2": "我知道该回应什么",
    },
}
"""What stands behind `Question:`, the first `Thought:`, `Observation:` and the last `Thought:` of the form example."""

_NAMES = ("role", "system", "form_fenced", "form_fenced_answer", "observation")
_FILLED = ("form_fenced", "form_fenced_answer")


def agent_prompts(language: Language, replaced: Mapping[str, str]) -> dict[str, str]:
    """The prompt texts of an agent by name, for `Agent(prompts=…)`. `replaced` are the texts of its own."""
    folder = files("taoloop.serve.gateway").joinpath("texts", language)
    texts = {name: folder.joinpath(f"{name}.txt").read_text(encoding="utf-8") for name in _NAMES}
    own = {name: text.replace("$", "$$") for name, text in {**DEFAULTS[language], **replaced}.items()}
    return {**texts, **{name: Template(texts[name]).safe_substitute(own) for name in _FILLED}}
