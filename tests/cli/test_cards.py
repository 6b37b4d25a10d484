"""Cards as text: what a parameter may be stands there, whatever its schema says of it."""

import pytest
from hypothesis import given, strategies as st

from taoloop.cli.commands.tools import card_text
from taoloop.core.cards.tool_card import ToolCard

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def shown(rule: object) -> list[str]:
    """The lines of a card about its one parameter `kind`."""
    card = ToolCard(name="t", purpose="Try.", input_schema={"type": "object", "properties": {"kind": rule}})
    return [line.strip() for line in card_text(card).splitlines() if line.startswith("    kind: ")]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"type": "string"}, []),
        ({"description": "What kind."}, ["kind: What kind."]),
        ({"enum": ["a", "茶"], "default": "a"}, ['kind: (one of "a", "茶") (default "a")']),
        ({"description": "How many.", "default": 0}, ["kind: How many. (default 0)"]),
        ({"description": "Whether.", "default": False}, ["kind: Whether. (default false)"]),
        ({"default": {}}, []),
        ({"enum": list(range(30))}, [f"kind: (one of {', '.join(map(str, range(20)))}, …)"]),
    ],
)
def test_choices_and_defaults_stand_with_the_parameter(rule: dict[str, object], expected: list[str]) -> None:
    assert shown(rule) == expected


@given(
    rule=st.booleans()
    | st.fixed_dictionaries({"type": st.just("string")}, optional={"enum": VALUES, "default": VALUES})
)
def test_any_schema_can_be_shown(rule: object) -> None:
    assert len(shown(rule)) <= 1
