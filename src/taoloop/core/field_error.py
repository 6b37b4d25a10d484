"""The error of a settings class about one of its fields: what it is, and what it must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from taoloop.core.text import RUN_LANGUAGE, TextCatalog
from taoloop.errors import ConfigError

E = TypeVar("E", bound=ConfigError)

_TEXTS = TextCatalog(
    en={
        "agent": "An agent's {name} is {value!r}.",
        "limit": "The limit {name} is {value!r}.",
        "setting": "{owner}: {name} is {value!r}.",
        "policy": "The policy has {name} = {value!r}.",
        "rule": "The rule has {name} = {value!r}.",
        "named rule": "The rule {owner!r} has {name} = {value!r}.",
        "must be": "It must be {expected}.",
    },
    zh={
        "agent": "智能体的 {name} 是 {value!r}。",
        "limit": "上限 {name} 是 {value!r}。",
        "setting": "{owner}：{name} 是 {value!r}。",
        "policy": "安全策略中 {name} = {value!r}。",
        "rule": "规则中 {name} = {value!r}。",
        "named rule": "规则 {owner!r} 中 {name} = {value!r}。",
        "must be": "应为{expected}。",
    },
)

_EXPECTED_ZH = {
    "0 or more": "不小于 0 的数",
    "0 or more, or None": "不小于 0 的数，或为空",
    "above 0, or None": "大于 0 的数，或为空",
    "a whole number above 0": "大于 0 的整数",
    "a whole number above 0, or None": "大于 0 的整数，或为空",
    "a whole number above 0, or None for no limit": "大于 0 的整数；留空表示不限",
    "a number above 0, or None for no limit": "大于 0 的数；留空表示不限",
    "a whole number above 0 (and above max_output_tokens), or None": "大于 0（且大于 max_output_tokens）的整数，或为空",
    "seconds, 0 or more": "不小于 0 的秒数",
    "seconds above 0, or None": "大于 0 的秒数，或为空",
    "a whole number, 0 or more": "不小于 0 的整数",
    "a text": "文本",
    "a text, a number, or a mapping": "文本、数字或映射",
    "true or false": " true 或 false",
    "allow, ask or deny": " allow、ask 或 deny",
    "a tool's name, or a pattern such as mail_*": "工具名，或 mail_* 这样的通配符",
    "a mapping from arguments to what they must be": "从参数到其条件的映射",
    "a mapping from an argument to an amount": "从参数到数额的映射",
    "a mapping from names of arguments": "以参数名为键的映射",
    "a host, or a pattern such as *.example.com, without scheme, port and path": (
        "主机名，或 *.example.com 这样的通配符，不带协议、端口和路径"
    ),
    "hosts or patterns such as *.example.com, without scheme, port and path": (
        "主机名，或 *.example.com 这样的通配符，不带协议、端口和路径"
    ),
    "a pattern without '..', for a path that climbs fits none": "不含 '..' 的通配符：带 '..' 的路径不会匹配任何通配符",
    "a mapping with numbers as min and max": "min 和 max 为数字的映射",
    "a range whose min is not above its max": "min 不大于 max 的范围",
    "a mapping with a list of values as `in`": "`in` 为值列表的映射",
    "a mapping from tools to fields and the kinds of their ids": "从工具到字段及其 id 种类的映射",
}
"""What the settings say a value must be; what is missing here is shown in English."""


def field_error(kind: Callable[..., E], text: str, expected: str, /, **values: object) -> E:
    """The error that a field has a value that it cannot have, in the language of the current run.

    Args:
        kind: The class of the error.
        text: Which text names the field: `agent`, `limit`, `setting`, `policy`, `rule` or `named rule`.
        expected: What the value must be, in English.
        values: What the text is filled in with: `name` and `value`, and for some `owner`.
    """
    language = RUN_LANGUAGE.get()
    must_be = _EXPECTED_ZH.get(expected, expected) if language == "zh" else expected
    return kind(_TEXTS.text(language, text, **values), hint=_TEXTS.text(language, "must be", expected=must_be))
