"""The judge of JSON values: bounded before it compiles, and while it judges."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.cards.test_schema_bounds import EXPRESSION, TREE, chain, doubled

from taoloop.core.cards.tool_card import ToolCard
from taoloop.dialects.standalone_reader import coerce_and_validate
from taoloop.errors import ConfigError, ToolDefinitionError
from taoloop.runtime.output_type import OutputValidator
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.json_schema import compile_schema, findings
from taoloop.tools.openapi.names import flatten_object
from taoloop.tools.openapi.schemas import standalone_schema


def test_a_schema_beyond_the_bounds_is_refused_by_all_who_compile_it() -> None:
    attack = doubled(24)
    with pytest.raises(ConfigError, match=r"too large to be judged: more than 5,000 rules .* `\$defs\.a13`"):
        OutputValidator(attack)
    arguments = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a0"}}, "$defs": attack["$defs"]}
    schemas: Any
    for schemas in ({"input_schema": arguments}, {"output_schema": attack}):
        with pytest.raises(ToolDefinitionError, match="5,000 rules"):
            tool_from_card(ToolCard(name="look", purpose="Look.", **schemas), lambda **_: None)
    assert "5,000 rules" in coerce_and_validate({"a": 1}, arguments)[1]


def test_a_document_s_schema_is_read_in_bounded_steps_and_refused_where_it_is_compiled() -> None:
    with pytest.raises(ConfigError, match="5,000 rules"):
        compile_schema(standalone_schema(doubled(24)), "It")
    wide = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 100} for n in range(8)}
    schema = standalone_schema({"$defs": {**wide, "a8": {}}, "allOf": [{"$ref": "#/$defs/a0"}, {}]})
    assert flatten_object(schema) is None
    with pytest.raises(ConfigError, match="5,000 rules"):
        compile_schema(schema, "It")


def test_a_value_that_would_take_too_many_steps_is_refused() -> None:
    definitions: dict[str, Any] = {
        f"a{level}": {"anyOf": [{"properties": {"left": {"$ref": f"#/$defs/a{level + 1}"}}}] * 2} for level in range(40)
    }
    validator = compile_schema({"$defs": {**definitions, "a40": {"type": "null"}}, "$ref": "#/$defs/a0"}, "It")
    assert findings(validator, {"left": 1}) == []
    [problem] = findings(validator, chain(40))
    assert "cannot be judged" in problem


def test_recursive_schemas_judge_deep_values_without_a_list_of_every_alternative() -> None:
    assert findings(compile_schema(TREE, "It"), chain(90)) == []
    validator = compile_schema(EXPRESSION, "It")
    [problem] = findings(validator, {"left": 5})
    assert "left" in problem or "anyOf" in problem or "valid" in problem
    [problem] = findings(validator, chain(60) | {"op": "divide"})
    assert "too many alternatives" in problem


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"^(a|aa)*(?!b)$", r"(?=a)(a*)*\1$"])
def test_a_pattern_that_backtracks_ends(pattern: str) -> None:
    findings(compile_schema({"pattern": pattern}, "It"), "a" * 5_000 + "!")


def test_many_patterns_share_the_memory_of_a_few() -> None:
    findings(compile_schema({"pattern": r"^.{1,4096}$"}, "It"), "a")  # 10 MB when compiled
    many: dict[str, Any] = {f"^.{{1,4096}}{number}$": {} for number in range(300)}
    with pytest.raises(ConfigError, match="regex"):
        compile_schema({"patternProperties": many}, "It")
