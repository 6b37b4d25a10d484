"""Why a verdict is what it is, in words for people: a code for each reason, and its text in English and Chinese."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from taoloop.core.events import Source
from taoloop.core.text import TextCatalog

TEXTS = TextCatalog(
    en={
        "read": "it only reads",
        "draft": "it only prepares a draft",
        "read_out": "it sends data to a destination that is neither in the task nor an allowed host, after untrusted"
        " text was read",
        "read_out_known": "it reads from a destination that the task or the operator named",
        "wanted": "the task asks for this call and contains its target and values",
        "committed": "exactly this call was fixed before any untrusted text was read",
        "write": "{tool!r} is a {tier} tool and needs a person's approval",
        "write_out": "{tool!r} is a {tier} tool that sends data out and needs a person's approval",
        "destructive": "{tool!r} is a {tier} tool and needs a person's approval",
        "undeclared": "{tool!r} declares no tier, counts as destructive and needs a person's approval",
        "foreign_destructive": "it cannot be undone, the task does not ask for it, and its target does not appear in"
        " the task",
        "tainted": "the model has read untrusted text",
        "filled": "it takes values from untrusted output",
        "not_pinned": "the task does not ask for {tool!r}",
        "strict": "the profile strict asks about every effect, even if the task asks for it",
        "headless": "nobody can be asked (profile headless)",
        "read-only": "the profile read-only allows only reads",
        "locked": "the profile locked allows only what a rule of the operator allows",
        "autonomous": "the profile autonomous asks nobody",
        "approval_required": "every call of {tool!r} needs a person's approval",
        "operator_tier": "the operator approved the tier {tier!r} in advance",
        "granted": "a person approved further calls of {tool!r} in this run",
        "rule": "the rule {title!r} applies",
        "FOREIGN": "found only in untrusted output: {args}",
        "UNKNOWN": "found in no text of this run: {args}",
        "LINKS": "contains links that no trusted text contains: {args}",
        "broken_rule": "the rule {title!r} could not be evaluated ({error}), so the call is denied",
        # rules that no call could meet
        "no_trusted_tool": "The policy's {field} name {pattern!r}, but the agent has no such tool.",
        "no_trusted_tool_hint": "Its tools are: {tools}.",
        "no_tool_of_rule": "The rule {rule!r} is about {tool!r}, but the agent has no such tool.",
        "no_tool_of_rule_hint": "Its tools are: {tools}.",
        "no_tier_of_rule": "The rule {rule!r} can never match: none of the tools that it names has the tier {tier}.",
        "no_tier_of_rule_hint": "They have: {tiers}.",
        "no_egress_of_rule": "The rule {rule!r} can never match: none of the tools that it names has egress {egress}.",
        "no_egress_of_rule_hint": "They are: {tools}.",
        "no_path_of_rule": "The rule {rule!r} can never match: no tool that it names takes a path.",
        "no_path_of_rule_hint": "{tool} takes: {arguments}.",
        "no_argument_of_rule": "The rule {rule!r} can never match: no tool that it names has the argument"
        " {argument!r}.",
        "no_argument_of_rule_hint": "{tool} takes: {arguments}.",
        "no_tools": "none",
        "no_arguments": "nothing",
    },
    zh={
        "read": "只读操作",
        "draft": "只准备草稿",
        "read_out": "读入不可信内容之后，它会把数据发送到任务未提及、也不在允许列表中的主机",
        "read_out_known": "读取的是任务或管理员指明的地址",
        "wanted": "任务要求执行此调用，操作对象和各参数值均来自任务",
        "committed": "此调用在读入任何不可信内容之前就已确定",
        "write": "{tool!r} 是 {tier} 级工具，需人工审批",
        "write_out": "{tool!r} 是会外发数据的 {tier} 级工具，需人工审批",
        "destructive": "{tool!r} 是 {tier} 级工具，需人工审批",
        "undeclared": "{tool!r} 未声明风险级别，按 destructive 处理，需人工审批",
        "foreign_destructive": "此操作不可撤销，任务没有要求，操作对象也未在任务中出现",
        "tainted": "模型已读入不可信内容",
        "filled": "参数值来自不可信的输出",
        "not_pinned": "任务没有要求使用 {tool!r}",
        "strict": "strict 模式下，即使任务有要求，任何副作用也需人工审批",
        "headless": "headless 模式下无法人工审批",
        "read-only": "read-only 模式只允许读取",
        "locked": "locked 模式只允许管理员规则放行的调用",
        "autonomous": "autonomous 模式不做人工审批",
        "approval_required": "{tool!r} 的每次调用都需人工审批",
        "operator_tier": "管理员已预先批准 {tier!r} 级",
        "granted": "本次运行中 {tool!r} 的后续调用已获人工批准",
        "rule": "适用规则 {title!r}",
        "FOREIGN": "{args} 只出现在不可信的输出中",
        "UNKNOWN": "{args} 未在本次运行的任何文本中出现",
        "LINKS": "{args} 含有可信文本中没有的链接",
        "broken_rule": "规则 {title!r} 执行出错（{error}），因此拒绝",
        "no_trusted_tool": "安全策略的 {field} 中有 {pattern!r}，但智能体没有这样的工具。",
        "no_trusted_tool_hint": "它的工具有：{tools}。",
        "no_tool_of_rule": "规则 {rule!r} 针对 {tool!r}，但智能体没有这样的工具。",
        "no_tool_of_rule_hint": "它的工具有：{tools}。",
        "no_tier_of_rule": "规则 {rule!r} 永远不会匹配：它所指的工具都不是 {tier} 级。",
        "no_tier_of_rule_hint": "它们的级别：{tiers}。",
        "no_egress_of_rule": "规则 {rule!r} 永远不会匹配：它所指的工具的 egress 都不是 {egress}。",
        "no_egress_of_rule_hint": "这些工具是：{tools}。",
        "no_path_of_rule": "规则 {rule!r} 永远不会匹配：它所指的工具都没有路径参数。",
        "no_path_of_rule_hint": "{tool} 的参数：{arguments}。",
        "no_argument_of_rule": "规则 {rule!r} 永远不会匹配：它所指的工具都没有参数 {argument!r}。",
        "no_argument_of_rule_hint": "{tool} 的参数：{arguments}。",
        "no_tools": "无",
        "no_arguments": "无",
    },
)

RULE_PREFIX = "rule:"
"""What stands before the title of a rule in the `rule` of a verdict."""


def reason_text(
    language: str, code: str, *, tool: str = "", tier: str | None = None, rule: str = "", sources: Iterable[Source] = ()
) -> str:
    """The text of a reason. All that it names is in the verdict and its call.

    `code` is the name of a text; `tool` and `tier` are those of the call, `rule` and `sources` those of the verdict.
    """
    args = ", ".join(source.arg for source in sources if source.badge == code and source.role != "minor")
    return TEXTS.text(
        language, code, tool=tool, tier=tier or "destructive", title=rule.removeprefix(RULE_PREFIX), args=args
    )


def translate_reasons(
    language: str,
    reasons: Sequence[str],
    codes: Sequence[str],
    *,
    tool: str,
    tier: str | None,
    rule: str,
    sources: Iterable[Source],
) -> tuple[str, ...]:
    """The reasons of a verdict in another language than the run's, such as that of a terminal.

    `codes` are those that are stored beside the reasons. A reason without one, in the operator's own words or from a
    run that stored none, stays as it is.
    """
    if len(codes) != len(reasons):
        return tuple(reasons)
    kept_sources = tuple(sources)
    return tuple(
        reason_text(language, code, tool=tool, tier=tier, rule=rule, sources=kept_sources) if code in TEXTS else text
        for text, code in zip(reasons, codes, strict=True)
    )
