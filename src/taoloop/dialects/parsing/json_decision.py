"""What a JSON object says that a model wrote as its decision: a call, an answer, or neither.

Keys are matched by their role, whatever word, case or language they come in. A key that has no role, an object with
two decisions, or one with two readings is refused: what is not understood is not dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from taoloop.core.cards.coercion import coerce_args, schema_types
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import excerpt
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.json_repair import parse_whole
from taoloop.dialects.parsing.strict_json import NotJsonError, dumps, json_equal
from taoloop.dialects.parsing.tool_names import is_final_name, is_placeholder_name, resolve_tool_name
from taoloop.dialects.texts import ReplyParseError

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
        "thought thoughts thinking reasoning reason reasonsummary rationale explanation analysis comment",
        "reflection criticism scratchpad reasoningsummary justification 思考 想法 思路 推理 理由 分析 说明",
    ),
    "meta": _words("id callid toolcallid index role step stepnumber turn stepid requestid language"),
}
_REMARKS = _words("plan confidence status 计划 状态 置信度")
"""Keys that say something about a decision and change nothing in it, unless it is one with an effect."""
_ROLE_OF = {word: role for role, words in ROLES.items() for word in words}
_WRAPPERS = _words(
    "toolcall toolcalls functioncall functioncalls call calls actions decision nextstep nextaction reply message json",
    "data object assistant react root content step steps response output result command request tooluse invocation",
    "action tool function toolcallrequest agentaction",
)
_DATA_NAMES = frozenset({"name", "名称"})
_TYPES: Mapping[type, frozenset[str]] = {
    bool: frozenset({"boolean"}),
    int: frozenset({"integer", "number"}),
    float: frozenset({"number"}),
    str: frozenset({"string"}),
    list: frozenset({"array"}),
    dict: frozenset({"object"}),
}
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
    unknown_keys: tuple[str, ...] = ()
    """Keys beside it that have a value and no meaning."""


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An answer as it was written."""

    value: Any
    """Whatever was written as the answer."""
    reason: str = ""
    """The thought in the same object."""
    unknown_keys: tuple[str, ...] = ()
    """Keys beside it that have a value and no meaning."""


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
    return [] if parsed.is_guess else parse_decision_object(parsed.value, cards, depth + 1)


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


def is_record(value: Any, named_by: str, card: ToolCard, *, json_answer: bool) -> bool:
    """Whether an object that names a known tool under the key `named_by` is data and no call: it gives no arguments.

    `name` is a word of data, too, where the tool needs arguments and the plain values beside it can be none of them,
    not even under other keys. Anything else may be a call, and is in doubt. Where the answer must be JSON
    (`json_answer`), `name` and `action` are such words and may stand alone: the schema of the answer judges the object.
    """
    if not isinstance(value, dict):
        return False
    arguments = {key: inner for key, inner in value.items() if key != named_by}
    if any(key in card.parameters or _says_call(plain_key(key)) for key in arguments):
        return False
    if json_answer:
        return plain_key(named_by) in _DATA_NAMES or plain_key(named_by) == "action"
    if plain_key(named_by) not in _DATA_NAMES or not card.required or not arguments:
        return False
    if any(isinstance(inner, dict | list) for inner in arguments.values()):
        return False
    return len(arguments) > len(card.parameters) or not all(
        _may_be_argument(inner, card) for inner in arguments.values()
    )


def _says_call(plain: str) -> bool:
    return plain in _ROLE_OF or plain in _REMARKS or plain in ("type", "kind")


def _may_be_argument(value: Any, card: ToolCard) -> bool:
    """Whether a parameter of the tool takes a value of this type."""
    if value is None:
        return True
    for name, rule in card.parameters.items():
        types = schema_types(rule, card.input_schema)
        coerced = coerce_args({name: value}, card.input_schema)[name]
        if not types or types & _TYPES.get(type(coerced), frozenset()):
            return True
    return False


def given_roles(value: Any) -> dict[str, Any]:
    """The roles that an object gives a value other than null for, each with its first value; none for other values."""
    roles: dict[str, Any] = {}
    for key, inner in value.items() if isinstance(value, dict) else ():
        role = _ROLE_OF.get(plain_key(key))
        if role is not None and inner is not None:
            roles.setdefault(role, inner)
    return roles


@dataclass(frozen=True, slots=True)
class _Members:
    """The members of an object by their role."""

    source: dict[str, Any]
    """The object."""
    keys: dict[str, list[str]]
    """The keys of each role."""
    unknown: list[str]
    """The keys without a role."""
    kind: str
    """What the object says that it is, if that is a call or an answer; else empty."""

    @classmethod
    def of(cls, source: dict[str, Any]) -> _Members:
        """The members of this object."""
        keys: dict[str, list[str]] = {role: [] for role in ROLES}
        unknown: list[str] = []
        kind = ""
        for key, value in source.items():
            plain = plain_key(key)
            if plain == "type" and isinstance(value, str) and _is_decision_type(value):
                kind = plain_key(value)
            else:
                role = None if plain in ("type", "kind") else _ROLE_OF.get(plain)
                (unknown if role is None else keys[role]).append(key)
        return cls(source, keys, unknown, kind)

    @property
    def reason(self) -> str:
        """The thoughts."""
        return "\n".join(text.strip() for text in self.values("thought") if isinstance(text, str) and text)

    def values(self, role: str) -> list[Any]:
        """The values of a role."""
        return [self.source[key] for key in self.keys[role]]

    def error(self, code: str, name: str, /, **values: object) -> ReplyParseError:
        """An error about the object."""
        return ReplyParseError(code, name, dumps(self.source), **values)


def _parse_object(source: dict[str, Any], cards: Sequence[ToolCard], depth: int) -> list[ParsedItem]:
    wrapped_items = _parse_wrapper(source, cards, depth)
    if wrapped_items is not None:
        return wrapped_items
    members = _Members.of(source)
    name = _tool_name(members, cards)
    if name is not None and _only_data(members) and resolve_tool_name(name, cards) is None:
        return []  # such as {"name": "Alice", "age": 30}
    if name is None and not members.keys["final"] and not _is_final_type(members.kind):
        if members.keys["thought"] and not members.unknown and not members.keys["args"]:
            return [ParsedThought(members.reason)]
        return _call_by_tool_key(members, cards)
    return [_parse_decision(members, name, cards)]


def _only_data(members: _Members) -> bool:
    """Whether nothing but a word that names anything hints at a call."""
    hints = {plain_key(key) for key in members.keys["tool"]}
    is_bare = not members.keys["args"] and not members.keys["final"] and not members.kind
    return is_bare and hints <= {"name", "function", "名称"}


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
        raise ReplyParseError("bad_action", "no_tool_named", dumps(source), action=excerpt(dumps(inner)))
    remarks = tuple(key for key in source if plain_key(key) in _REMARKS and not _is_empty(source[key]))
    if remarks:
        items = [item if isinstance(item, ParsedThought) else replace(item, unknown_keys=remarks) for item in items]
    return items or None


def _is_secondary(key: str, value: Any) -> bool:
    """Whether a member beside a wrapper is only a thought, a number or an id, or the type of the object."""
    plain = plain_key(key)
    if isinstance(value, dict | list) and plain in _WRAPPERS:
        return False
    if plain == "type":
        return isinstance(value, str) and _is_decision_type(value)
    return _ROLE_OF.get(plain) in ("thought", "meta") or plain in _REMARKS


def _tool_name(members: _Members, cards: Sequence[ToolCard]) -> str | None:
    """The tool that is named; None where the keys for it are missing or empty."""
    names: list[str] = []
    for value in members.values("tool"):
        if value is None:
            continue
        if not isinstance(value, str):
            raise members.error("bad_action", "no_tool_name", name=excerpt(dumps(value)))
        if value.strip() not in names:
            names.append(value.strip())
    if len(names) > 1:
        known = [name for name in names if resolve_tool_name(name, cards) is not None or is_final_name(name)]
        verbs = [name for name in names if plain_key(name) in _VERBS]
        names = known if len(known) == 1 and len(verbs) == len(names) - 1 else names
    if len(names) > 1:
        raise members.error("two_decisions", "two_actions", first=excerpt(names[0]), second=excerpt(names[1]))
    return names[0] if names else None


def _call_by_tool_key(members: _Members, cards: Sequence[ToolCard]) -> list[ParsedItem]:
    """`{"tool_name": {its arguments}}`: the only other key is a known tool."""
    if len(members.unknown) == 1 and not members.keys["args"] and not members.keys["observation"]:
        card, value = resolve_tool_name(members.unknown[0], cards), members.source[members.unknown[0]]
        if card is not None and isinstance(value, dict):
            return [ParsedCall(card.name, value, reason=members.reason)]
    return []


def _parse_decision(members: _Members, name: str | None, cards: Sequence[ToolCard]) -> ParsedItem:
    finals = [value for value in members.values("final") if value is not None]
    inputs = members.values("args")
    card = None if name is None else resolve_tool_name(name, cards)
    is_final = _is_final_type(members.kind)
    if finals and ((members.kind and not is_final) or card is not None):
        finals = [value for value in finals if value is not False and value != ""]  # beside a call these are no answers
    is_final = is_final or (name is not None and card is None and is_final_name(name))
    if name is not None and is_placeholder_name(name) and (finals or name == ""):
        name = None
    if is_final or (finals and name is None):
        names_action = bool(name) and not (is_final and is_final_name(name or ""))
        return _parse_answer(members, finals, inputs, names_action=names_action)
    if finals:
        raise members.error("two_decisions", "action_and_answer")
    if name is None:
        raise members.error("no_decision", "no_decision", text=excerpt(dumps(members.source)))
    if len(inputs) > 1 and not all(json_equal(inputs[0], value) for value in inputs[1:]):
        raise members.error("two_decisions", "unclear_keys", tool=name)
    remarks = _remarks(members) + _reject_observation(members)
    if members.unknown or remarks:
        return _parse_call_with_more_keys(members, name, card, inputs, remarks)
    return ParsedCall(name, inputs[0] if inputs else None, has_args=bool(inputs), reason=members.reason)


def _parse_call_with_more_keys(
    members: _Members, name: str, card: ToolCard | None, inputs: list[Any], remarks: tuple[str, ...]
) -> ParsedCall:
    """A call beside keys that are remarks, or arguments."""
    parameters: Mapping[str, Any] = card.parameters if card is not None else {}
    if not inputs and any(plain_key(key) not in _REMARKS or key in parameters for key in members.unknown):
        flat_args = _collect_flat_arguments(members, name, card)
        remarks = tuple(key for key in remarks if key not in flat_args)
        return ParsedCall(name, flat_args, reason=members.reason, unknown_keys=remarks)
    _reject_unknown_keys(members, [key for key in members.unknown if plain_key(key) not in _REMARKS])
    if any(key in parameters for key in remarks):
        raise members.error("bad_action", "unclear_keys", tool=name)
    args = inputs[0] if inputs else None
    return ParsedCall(name, args, has_args=bool(inputs), reason=members.reason, unknown_keys=remarks)


def _parse_answer(members: _Members, finals: list[Any], inputs: list[Any], *, names_action: bool) -> ParsedAnswer:
    empty = next((value for value in inputs if value == {}), None)
    inputs = [value for value in inputs if value not in (None, {}, "")]
    if names_action or (finals and inputs and not json_equal(finals[0], inputs[0])):
        raise members.error("two_decisions", "action_and_answer")
    _reject_observation(members, anywhere=True)
    texts = [key for key in members.unknown if plain_key(key) in ("content", "text")]
    _reject_unknown_keys(
        members, [key for key in members.unknown if key not in texts and plain_key(key) not in _REMARKS]
    )
    values = finals + inputs + [members.source[key] for key in texts]
    if not all(json_equal(values[0], value) for value in values[1:]):
        raise members.error("two_decisions", "two_answers")
    return ParsedAnswer(values[0] if values else empty, members.reason, _remarks(members))


def _collect_flat_arguments(members: _Members, name: str, card: ToolCard | None) -> dict[str, Any]:
    """Arguments beside the name of the tool instead of under a key of their own."""
    keys = [key for key in members.unknown if plain_key(key) not in _REMARKS or (card and key in card.parameters)]
    if card is None or any(key not in card.parameters for key in keys):
        _reject_unknown_keys(members, members.unknown)
    if card is not None and any(key in card.parameters for keys in members.keys.values() for key in keys):
        raise members.error("bad_action", "unclear_keys", tool=name)
    return {key: members.source[key] for key in keys}


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", {}, [])


def _remarks(members: _Members) -> tuple[str, ...]:
    """The keys that say something about the decision."""
    if not members.unknown:
        return ()
    return tuple(key for key in members.unknown if plain_key(key) in _REMARKS and not _is_empty(members.source[key]))


def _reject_observation(members: _Members, *, anywhere: bool = False) -> tuple[str, ...]:
    """Refuse an observation in the object, with a final or before the action; the keys of one behind it, to be cut."""
    filled = [key for key in members.keys["observation"] if not _is_empty(members.source[key])]
    if not filled:
        return ()
    order, tool_keys = list(members.source), members.keys["tool"]
    last_decision = max((order.index(key) for key in tool_keys + members.keys["args"]), default=len(order))
    if anywhere or order.index(filled[0]) < last_decision or not tool_keys:
        raise members.error("invented_observation", "invented_result", text=excerpt(filled[0]))
    return tuple(filled)


def _reject_unknown_keys(members: _Members, unknown: list[str]) -> None:
    if unknown:
        raise members.error("stray_text", "unknown_keys", keys=excerpt(", ".join(unknown)))
