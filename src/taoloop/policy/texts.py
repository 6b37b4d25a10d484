"""Why a verdict is what it is, in words for people, in English and Chinese."""

from __future__ import annotations

_TEXTS: dict[str, dict[str, str]] = {
    "en": {
        "read": "it only reads",
        "draft": "it only prepares a draft",
        "read_out": "it sends data out, to a place that stands neither in the task nor among the allowed hosts, after"
        " untrusted text was read",
        "read_out_known": "it reads at a place that the task or the operator named",
        "wanted": "the task calls for it, and what it acts on and its values stand in the task",
        "committed": "exactly this call was fixed before anything untrusted was read",
        "write": "{tool!r} is a {tier} tool: a person decides",
        "write_out": "{tool!r} is a {tier} tool that sends data out: a person decides",
        "destructive": "{tool!r} is a {tier} tool: a person decides",
        "undeclared": "{tool!r} declares no tier, so it counts as destructive: a person decides",
        "foreign_destructive": "it cannot be undone, the task does not call for it, and what it acts on does not"
        " stand in the task",
        "tainted": "the model has read untrusted text",
        "filled": "it takes values from untrusted output",
        "not_pinned": "the task does not call for {tool!r}",
        "strict": "the profile strict asks about every effect, also where the task calls for it",
        "headless": "nobody is there to be asked (profile headless)",
        "read-only": "the profile read-only lets nothing run that is not a read",
        "locked": "the profile locked lets nothing run that no rule of the operator allows",
        "autonomous": "the profile autonomous asks nobody",
        "approval_required": "each call of {tool!r} needs a person's yes",
        "operator_tier": "the operator allowed tier {tier!r} ahead of time",
        "granted": "a person allowed further calls of {tool!r} in this run",
        "rule": "the rule {title!r} says so",
        "FOREIGN": "only untrusted output has: {args}",
        "UNKNOWN": "no text of this run has: {args}",
        "LINKS": "links that no trusted text has, in: {args}",
        "broken_rule": "the rule {title!r} could not be judged ({error}), so the call is denied",
    },
    "zh": {
        "read": "只读取，不改变任何东西",
        "draft": "只准备草稿",
        "read_out": "在读过不可信文本之后，它会把数据发送到任务和许可主机之外的地方",
        "read_out_known": "它读取的是任务或运维者指明的地方",
        "wanted": "任务要求这样做，作用的对象和各个值都出自任务",
        "committed": "这一调用在读到任何不可信内容之前就已确定",
        "write": "{tool!r} 是 {tier} 级工具：由人决定",
        "write_out": "{tool!r} 是会向外发送数据的 {tier} 级工具：由人决定",
        "destructive": "{tool!r} 是 {tier} 级工具：由人决定",
        "undeclared": "{tool!r} 没有声明等级，按 destructive 处理：由人决定",
        "foreign_destructive": "它不可撤销，任务没有要求，作用的对象也不出自任务",
        "tainted": "模型已经读过不可信文本",
        "filled": "它使用了来自不可信输出的值",
        "not_pinned": "任务没有要求使用 {tool!r}",
        "strict": "strict 模式对每个副作用都要询问，即使任务要求这样做",
        "headless": "没有人可以询问（headless 模式）",
        "read-only": "read-only 模式只允许读取",
        "locked": "locked 模式只允许运维者规则放行的调用",
        "autonomous": "autonomous 模式不询问任何人",
        "approval_required": "{tool!r} 的每次调用都须由人同意",
        "operator_tier": "运维者已预先允许 {tier!r} 级",
        "granted": "有人已允许本次运行中继续调用 {tool!r}",
        "rule": "规则 {title!r} 如此规定",
        "FOREIGN": "{args} 只出现在不可信的输出中",
        "UNKNOWN": "{args} 在本次运行的任何文本中都找不到",
        "LINKS": "{args} 含有可信文本中没有的链接",
        "broken_rule": "规则 {title!r} 无法判断（{error}），因此拒绝",
    },
}


def reason(language: str, name: str, **values: object) -> str:
    """One reason in the run's language; English where there is no other."""
    return _TEXTS.get(language, _TEXTS["en"])[name].format(**values)


def translated(text: str, language: str, **values: object) -> str:
    """A reason as another language has it, such as that of a terminal; as it is where it is none of ours."""
    for texts in _TEXTS.values():
        for name, template in texts.items():
            try:
                known = template.format(**values) == text
            except KeyError:  # it has more in it than we are given
                continue
            if known:
                return reason(language, name, **values)
    return text
