"""What a JSON object says that a model wrote as its decision: a call, an answer, or neither.

Keys are matched by their role, whatever word, case or language they come in. A key that has no role, an object with
two decisions, or one with two readings is refused: what is not understood is not dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taoloop.core.decision import excerpt
from taoloop.dialects.parsing.json_repair import read_whole
from taoloop.dialects.parsing.parse_error import ReplyParseError
from taoloop.dialects.parsing.strict_json import NotJsonError, dumps, json_equal
from taoloop.dialects.parsing.tool_names import is_final_name, is_placeholder_name, resolve_tool_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards.tool_card import ToolCard

_SIGNS = re.compile(r"[\s_\-.:\\*`]+")


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
_DEEPEST_WRAPPER = 4


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call as it was written: the name is not resolved, the arguments are whatever stood there.

    `given` says whether there was a place for arguments at all.
    """

    name: str
    args: Any = None
    given: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An answer as it was written."""

    value: Any
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ParsedThought:
    """An object that holds nothing but a thought."""

    reason: str


ParsedItem = ParsedCall | ParsedAnswer | ParsedThought


def parse_decision_object(value: Any, cards: Sequence[ToolCard], wrapped: int = 0) -> list[ParsedItem]:
    """The decisions in a value; none if it is no decision at all. A list counts each of its objects.

    Raises:
        RefusedError: it is a decision, but not one that may be believed.
    """
    if isinstance(value, str):
        return _from_text(value, cards, wrapped)
    if isinstance(value, list):
        if wrapped >= _DEEPEST_WRAPPER or not all(isinstance(item, dict) for item in value):
            return []
        return [found for item in value for found in parse_decision_object(item, cards, wrapped + 1)]
    if not isinstance(value, dict) or not value:
        return []
    return _from_object(value, cards, wrapped)


def _from_text(value: str, cards: Sequence[ToolCard], wrapped: int) -> list[ParsedItem]:
    if wrapped >= _DEEPEST_WRAPPER or value.lstrip()[:1] not in ("{", "["):
        return []
    try:
        inner = read_whole(value)
    except NotJsonError:
        return []
    if inner.is_guess:
        return []
    return parse_decision_object(inner.value, cards, wrapped + 1)


def is_observation(value: Any) -> bool:
    """Whether an object holds nothing but what a tool would have returned."""
    return isinstance(value, dict) and bool(value) and all(plain_key(key) in ROLES["observation"] for key in value)


def is_message(value: Any) -> bool:
    """Whether an object is a message of somebody else: `{"role": "user", "content": …}`, a result of a tool."""
    if not isinstance(value, dict):
        return False
    said = {plain_key(key): plain_key(one) for key, one in value.items() if isinstance(one, str)}
    return said.get("role") in _SPEAKERS or said.get("type") in ROLES["observation"]


def plain_key(key: str) -> str:
    """A key without case, blanks, dashes and underscores."""
    return _SIGNS.sub("", key).casefold()


def _from_object(made: dict[str, Any], cards: Sequence[ToolCard], wrapped: int) -> list[ParsedItem]:
    roles: dict[str, list[str]] = {role: [] for role in ROLES}
    others: list[str] = []
    kind = ""
    for key, value in made.items():
        plain = plain_key(key)
        if plain == "type" and isinstance(value, str) and _is_kind(value):
            kind = plain_key(value)
        elif plain in ("type", "kind"):
            others.append(key)
        else:
            role = _ROLE_OF.get(plain)
            (others if role is None else roles[role]).append(key)
    reason = "\n".join(str(made[key]).strip() for key in roles["thought"] if isinstance(made[key], str) and made[key])
    inner = _wrapped(made, cards, wrapped)
    if inner is not None:
        return inner
    name = _tool_name(made, roles["tool"], cards)
    if name is not None and _only_data(roles, kind) and resolve_tool_name(name, cards) is None:
        return []  # such as {"name": "Alice", "age": 30}
    if name is None and not roles["final"] and not _is_final_kind(kind):
        if roles["thought"] and not others and not roles["args"]:
            return [ParsedThought(reason)]
        return _named_by_key(made, others, roles, reason, cards)
    return [_decision(made, roles, others, kind, name, reason, cards)]


def _only_data(roles: dict[str, list[str]], kind: str) -> bool:
    """Whether nothing but a word that names anything hints at a call."""
    hints = {plain_key(key) for key in roles["tool"]}
    return hints <= {"name", "function", "名称"} and not roles["args"] and not roles["final"] and not kind


def _is_kind(value: str) -> bool:
    plain = plain_key(value)
    return plain in _VERBS or _is_final_kind(plain)


def _is_final_kind(plain: str) -> bool:
    return plain in ("final", "finalanswer", "finish", "answer", "最终答案")


def _wrapped(made: dict[str, Any], cards: Sequence[ToolCard], wrapped: int) -> list[ParsedItem] | None:
    """The decisions in the one wrapper around them, None if there is no wrapper."""
    keys = [key for key in made if made[key] is not None and not _says_little(key, made[key])]
    if len(keys) != 1 or wrapped >= _DEEPEST_WRAPPER or plain_key(keys[0]) not in _WRAPPERS:
        return None
    inner = made[keys[0]]
    if not isinstance(inner, dict | list) and not (isinstance(inner, str) and inner.lstrip()[:1] in ("{", "[")):
        return None
    found = parse_decision_object(inner, cards, wrapped + 1)
    if not found and _ROLE_OF.get(plain_key(keys[0])) == "tool" and isinstance(inner, dict):
        raise ReplyParseError("bad_action", f"The action {excerpt(dumps(inner))} names no tool.", dumps(made))
    return found or None


def _says_little(key: str, value: Any) -> bool:
    """Whether a member beside a wrapper is only a thought, a number or an id, or the type of the object."""
    plain = plain_key(key)
    if isinstance(value, dict | list) and plain in _WRAPPERS:
        return False
    if plain == "type":
        return isinstance(value, str) and _is_kind(value)
    return _ROLE_OF.get(plain) in ("thought", "meta")


def _tool_name(made: dict[str, Any], keys: list[str], cards: Sequence[ToolCard]) -> str | None:
    """The tool that is named; None where the keys for it are missing or empty."""
    names: list[str] = []
    for key in keys:
        value = made[key]
        if value is None:
            continue
        if not isinstance(value, str):
            raise ReplyParseError(
                "bad_action", f"A tool's name must be a text, not {excerpt(dumps(value))}.", dumps(made)
            )
        if value.strip() not in names:
            names.append(value.strip())
    if len(names) > 1:
        known = [name for name in names if resolve_tool_name(name, cards) is not None or is_final_name(name)]
        verbs = [name for name in names if plain_key(name) in _VERBS]
        names = known if len(known) == 1 and len(verbs) == len(names) - 1 else names
    if len(names) > 1:
        raise ReplyParseError("two_decisions", f"The object names two tools: {excerpt(', '.join(names))}.", dumps(made))
    return names[0] if names else None


def _named_by_key(
    made: dict[str, Any],
    others: list[str],
    roles: dict[str, list[str]],
    reason: str,
    cards: Sequence[ToolCard],
) -> list[ParsedItem]:
    """`{"tool_name": {its arguments}}`: the only other key is a known tool."""
    if len(others) == 1 and not roles["args"] and not roles["observation"]:
        card, value = resolve_tool_name(others[0], cards), made[others[0]]
        if card is not None and isinstance(value, dict):
            return [ParsedCall(card.name, value, reason=reason)]
    return []


def _decision(
    made: dict[str, Any],
    roles: dict[str, list[str]],
    others: list[str],
    kind: str,
    name: str | None,
    reason: str,
    cards: Sequence[ToolCard],
) -> ParsedItem:
    finals = [made[key] for key in roles["final"] if made[key] is not None]
    given = [made[key] for key in roles["args"]]
    if (kind and not _is_final_kind(kind)) or (name is not None and resolve_tool_name(name, cards) is not None):
        finals = [value for value in finals if not _is_not_given(value)]  # beside a call an empty answer is none
    says_final = _is_final_kind(kind) or (
        name is not None and is_final_name(name) and resolve_tool_name(name, cards) is None
    )
    if name is not None and is_placeholder_name(name) and (finals or name == ""):
        name = None
    if says_final or (finals and name is None):
        return _answer(
            made, roles, others, finals, given, "" if says_final and is_final_name(name or "") else name, reason
        )
    if finals:
        raise ReplyParseError(
            "two_decisions",
            "An action and a final answer in one object, before the observation; nothing was run.",
            dumps(made),
        )
    if name is None:
        raise ReplyParseError("no_decision", "The JSON object has neither an action nor a final.", dumps(made))
    if not all(json_equal(given[0], value) for value in given[1:]):
        raise ReplyParseError("two_decisions", "The object has two different sets of arguments.", dumps(made))
    _refuse_observed(made, roles)
    if others and not given:
        return ParsedCall(name, _flat(made, roles, others, name, cards), reason=reason)
    _refuse_others(made, others)
    return ParsedCall(name, given[0] if given else None, given=bool(given), reason=reason)


def _answer(
    made: dict[str, Any],
    roles: dict[str, list[str]],
    others: list[str],
    finals: list[Any],
    given: list[Any],
    name: str | None,
    reason: str,
) -> ParsedAnswer:
    empty = next((value for value in given if value == {}), None)
    given = [value for value in given if value not in (None, {}, "")]
    if name or (finals and given and not json_equal(finals[0], given[0])):
        raise ReplyParseError(
            "two_decisions", "'final' excludes an action and its arguments; nothing was run.", dumps(made)
        )
    _refuse_observed(made, roles, first=True)
    _refuse_others(made, [key for key in others if plain_key(key) not in ("content", "text")])
    said = finals + given + [made[key] for key in others]
    if not all(json_equal(said[0], value) for value in said[1:]):
        raise ReplyParseError("two_decisions", "Two different final answers in one object.", dumps(made))
    return ParsedAnswer(said[0] if said else empty, reason)


def _is_not_given(value: Any) -> bool:
    return value is False or value == ""


def _flat(
    made: dict[str, Any], roles: dict[str, list[str]], others: list[str], name: str, cards: Sequence[ToolCard]
) -> dict[str, Any]:
    """Arguments that stand beside the name of the tool instead of under a key of their own."""
    card = resolve_tool_name(name, cards)
    if card is None or any(key not in card.parameters for key in others):
        _refuse_others(made, others)
    if card is not None and any(key in card.parameters for role in roles.values() for key in role):
        raise ReplyParseError("bad_action", f"It is not clear which keys are arguments of {name!r}.", dumps(made))
    return {key: made[key] for key in others}


def _refuse_observed(made: dict[str, Any], roles: dict[str, list[str]], *, first: bool = False) -> None:
    """Refuse an observation in the object: with a final, or before the action; behind an action it is cut."""
    filled = [key for key in roles["observation"] if made[key] not in (None, "", {}, [])]
    keys = list(made)
    decided = max((keys.index(key) for key in roles["tool"] + roles["args"]), default=len(keys))
    if filled and (first or keys.index(filled[0]) < decided or not roles["tool"]):
        raise ReplyParseError(
            "invented_observation",
            f"The key {filled[0]!r} is an observation that you wrote yourself; only the runtime writes observations.",
            dumps(made),
        )


def _refuse_others(made: dict[str, Any], others: list[str]) -> None:
    if others:
        raise ReplyParseError(
            "stray_text",
            f"The JSON object has keys that do not belong there: {excerpt(', '.join(others))}. "
            "Give the thought, the action and its input, or the final answer.",
            dumps(made),
        )
