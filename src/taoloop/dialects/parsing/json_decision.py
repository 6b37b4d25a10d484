"""What a JSON object says that a model wrote as its decision: a call, an answer, or neither.

Keys are matched by their role, whatever word, case or language they come in. A key that has no role, an object with
two decisions, or one with two readings is refused: what is not understood is not dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taoloop.core.decision import excerpt
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.json_repair import parse_whole
from taoloop.dialects.parsing.strict_json import NotJsonError, dumps, json_equal
from taoloop.dialects.parsing.tool_names import is_final_name, is_placeholder_name, resolve_tool_name
from taoloop.dialects.texts import ReplyParseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards.tool_card import ToolCard

_KEY_SEPARATORS = lazy_pattern(r"[\s_\-.:\\*`]+")


def _words(*words: str) -> frozenset[str]:
    return frozenset(word for line in words for word in line.split())


ROLES: dict[str, frozenset[str]] = {
    "tool": _words(
        "action tool name function toolname functionname actionname toolid recipientname callname nameoftool",
        "行动 动作 工具 函数 工具名 工具名称 函数名 行动名称 动作名称 名称 操作",
    ),
    "args": _words(
        "actioninput args arguments argument parameters parameter params param input inputs toolinput toolargs",
        "actionargs actionarguments actionparameters actionparams toolarguments toolparameters toolparams kwargs",
        "functionargs functionarguments functionparameters functioninput inputparameters argumentsjson",
        "行动输入 动作输入 工具输入 输入 参数 工具参数 行动参数 动作参数 输入参数 操作输入",
    ),
    "final": _words(
        "final finalanswer answer finalresponse finalresult finaloutput",
        "最终答案 最终回答 最终答复 最终结果 最终回复 答案 回答",
    ),
    "observation": _words(
        "observation observations obs observed toolresult tooloutput toolresponse functionresponse functionresult",
        "result results actionresult actionoutput output outputs response",
        "观察 观察结果 观测 结果 返回 返回结果 工具结果 工具返回 执行结果 输出",
    ),
    "thought": _words(
        "thought thoughts thinking reasoning reason reasonsummary rationale explanation analysis plan comment",
        "reflection criticism scratchpad reasoningsummary justification 思考 想法 思路 推理 理由 分析 计划 说明",
    ),
    "meta": _words("id callid toolcallid index role step stepnumber turn confidence stepid status requestid language"),
}
_ROLE_OF = {word: role for role, words in ROLES.items() for word in words}
_WRAPPERS = _words(
    "toolcall toolcalls functioncall functioncalls call calls actions decision nextstep nextaction reply message json",
    "data object assistant react root content step steps response output result command request tooluse invocation",
    "action tool function toolcallrequest agentaction",
)
_VERBS = _words(
    "toolcall tooluse usetool calltool call function functioncall callfunction invoke act action tool execute runtool",
    "toolcalls customtoolcall",
)
_SPEAKERS = _words("user human tool function system developer ipython observation 用户 工具")
_MAX_WRAPPERS = 4


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call as it was written."""

    name: str
    """The name of the tool, not resolved."""
    args: Any = None
    """Whatever was written as the arguments."""
    has_args: bool = True
    """False: nothing was written where the arguments belong."""
    reason: str = ""
    """The thought in the same object."""


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An answer as it was written."""

    value: Any
    """Whatever was written as the answer."""
    reason: str = ""
    """The thought in the same object."""


@dataclass(frozen=True, slots=True)
class ParsedThought:
    """An object that holds nothing but a thought."""

    reason: str
    """The thought."""


ParsedItem = ParsedCall | ParsedAnswer | ParsedThought


def parse_decision_object(value: Any, cards: Sequence[ToolCard], depth: int = 0) -> list[ParsedItem]:
    """The decisions in a value; none if it is no decision at all. A list counts each of its objects.

    Raises:
        ReplyParseError: it is a decision, but not one that may be believed.
    """
    if isinstance(value, str):
        return _parse_json_text(value, cards, depth)
    if isinstance(value, list):
        if depth >= _MAX_WRAPPERS or not all(isinstance(item, dict) for item in value):
            return []
        return [parsed_item for item in value for parsed_item in parse_decision_object(item, cards, depth + 1)]
    if not isinstance(value, dict) or not value:
        return []
    return _parse_object(value, cards, depth)


def _parse_json_text(value: str, cards: Sequence[ToolCard], depth: int) -> list[ParsedItem]:
    if depth >= _MAX_WRAPPERS or value.lstrip()[:1] not in ("{", "["):
        return []
    try:
        parsed = parse_whole(value)
    except NotJsonError:
        return []
    if parsed.is_guess:
        return []
    return parse_decision_object(parsed.value, cards, depth + 1)


def is_observation(value: Any) -> bool:
    """Whether an object holds nothing but what a tool would have returned."""
    return isinstance(value, dict) and bool(value) and all(plain_key(key) in ROLES["observation"] for key in value)


def is_message(value: Any) -> bool:
    """Whether an object is a message of another party: `{"role": "user", "content": …}`, a result of a tool."""
    if not isinstance(value, dict):
        return False
    values = {plain_key(key): plain_key(text) for key, text in value.items() if isinstance(text, str)}
    return values.get("role") in _SPEAKERS or values.get("type") in ROLES["observation"]


def plain_key(key: str) -> str:
    """A key without case, blanks, dashes and underscores."""
    return _KEY_SEPARATORS.sub("", key).casefold()


def _parse_object(source: dict[str, Any], cards: Sequence[ToolCard], depth: int) -> list[ParsedItem]:
    roles: dict[str, list[str]] = {role: [] for role in ROLES}
    unknown_keys: list[str] = []
    kind = ""
    for key, value in source.items():
        plain = plain_key(key)
        if plain == "type" and isinstance(value, str) and _is_decision_type(value):
            kind = plain_key(value)
        elif plain in ("type", "kind"):
            unknown_keys.append(key)
        else:
            role = _ROLE_OF.get(plain)
            (unknown_keys if role is None else roles[role]).append(key)
    reason = "\n".join(
        str(source[key]).strip() for key in roles["thought"] if isinstance(source[key], str) and source[key]
    )
    wrapped_items = _parse_wrapper(source, cards, depth)
    if wrapped_items is not None:
        return wrapped_items
    name = _tool_name(source, roles["tool"], cards)
    if name is not None and _only_data(roles, kind) and resolve_tool_name(name, cards) is None:
        return []  # such as {"name": "Alice", "age": 30}
    if name is None and not roles["final"] and not _is_final_type(kind):
        if roles["thought"] and not unknown_keys and not roles["args"]:
            return [ParsedThought(reason)]
        return _call_by_tool_key(source, unknown_keys, roles, reason, cards)
    return [_parse_decision(source, roles, unknown_keys, kind, name, reason, cards)]


def _only_data(roles: dict[str, list[str]], kind: str) -> bool:
    """Whether nothing but a word that names anything hints at a call."""
    hints = {plain_key(key) for key in roles["tool"]}
    return hints <= {"name", "function", "名称"} and not roles["args"] and not roles["final"] and not kind


def _is_decision_type(value: str) -> bool:
    plain = plain_key(value)
    return plain in _VERBS or _is_final_type(plain)


def _is_final_type(plain: str) -> bool:
    return plain in ("final", "finalanswer", "finish", "answer", "最终答案")


def _parse_wrapper(source: dict[str, Any], cards: Sequence[ToolCard], depth: int) -> list[ParsedItem] | None:
    """The decisions in the one wrapper around them, None if there is no wrapper."""
    keys = [key for key in source if source[key] is not None and not _is_secondary(key, source[key])]
    if len(keys) != 1 or depth >= _MAX_WRAPPERS or plain_key(keys[0]) not in _WRAPPERS:
        return None
    inner = source[keys[0]]
    if not isinstance(inner, dict | list) and not (isinstance(inner, str) and inner.lstrip()[:1] in ("{", "[")):
        return None
    items = parse_decision_object(inner, cards, depth + 1)
    if not items and _ROLE_OF.get(plain_key(keys[0])) == "tool" and isinstance(inner, dict):
        raise ReplyParseError("bad_action", "object_names_no_tool", dumps(source), action=excerpt(dumps(inner)))
    return items or None


def _is_secondary(key: str, value: Any) -> bool:
    """Whether a member beside a wrapper is only a thought, a number or an id, or the type of the object."""
    plain = plain_key(key)
    if isinstance(value, dict | list) and plain in _WRAPPERS:
        return False
    if plain == "type":
        return isinstance(value, str) and _is_decision_type(value)
    return _ROLE_OF.get(plain) in ("thought", "meta")


def _tool_name(source: dict[str, Any], keys: list[str], cards: Sequence[ToolCard]) -> str | None:
    """The tool that is named; None where the keys for it are missing or empty."""
    names: list[str] = []
    for key in keys:
        value = source[key]
        if value is None:
            continue
        if not isinstance(value, str):
            raise ReplyParseError("bad_action", "tool_name_no_text", dumps(source), value=excerpt(dumps(value)))
        if value.strip() not in names:
            names.append(value.strip())
    if len(names) > 1:
        known = [name for name in names if resolve_tool_name(name, cards) is not None or is_final_name(name)]
        verbs = [name for name in names if plain_key(name) in _VERBS]
        names = known if len(known) == 1 and len(verbs) == len(names) - 1 else names
    if len(names) > 1:
        raise ReplyParseError("two_decisions", "object_two_tools", dumps(source), names=excerpt(", ".join(names)))
    return names[0] if names else None


def _call_by_tool_key(
    source: dict[str, Any], unknown_keys: list[str], roles: dict[str, list[str]], reason: str, cards: Sequence[ToolCard]
) -> list[ParsedItem]:
    """`{"tool_name": {its arguments}}`: the only other key is a known tool."""
    if len(unknown_keys) == 1 and not roles["args"] and not roles["observation"]:
        card, value = resolve_tool_name(unknown_keys[0], cards), source[unknown_keys[0]]
        if card is not None and isinstance(value, dict):
            return [ParsedCall(card.name, value, reason=reason)]
    return []


def _parse_decision(
    source: dict[str, Any],
    roles: dict[str, list[str]],
    unknown_keys: list[str],
    kind: str,
    name: str | None,
    reason: str,
    cards: Sequence[ToolCard],
) -> ParsedItem:
    finals = [source[key] for key in roles["final"] if source[key] is not None]
    inputs = [source[key] for key in roles["args"]]
    if (kind and not _is_final_type(kind)) or (name is not None and resolve_tool_name(name, cards) is not None):
        finals = [value for value in finals if not _is_empty_answer(value)]  # beside a call an empty answer is none
    is_final = _is_final_type(kind) or (
        name is not None and is_final_name(name) and resolve_tool_name(name, cards) is None
    )
    if name is not None and is_placeholder_name(name) and (finals or name == ""):
        name = None
    if is_final or (finals and name is None):
        return _parse_answer(
            source, roles, unknown_keys, finals, inputs, "" if is_final and is_final_name(name or "") else name, reason
        )
    if finals:
        raise ReplyParseError("two_decisions", "object_action_and_answer", dumps(source))
    if name is None:
        raise ReplyParseError("no_decision", "object_no_decision", dumps(source))
    if not all(json_equal(inputs[0], value) for value in inputs[1:]):
        raise ReplyParseError("two_decisions", "object_two_inputs", dumps(source))
    _reject_observation(source, roles)
    if unknown_keys and not inputs:
        return ParsedCall(name, _collect_flat_arguments(source, roles, unknown_keys, name, cards), reason=reason)
    _reject_unknown_keys(source, unknown_keys)
    return ParsedCall(name, inputs[0] if inputs else None, has_args=bool(inputs), reason=reason)


def _parse_answer(
    source: dict[str, Any],
    roles: dict[str, list[str]],
    unknown_keys: list[str],
    finals: list[Any],
    inputs: list[Any],
    name: str | None,
    reason: str,
) -> ParsedAnswer:
    empty = next((value for value in inputs if value == {}), None)
    inputs = [value for value in inputs if value not in (None, {}, "")]
    if name or (finals and inputs and not json_equal(finals[0], inputs[0])):
        raise ReplyParseError("two_decisions", "object_final_and_action", dumps(source))
    _reject_observation(source, roles, anywhere=True)
    _reject_unknown_keys(source, [key for key in unknown_keys if plain_key(key) not in ("content", "text")])
    values = finals + inputs + [source[key] for key in unknown_keys]
    if not all(json_equal(values[0], value) for value in values[1:]):
        raise ReplyParseError("two_decisions", "object_two_answers", dumps(source))
    return ParsedAnswer(values[0] if values else empty, reason)


def _is_empty_answer(value: Any) -> bool:
    return value is False or value == ""


def _collect_flat_arguments(
    source: dict[str, Any], roles: dict[str, list[str]], unknown_keys: list[str], name: str, cards: Sequence[ToolCard]
) -> dict[str, Any]:
    """Arguments beside the name of the tool instead of under a key of their own."""
    card = resolve_tool_name(name, cards)
    if card is None or any(key not in card.parameters for key in unknown_keys):
        _reject_unknown_keys(source, unknown_keys)
    if card is not None and any(key in card.parameters for role in roles.values() for key in role):
        raise ReplyParseError("bad_action", "unclear_keys", dumps(source), tool=name)
    return {key: source[key] for key in unknown_keys}


def _reject_observation(source: dict[str, Any], roles: dict[str, list[str]], *, anywhere: bool = False) -> None:
    """Refuse an observation in the object: with a final, or before the action; behind an action it is cut."""
    filled = [key for key in roles["observation"] if source[key] not in (None, "", {}, [])]
    keys = list(source)
    last_decision = max((keys.index(key) for key in roles["tool"] + roles["args"]), default=len(keys))
    if filled and (anywhere or keys.index(filled[0]) < last_decision or not roles["tool"]):
        raise ReplyParseError("invented_observation", "invented_key", dumps(source), key=filled[0])


def _reject_unknown_keys(source: dict[str, Any], unknown_keys: list[str]) -> None:
    if unknown_keys:
        raise ReplyParseError("stray_text", "unknown_keys", dumps(source), keys=excerpt(", ".join(unknown_keys)))
