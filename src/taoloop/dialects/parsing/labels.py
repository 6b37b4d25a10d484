"""The labels of a reply: the words that begin a thought, an action, an observation, and how they may be written."""

from __future__ import annotations

import re
from typing import Literal

from taoloop.core.text import lazy_pattern

Kind = Literal["preamble", "thought", "action", "input", "observation", "final", "turn"]

_GAP = r"[ \t_-]{0,3}"
LABEL_PATTERNS: dict[Kind, str] = {
    "thought": r"thoughts?|thinking|reasoning|思考|想法|思路|思維|推理",
    "input": (
        rf"(?:action|tool|function){_GAP}\d{{0,3}}{_GAP}(?:inputs?|args|arguments?|param(?:eter)?s?)"
        r"|inputs?|args|arguments|parameters|params"
        r"|(?:行动|动作|工具|操作|函数|行動|動作)的?(?:输入|参数|輸入|參數)|输入(?:参数)?|参数|輸入|參數"
    ),
    # in whatever language or spelling a model labels what it has not seen
    "observation": (
        r"(?:obs|obsv|obser\w{0,12}|ob\w{0,3}v\w{0,2}t\w{0,2}[oóã]\w{1,3}|beobachtung(?:en)?|osservazione"
        r"|osservazioni|waarneming"
        r"|наблюдение|наблюдения|спостереження|관찰(?: ?결과)?|観察(?:結果)?|観測(?:結果)?|gözlem|gozlem"
        r"|quan sát|pozorování"
        r"|havainto|megfigyelés|παρατήρηση|pengamatan|iagttagelse|(?:ال)?ملاحظة|תצפית|अवलोकन|การสังเกต|(?<=✿)results?"
        rf"|(?:(?:tool|function|action|api|search|execution|command|environment|call){_GAP}){{1,3}}"
        r"(?:results?|outputs?|responses?|returns?|returned)"
        r"|[观觀][察测測](?:到的?)?(?:结果|結果)?"
        r"|(?:工具|函数|动作|行动|执行|操作|搜索|查询|调用|工具调用)的?(?:返回)?(?:结果|输出|返回值|返回|响应|結果)"
        r"|返回(?:结果|值)|执行结果|工具返回)"
        r"(?:[ \t]{0,2}(?:\([^()\n\d][^()\n]{0,60}\)|\[[^\[\]\n]{1,60}\])"
        r"|[ \t]from[ \t](?:the[ \t])?(?:tool|api|\w{1,40}_\w{1,40}))?"
    ),
    "action": rf"(?:actions?|tool|function)(?:{_GAP}name)?|行动|动作|工具(?:名称?)?|操作|行動|動作",
    "final": (
        rf"final(?:{_GAP}(?:answer|response|reply|output|result))?|answer|(?<=✿)return"
        r"|最终(?:的)?(?:答案|回答|答复|结果|回复|结论|输出)|最終(?:答案|回答|答覆|結果)|答案|回答"
    ),
    "turn": (
        rf"(?:(?:next|new|follow{_GAP}up){_GAP})?question|(?:user|human)(?:'s)?(?:{_GAP}(?:response|reply|answer|says?"
        r"|confirmation|message|turn))?|(?:新|下一个)?问题|用户(?:回复|回答|确认|消息)?|提问|使用者|問題"
        r"|utilisateur|benutzer|nutzer|usuario|usuaria|usuário|utente|gebruiker|пользователь|użytkownik|kullanıcı|ユーザー?|사용자"
    ),
}
"""The words that open each kind of section, as patterns without the marks around them."""

_OPEN = r"(?P<bold>[*_`]{1,3}|[\[【(（「<✿])"
_CLOSE = r"[*_`\]】)）」>✿]{0,4}"

_SIGN = r"(?:[\u2190-\u21ff\u25a0-\u27be\u2b00-\u2bff\U0001f300-\U0001faff]\ufe0f?[ \t]{0,3})?"

LABEL = lazy_pattern(
    rf"^[ \t]*+(?P<head>[>#+•-][>#+• \t-]{{0,12}}|\*[ \t]{{1,4}})?{_SIGN}"
    r"(?:\d{1,3}[.)、][ \t]{0,4})?"
    rf"(?:{_OPEN}{_SIGN}(?:\d{{1,3}}[.)、][ \t]{{0,4}})?)?"
    rf"(?:{'|'.join(f'(?P<{kind}>{words})' for kind, words in LABEL_PATTERNS.items())})"
    rf"(?:[ \t_]?[#(（]?\d{{1,3}}[)）]?)?[ \t]{{0,4}}(?(bold){_CLOSE}(?:[ \t]{{1,4}}(?=[:：\n]|\Z))?)"
    rf"(?:[:：](?(bold){_CLOSE})|(?<=】)|(?<=[\w ]>)|(?(head)$|(?(bold)$|(?!))))",
    re.IGNORECASE | re.MULTILINE,
)
"""A label at the beginning of a line: any case, English or Chinese, ASCII or full-width colon; bold, in brackets,
bulleted, numbered or a heading (then also without a colon), or a tag. Every repetition is bounded: a search is linear.
A strict JSON string holds no line break, so no label is ever found inside of one."""

INLINE_LABEL = lazy_pattern(
    r"\b(?:observations?|action(?: input)?|final answer|thought)[ \t]{0,4}[:：]"
    r"|(?:观察|观测|行动|动作|最终答案|最终回答|思考)[ \t]{0,4}[:：]",
    re.IGNORECASE,
)
"""A label word with a colon anywhere: what a bare, unquoted input must not contain."""

INLINE_INPUT = lazy_pattern(
    r"[ \t,;，；|-]{1,4}[*_`]{0,3}(?:(?:action|tool)[ _]?(?:input|args|arguments)|(?:行动|动作|工具)(?:输入|参数))"
    r"[*_`]{0,3}[ \t]{0,4}[:：][*_`]{0,3}"
    r"|</[\w ]{1,20}>[ \t]{0,4}<(?:(?:tool|action)[ _]?input|input|args|arguments|parameters)>",
    re.IGNORECASE,
)
"""The label of the input on the line of its action."""

_RESULTS = (
    r"results?|outputs?|responses?|returns?|returned|stdout|结果|返回|输出|返回值|响应|回应|結果|輸出|回應|出力|결과|출력|응답"
    r"|résultats?|sortie|ergebnis(?:se)?|ausgabe|rückgabe|resultados?|salida|saída|risultat[io]|resultaat|uitvoer|wynik"
    r"|resultat|результат[ыа]?|sonuç|النتيجة|نتيجة"
)
RESULT = lazy_pattern(
    rf"^[ \t]*+[>#*_` \t\[(-]{{0,6}}(?:[\w.]{{1,40}}[ \t]){{0,2}}[\u4e00-\u9fff]{{0,6}}?(?:{_RESULTS})"
    r"[*_`\])]{0,4}[ \t]{0,3}[:：]",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that gives a result: behind an action it can only be an invented one; elsewhere it is text."""

BARE_RESULT = lazy_pattern(
    rf"^[ \t]*+[>#*_` \t\[(-]{{0,6}}(?:tool[ _]?)?(?:{_RESULTS})[*_`\])]{{0,4}}[ \t]{{0,3}}[:：]",
    re.IGNORECASE | re.MULTILINE,
)
"""The same without a word before it: in a thought as well."""

FINAL_AHEAD = lazy_pattern(
    r"final[ _]?(?:answer|response)[\"'”*_`]{0,4}\s{0,3}[:：\[(]"
    r"|最终(?:答案|回答|答复|回复|结论)[\"'”*_`]{0,4}\s{0,3}[:：】]"
    r"|[\"'“](?:action|type|tool|name|行动|动作)[\"'”]\s{0,3}[:：]\s{0,3}[\"'“](?:final|finish)"
    r"|[\"'“](?:final|answer)[\"'”]\s{0,3}[:：]|\bfinish[ \t]{0,2}[\[(]"
    r"|<(?:final|answer)|channel\|>\s{0,3}final|boxed\{",
    re.IGNORECASE,
)
"""Any sign that the model finishes: searched for after an invented observation."""

SPOKEN = lazy_pattern(
    r"^[ \t]*+[>#*_` \t\[(-]{0,6}(?:system|developer|operator|administrator|customer|client|approver|reviewer"
    r"|supervisor|manager|you|系统|管理员|客户|系統)"
    r"[*_`\])]{0,4}[ \t]{0,3}[:：]",
    re.IGNORECASE | re.MULTILINE,
)
"""A line before a decision with another party's words: no call of a tool that writes may rest on it."""

STUMP = lazy_pattern(r"\n[ \t]*[>#*_`-]{0,4}[ \t]{0,2}(?P<stump>[a-z]{3,11}|[观觀][察测]?)[ \t]*\Z", re.IGNORECASE)


def strip_partial_label(text: str) -> str:
    """`text` without the stump of an observation label at its very end, as a stop sequence may leave it."""
    last = text.rfind("\n")
    match = STUMP.match(text, last) if last >= 0 and len(text) - last < 40 else None
    if match is not None and "observation".startswith(match.group("stump").casefold().replace("觀", "观")):
        return text[:last].rstrip()
    if match is not None and match.group("stump")[0] in "观觀":
        return text[:last].rstrip()
    return text


def label_kind(match: re.Match[str]) -> Kind:
    """Which kind of section a label opens."""
    kind: Kind
    for kind in LABEL_PATTERNS:
        if match[kind] is not None:
            return kind
    return "preamble"
