"""`tao tools`: what cards show, also of a parameter with any schema, and what the linter finds."""

import pytest
from hypothesis import given, strategies as st
from tests.shell import Shell

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


POOR = '''
from taoloop import tool

@tool
def do(x: str) -> str:
    """Run."""
    return x
'''

POOR_SENDING = '''
@tool(tier="destructive", egress=["to", "copy"], roles={"to": "target"}, reversible=False)
def send(to: str, copy: str = "") -> str:
    """Send a greeting, only to people."""
    return to
'''


def test_the_builtin_tools_have_nothing_to_improve(tao: Shell) -> None:
    out = tao("tools", "--lint", code=0).out
    assert "calculator: nothing to improve" in out
    assert "calculator  [read]" in tao("tools", code=0).out


def test_the_tools_of_an_agent_are_shown_and_linted(tao: Shell) -> None:
    tao.write("poor.py", POOR)
    tao.write("agent.yaml", 'tools: ["poor:do"]\n')
    out = tao("tools", "--agent", "agent.yaml", "do", "--lint", code=1).out
    assert "[no_tier]" in out
    card = tao("tools", "poor:do", "--json", "--lint", code=1).events[0]
    assert card["name"] == "do"
    assert {finding["code"] for finding in card["findings"]} >= {"no_tier"}


def test_a_card_says_what_a_call_does_to_the_world(tao: Shell) -> None:
    out = tao("tools", "write_file", code=0).out
    assert "write_file  [write]" in out
    assert "roles:      path target, content content" in out
    assert "egress:     no" in out
    assert "undone by:  restore_file" in out
    tao.write("poor.py", POOR + POOR_SENDING)
    open_card = tao("tools", "poor:do", code=0).out
    assert "do  [no tier: counts as destructive]" in open_card
    assert "egress:     not declared: counts as yes" in open_card
    assert "undone by:  not declared" in open_card
    sending = tao("tools", "poor:send", code=0).out
    assert "egress:     if to or copy is given" in sending
    assert "undone by:  nothing" in sending
    card = tao("tools", "poor:send", "--json", code=0).events[0]
    assert (card["egress"], card["roles"]["to"], card["reversible"]) == (["to", "copy"], "target", False)
    codes = [finding["code"] for finding in tao("tools", "poor:send", "--json", "--lint", code=1).events[0]["findings"]]
    assert codes.count("no_role") == 1
    tao.write("asked.py", POOR.replace("@tool", '@tool(tier="read", approval="required")'))
    assert "approval:   needed before each call" in tao("tools", "asked:do", code=0).out
    assert tao("tools", "asked:do", "--json", code=0).events[0]["approval"] == "required"


CLERK = '''
from taoloop import Agent, tool

@tool(tier="write", egress=False)
def order(item: str) -> str:
    """Order an item, at most one."""
    return item

clerk = Agent(name="clerk", model="offline", tools=[order], policy="autonomous")
'''


def test_effects_of_an_agent_that_nobody_guards_are_found(tao: Shell) -> None:
    tao.write("shop.py", CLERK)
    out = tao("tools", "--agent", "shop:clerk", "--lint", code=1).out
    assert "agent clerk: policy: Nobody is asked before 'order' acts (write)" in out
    assert "[no_repeat_guard]" in out
    record = tao("tools", "--agent", "shop:clerk", "--lint", "--json", code=1).events[-1]
    assert record["agent"] == "clerk"
    assert {finding["code"] for finding in record["findings"]} == {"unguarded_effect", "no_repeat_guard"}
    chinese = tao("tools", "--agent", "shop:clerk", "--lint", code=1, TAOLOOP_LANG="zh").out
    assert "'order' 执行前不询问任何人（write）" in chinese
    assert "如果进程在调用 'order' 期间终止" in chinese
    assert "agent clerk" not in tao("tools", "--agent", "shop:clerk", "order", "--lint", code=1).out


def test_the_agents_of_a_gateway_are_linted_and_its_keys(tao: Shell) -> None:
    tao.write("agent.yaml", "model: offline\ntools: [calculator]\n")
    tao.write("gateway.yaml", "agents: {sums: agent.yaml}\n")
    out = tao("tools", "gateway.yaml", "--lint", code=1).out
    assert "calculator: nothing to improve\n" in out
    assert "agent sums: nothing to improve\n" in out
    assert "gateway 127.0.0.1: keys: The gateway has no keys: whoever reaches 127.0.0.1" in out
