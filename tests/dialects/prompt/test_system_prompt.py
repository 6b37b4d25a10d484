"""The fixed parts of the prompt."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard
from taoloop.dialects import (
    describe,
    get_dialect,
    output_format_prompt,
    register_dialect,
    system_prompt,
    task_prompt,
    tool_block,
)
from taoloop.dialects.json_dialect import JsonDialect
from taoloop.errors import PromptError, UnknownName
from taoloop.prompts import load_prompts

PROMPTS = {"en": load_prompts("en"), "zh": load_prompts("zh")}
SCHEMA = MappingProxyType({"type": "object", "properties": {"城市": {"type": "string"}}, "required": ["城市"]})
CARD = ToolCard(
    name="weather",
    purpose="Reads today's weather.",
    use_when="the task asks for $weather",
    avoid_when="it asks for a forecast",
    input_schema=SCHEMA,
    errors=(ErrorCard(code="no_city", advice="name a city"), ErrorCard(code="busy", retryable=True)),
    examples=(ExampleCard(args={"城市": "北京"}, output={"t": 3}, note="winter"),),
)


def built(language: str, dialect: str, *cards: ToolCard, instructions: str = "") -> str:
    return system_prompt(
        PROMPTS[language], get_dialect(dialect), cards, "react", instructions, tools=True, reasons=True
    )


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("dialect", ["text", "json", "native"])
def test_s2_13_and_s3_7_rules_tools_and_form_are_separate_parts(language: str, dialect: str) -> None:
    """S2-13, S3-7, S3-68: the headings are the same whatever stands below them."""
    heads = [line for line in built(language, dialect, CARD).splitlines() if line.startswith("# ")]
    assert len(heads) == (2 if dialect == "native" else 3)
    longer = built(language, dialect, CARD, CARD, instructions="Be\n\n\nbrief")
    assert longer.startswith(built(language, dialect, CARD)[:200])
    assert longer.endswith("Be\n\n\nbrief")
    assert "$" not in longer.replace("$weather", "")


@pytest.mark.parametrize("strategy", ["react", "act_only"])
def test_s2_14_to_s2_17_the_rules(strategy: str) -> None:
    """S2-14, S2-15, S2-16, S2-17, S0-34: in both languages."""
    english = PROMPTS["en"].texts[f"rules_{strategy}"]
    chinese = PROMPTS["zh"].texts[f"rules_{strategy}"]
    for rule in (
        "only the listed tools",
        "enough evidence is collected",
        "what is missing",
        "Never fabricate tool",
    ):
        assert rule in english
    for rule in ("只能使用列出的工具", "证据足够就停止", "说明缺少什么", "严禁编造工具结果"):
        assert rule in chinese
    assert "untrusted data" in english
    assert "不可信的数据" in chinese
    *rules, language_rule = chinese.splitlines()
    assert len(rules) == len(english.splitlines())
    assert "使用任务所用的语言" in language_rule


def test_s3_9_the_form_forbids_everything_else() -> None:
    """S3-2, S3-9: other keys, explanations, prefixes, suffixes, fences."""
    english = output_format_prompt(PROMPTS["en"], "json", tools=True, reasons=True)
    for part in ('"thought"', '"action"', '"action_input"', '"final"'):
        assert part in english
        assert part in output_format_prompt(PROMPTS["zh"], "json", tools=True, reasons=True)
    for word in ("other keys", "explanations", "prefix", "suffix", "fence"):
        assert word in english


@pytest.mark.parametrize("language", ["en", "zh"])
def test_s3_22_the_task_repeats_the_output_rule_for_json(language: str) -> None:
    """S3-22: and only there."""
    prompts = PROMPTS[language]
    assert "action_input" in task_prompt(prompts, "json", "count $x")
    assert task_prompt(prompts, "text", "count $x") == "count $x"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_s3_20_the_tool_block_has_the_whole_card(language: str) -> None:
    """S3-20, S3-58, S3-59, S2-19, S2-20, S2-21, S2-23, S2-25: the schema of the parameters too, not ASCII-escaped."""
    block = tool_block((CARD, ToolCard(name="now", purpose="Tells the time.")), PROMPTS[language])
    for part in (CARD.name, CARD.purpose, CARD.use_when, CARD.avoid_when, '{"城市":{"type":"string"}}'):
        assert part in block
    errors = {"en": "no_city: name a city; busy (retryable)", "zh": "no_city：name a city；busy（可重试）"}
    notes = {"en": " (winter)", "zh": "（winter）"}
    assert errors[language] in block
    assert f'{{"城市":"北京"}} → {{"t":3}}{notes[language]}' in block
    assert "\n\n## now\n" in block
    assert tool_block((), PROMPTS[language]) in ("(none)", "（无）")


def test_describe_is_one_text_for_the_api() -> None:
    lines = describe(CARD).splitlines()
    assert lines[0] == CARD.purpose
    assert [line.split(":")[0] for line in lines[1:]] == ["Use when", "Do not use when", "Errors", "Examples"]
    assert describe(ToolCard(name="now", purpose="Tells the time.")) == "Tells the time."


def test_describe_has_the_language_of_the_run() -> None:
    lines = describe(CARD, "zh").splitlines()
    assert [line.split("：")[0] for line in lines[1:]] == ["适用场景", "不适用场景", "可能的错误", "示例"]


def test_without_tools_the_prompt_mentions_none() -> None:
    for strategy in ("reason_only", "standard"):
        made = system_prompt(
            PROMPTS["en"],
            get_dialect("json"),
            (),
            strategy,
            "",
            tools=False,
            reasons=strategy == "reason_only",
        )
        assert "# Tools" not in made
        assert ('"thought"' in made) == (strategy == "reason_only")


def test_unknown_names_are_named() -> None:
    with pytest.raises(UnknownName, match=r"no dialect called 'xml'.*json, native, text"):
        get_dialect("xml")
    with pytest.raises(PromptError, match="rules_plan"):
        system_prompt(PROMPTS["en"], get_dialect("json"), (), "plan", "", tools=True, reasons=True)


def test_a_dialect_of_ones_own_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    registered = dict(get_dialect.__globals__["_REGISTERED"])
    monkeypatch.setitem(get_dialect.__globals__, "_REGISTERED", registered)

    class Own(JsonDialect):
        name = "own"

    own = Own()
    register_dialect(own)
    assert get_dialect("own") is own
