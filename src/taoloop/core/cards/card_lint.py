"""The linter of tool cards: what would confuse a model, or the executor. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from taoloop.core.cards.tool_card import TIERS, Tier, ToolCard
from taoloop.core.words import name_words, stem

_VERB_GROUPS: dict[str, tuple[str, str]] = {
    "read": (
        "get fetch read look lookup search query find retrieve download load",
        "查询|获取|读取|搜索|查找|检索|下载",
    ),
    "compute": ("calculate compute evaluate", "计算"),
    "write": (
        "create write save update insert add edit modify set upload append rename move submit post",
        "创建|新建|写入|保存|更新|修改|添加|新增|上传|移动|提交",
    ),
    "delete": ("delete remove drop purge erase destroy wipe", "删除|移除|清空|清除|销毁"),
    "send": (
        "send publish notify email book order buy pay transfer cancel",
        "发送|发布|通知|预订|预定|下单|购买|支付|付款|转账|取消",
    ),
}
_CHANGING_GROUPS = ("write", "delete", "send")
# in names they may be nouns
_AMBIGUOUS = frozenset(("set", "add", "order", "post", "book", "load", "move", "look", "email"))
# "upload a file and get its link", "download a file and save it": the end of one act, not another
_CLOSING = re.compile(r"\s+(?:its|their|back)\b|\s+the\s+(?:new|resulting)\b")
_CHINESE_CLOSING = re.compile(r"(?:获取|读取|查询)(?:其|它|结果|链接|地址|编号|单号|ID|URL)", re.IGNORECASE)
_SAVING = frozenset(("save", "保存"))
# behind a noun that could be a verb: "order, transfer and payment status", "transfers of an account"
_NOUN_ENDS = re.compile(
    r"\s*,|\s+(?:and|or|of|status|state|history|counts?|dates?|ids?|numbers?|times?|address(?:es)?|info|details"
    r"|logs?|fees?|links?)\b"
)
_GROUP_OF_VERB = {verb: group for group, (verbs, _) in _VERB_GROUPS.items() for verb in verbs.split()}
_GROUP_OF_CHINESE_VERB = {verb: group for group, (_, verbs) in _VERB_GROUPS.items() for verb in verbs.split("|")}
_READ_VERBS = (
    "get list read show search find fetch query look lookup view check count describe calculate compute retrieve"
    " download load compare validate"
)
_WRITE_VERBS = (
    "create add write save store update set edit modify change append insert put upload rename move copy archive assign"
    " comment label tag book reserve order invite send post publish notify email reply forward share submit schedule"
    " reschedule mark register upsert"
)
_DESTRUCTIVE_VERBS = (
    "delete remove drop purge erase destroy wipe clear cancel revoke reset pay transfer refund buy purchase charge"
    " terminate kill shutdown reboot restart execute exec run deploy merge overwrite truncate uninstall close"
)
_CHINESE_WRITE_VERBS = (
    "创建|新建|添加|写入|保存|更新|修改|编辑|上传|移动|归档|指派|预订|预约|邀请|发送|发布|通知|回复|转发|分享|提交|安排"
)
_VERBS_OF_TIERS: dict[Tier, tuple[str, str]] = {
    "read": (_READ_VERBS, "查询|获取|读取|列出|搜索|查找|查看|检索|计算|下载|统计"),
    "draft": ("draft preview", "草拟|起草|预览"),
    "write": (_WRITE_VERBS, _CHINESE_WRITE_VERBS),
    "destructive": (
        _DESTRUCTIVE_VERBS,
        "删除|移除|清空|清除|销毁|取消|撤销|支付|付款|转账|退款|购买|重启|执行|运行|部署|覆盖|关闭",
    ),
}
_TIER_OF_VERB: dict[str, Tier] = {verb: tier for tier, (verbs, _) in _VERBS_OF_TIERS.items() for verb in verbs.split()}
_TIER_OF_CHINESE_VERB: dict[str, Tier] = {
    verb: tier for tier, (_, verbs) in _VERBS_OF_TIERS.items() for verb in verbs.split("|")
}
_CLAUSE = re.compile(
    r"(?:^|[.;,:]\s+|\b(?:and|then|or|also|plus|as well as|&)\s+)"
    r"(?:(?:and|then|or|also|can|will|to)\s+)*(?P<verb>[a-z]+)\b"
)
_CHINESE_CLAUSE = re.compile(
    rf"(?:^|[,，、;；。和与及]|并且|而且|然后|以及|同时|或者|[并或再可能])(?P<verb>{'|'.join(_GROUP_OF_CHINESE_VERB)})"
)
_LIMIT = re.compile(
    r"\b(?:only|at most|up to|no more|not|never|cannot|can't|without|unless|within|except|no|must)\b"
    r"|\b(?:limit|max|nothing\b|fails?\b|refused?\b|rejected?\b|ignored?\b)"
    r"|不|仅|只|最多|至多|上限|限于|以内|必须|除外|无法",
    re.IGNORECASE,
)
_UNWRITTEN = re.compile(
    r"\W*(?:todo|tbd|fixme|xxx|n/?a|none|description|placeholder|待补充|待定|无)\b\W*", re.IGNORECASE
)
_EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        "action api call class cmd custom data default demo do example exec execute fn foo bar baz"
        " func function general generic handle handler helper invoke it item main manage method misc my new"
        " object op operation process run sample script service something stuff task temp test the thing"
        " things tmp tool tools untitled use util utils v version work wrapper",
    )
)
_VERB_ENDINGS = ("ing", "es", "s")  # a past begins no clause that says what a tool does
_TYPE_KEYS = ("type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const")
_DESCRIPTION_KEYS = (
    *("description", "enum", "const", "format", "pattern", "examples", "contentEncoding"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
)
_TEXTS = {
    "meaningless_name": "{name!r} does not say what the tool does.",
    "meaningless_name_advice": "Name the act and its object, such as search_user.",
    "no_purpose": "The purpose is missing.",
    "no_purpose_advice": "Say in one sentence what a call does.",
    "several_things": "The tool does more than one thing: {acts}.",
    "several_things_advice": "Make one tool of each, so that each has its own tier.",
    "no_limits": "Nothing says what the tool cannot do or when not to use it.",
    "no_limits_advice": "State limits in the purpose ('at most 10 rows') or fill avoid_when.",
    "parameter_without_type": "The parameter {name!r} has no type.",
    "parameter_without_type_advice": 'Give it one, such as "type": "string".',
    "parameter_without_description": "The parameter {name!r} says nothing about its meaning or format.",
    "parameter_without_description_advice": "Describe it in a line, with an example of its format.",
    "required_not_stated": "Nothing says which parameters are required.",
    "required_not_stated_advice": 'List them in "required" (an empty list if none is), or give the others a default.',
    "no_tier": "The tier is not declared; every call counts as destructive and as sending data out: a person is asked.",
    "no_tier_advice": "Declare read, draft, write or destructive.",
    "no_tier_likely": "The tier is not declared; every call counts as destructive and as sending data out: a person is"
    " asked. Its words suggest {tier}.",
    "no_tier_likely_advice": "Make sure that this is all that a call can do, and declare: tier: {tier}",
    "tier_contradicts_name": "The tier is read, but the tool seems to change something: {verb}.",
    "tier_contradicts_name_advice": "Declare write or destructive, or rename the tool.",
    "no_egress": "Nothing says whether a call sends data out of the operator's reach; it counts as one that does.",
    "no_egress_advice": "Declare egress: true, false, or the arguments that send data out.",
    "no_role": "The parameter {name!r} has no role; it counts as what the call acts on.",
    "no_role_advice": "Declare target, ref:KIND, value, content or minor.",
    "no_rollback": "Nothing says how a call is undone, or that it cannot be.",
    "no_rollback_advice": "Name the tool that undoes it in compensation, or declare reversible: false.",
    "no_errors": "No error is listed.",
    "no_errors_advice": "List the codes that the tool reports, whether they may pass, and what to do instead.",
    "example_does_not_fit": "The example {what}.",
    "example_does_not_fit_advice": "An example must be a call that works.",
}
"""What is wrong, and what to do, by the code of the finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to improve in a card."""

    code: str
    """Stable."""
    field: str
    """The field of the card."""
    message: str
    """What is wrong."""
    advice: str
    """What to do."""


def _finding(text: str = "", *, code: str, field: str, **values: str) -> Finding:
    """A finding with the text of its code, or with another one."""
    message, advice = _TEXTS[text or code].format(**values), _TEXTS[f"{text or code}_advice"].format(**values)
    return Finding(code=code, field=field, message=message, advice=advice)


def lint(card: ToolCard) -> tuple[Finding, ...]:
    """What is wrong with a card, in the order of its fields; nothing for a good one."""
    return (
        *_check_name(card),
        *_check_purpose(card),
        *_check_parameters(card),
        *_check_tier(card),
        *_check_effect(card),
        *_check_errors(card),
        *_check_examples(card),
    )


def _check_name(card: ToolCard) -> Iterator[Finding]:
    words = name_words(card.name)
    is_foreign = not words and any(char.isalpha() for char in card.name)  # such as a Chinese name
    if not is_foreign and all(word in _EMPTY_WORDS or word.isdigit() or len(word) == 1 for word in words):
        yield _finding(code="meaningless_name", field="name", name=card.name)


def _check_purpose(card: ToolCard) -> Iterator[Finding]:
    text = card.purpose.strip()
    if len(text) < 4 or _UNWRITTEN.fullmatch(text):
        yield _finding(code="no_purpose", field="purpose")
        return
    acts = _acts(text) | _acts_in_name(card.name)
    if len(set(acts.values())) > 1:
        yield _finding(code="several_things", field="purpose", acts=", ".join(acts))
    if not card.avoid_when.strip() and not _LIMIT.search(text):
        yield _finding(code="no_limits", field="avoid_when")


def _check_parameters(card: ToolCard) -> Iterator[Finding]:
    parameters = {name: rule if isinstance(rule, Mapping) else {} for name, rule in card.parameters.items()}
    for name, rule in parameters.items():
        if not any(key in rule for key in _TYPE_KEYS):
            yield _finding(code="parameter_without_type", field=f"input_schema.{name}", name=name)
        if not any(_says_something(name, key, rule[key]) for key in _DESCRIPTION_KEYS if key in rule):
            yield _finding(code="parameter_without_description", field=f"input_schema.{name}", name=name)
    if "required" not in card.input_schema and any("default" not in rule for rule in parameters.values()):
        yield _finding(code="required_not_stated", field="input_schema.required")


def _says_something(name: str, key: str, value: Any) -> bool:
    """Whether a member of a rule says more of a parameter than its name, as an empty description does not."""
    if key != "description" or not isinstance(value, str):
        return True
    return value.strip() not in ("", name) and _UNWRITTEN.fullmatch(value) is None


def _check_tier(card: ToolCard) -> Iterator[Finding]:
    if card.tier is None:
        tier = likely_tier(card)
        text = "no_tier" if tier is None else "no_tier_likely"
        yield _finding(text, code="no_tier", field="tier", tier=tier or "")
        return
    changing = [verb for verb, group in _leading_acts(card).items() if group in _CHANGING_GROUPS]
    if card.tier == "read" and changing:
        yield _finding(code="tier_contradicts_name", field="tier", verb=changing[0])


def likely_tier(card: ToolCard) -> Tier | None:
    """The strictest tier that the verbs in the name of a tool and at the beginning of its purpose suggest.

    None if they suggest nothing. It is a proposal for a person who knows the tool, and no verdict rests on it.
    """
    opening = re.match(r"\s*([A-Za-z]+)", card.purpose)
    clauses = [part.split() for part in re.split(r"\b(?:and|or|then)\b", " ".join(name_words(card.name)))]
    clauses += [[opening[1].lower()]] if opening else []
    stems = [[stem(word, _TIER_OF_VERB, _VERB_ENDINGS) for word in words] for words in clauses]
    verbs = [next((word for word in words if word in _TIER_OF_VERB), "") for words in stems]  # the others are nouns
    tiers = [_TIER_OF_VERB[verb] for verb in verbs if verb]
    text = f"{card.name} {card.purpose.strip()[:12]}"
    tiers += [tier for verb, tier in _TIER_OF_CHINESE_VERB.items() if verb in text]
    return max(tiers, key=TIERS.index, default=None)


def _check_effect(card: ToolCard) -> Iterator[Finding]:
    """What a tool that changes something leaves open; anything not declared counts as the worst case."""
    if card.tier not in ("write", "destructive"):
        return
    if card.egress is None:
        yield _finding(code="no_egress", field="egress")
    for name in card.parameters:
        if name not in card.roles:
            yield _finding(code="no_role", field=f"roles.{name}", name=name)
    if card.compensation is None and card.reversible is None:
        yield _finding(code="no_rollback", field="compensation")


def _check_errors(card: ToolCard) -> Iterator[Finding]:
    if not card.errors:
        yield _finding(code="no_errors", field="errors")


def _check_examples(card: ToolCard) -> Iterator[Finding]:
    closed = card.input_schema.get("additionalProperties") is not True and bool(card.parameters)
    for index, example in enumerate(card.examples):
        missing = [name for name in card.required if name not in example.args]
        unknown = [name for name in example.args if closed and name not in card.parameters]
        if missing or unknown:
            what = f"leaves out {missing[0]!r}" if missing else f"has the unknown argument {unknown[0]!r}"
            yield _finding(code="example_does_not_fit", field=f"examples[{index}]", what=what)


def _acts(text: str) -> dict[str, str]:
    """The verbs that begin a clause and are an act of their own, each with its group."""
    acts: dict[str, str] = {}
    text = text.lower()
    is_base = False
    for match in _CLAUSE.finditer(text):
        verb, is_first = _verb_stem(match["verb"]), match.start() == 0
        group = _GROUP_OF_VERB.get(verb)
        if group is None or not (is_first or _is_act(text, match, verb, is_base=is_base)):
            continue
        if is_first:
            is_base = verb == match["verb"]
        if not (acts and group == "read" and _CLOSING.match(text, match.end())):
            acts[verb] = group
    for match in _CHINESE_CLAUSE.finditer(text):
        if not (acts and _CHINESE_CLOSING.match(text, match.start("verb"))):
            acts[match["verb"]] = _GROUP_OF_CHINESE_VERB[match["verb"]]
    if len(set(acts.values())) > 1:  # what is saved is what the other act gives
        acts = {verb: group for verb, group in acts.items() if verb not in _SAVING}
    return acts


def _is_act(text: str, match: re.Match[str], verb: str, *, is_base: bool) -> bool:
    """Whether a word in the middle of a text that may be a verb is one, and no noun in a list.

    `is_base`: the text begins with a verb such as "get"; then "transfers" without an object is no verb beside it.
    """
    if _has_object(text, match):
        return True
    is_plural = is_base and verb != match["verb"] and match["verb"].endswith("s")
    return verb not in _AMBIGUOUS and not is_plural and not _NOUN_ENDS.match(text, match.end())


def _has_object(text: str, match: re.Match[str]) -> bool:
    """True if a word is followed by an object, as a verb is."""
    return re.match(r"\s+(?:a|an|the|it|its|them|new|one|to|all)\b", text[match.end() :]) is not None


def _acts_in_name(name: str) -> dict[str, str]:
    words = name_words(name)
    if "and" not in words and "or" not in words:
        return {}
    return {word: _GROUP_OF_VERB[word] for word in words if word in _GROUP_OF_VERB}


def _leading_acts(card: ToolCard) -> Mapping[str, Any]:
    words, opening = name_words(card.name), re.match(r"\s*([A-Za-z]+)", card.purpose)
    verbs = (words[0] if len(words) > 1 else "", _verb_stem(opening[1].lower()) if opening else "")
    english = {verb: _GROUP_OF_VERB[verb] for verb in verbs if verb in _GROUP_OF_VERB and verb not in _AMBIGUOUS}
    chinese = {verb: group for verb, group in _GROUP_OF_CHINESE_VERB.items() if card.purpose.strip().startswith(verb)}
    return {**english, **chinese}


def _verb_stem(verb: str) -> str:
    return stem(verb, _GROUP_OF_VERB, _VERB_ENDINGS)
