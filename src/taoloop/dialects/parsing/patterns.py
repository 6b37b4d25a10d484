"""The patterns of a reply: labels of its sections, events at which the parser stops, what may enclose a value."""

from __future__ import annotations

import re
from typing import Literal

from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.json_repair import INVISIBLE

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

_STUMP = lazy_pattern(r"\n[ \t]*[>#*_`-]{0,4}[ \t]{0,2}(?P<stump>[a-z]{3,11}|[观觀][察测]?)[ \t]*\Z", re.IGNORECASE)

END_TOKENS = (
    r"<[|｜](?:im_end|eot_id|eom_id|end|return|endoftext|end_of_text|end▁of▁sentence|end_of_sentence|end_of_turn|eot|eos"
    r"|endofturn|END_OF_TURN_TOKEN|END_RESPONSE|im_sep|call)[|｜]>"
    r"|</s>|<eos>|<end_of_turn>|<eot_id>|<eod>|<turn\|>|\[EOS\]|<end_of_utterance>|<pad>|<end_(?:code|action)>"
)
END_TOKEN = lazy_pattern(rf"(?:{END_TOKENS})(?=\s*+(?:\Z|\n|<))")
"""A token that ends a turn: what follows it is another turn."""

CALL_NAMESPACE = r"(?:[|｜]?DSML[|｜]|[a-z]{2,12}[:_])?"
TOOL_WORD = r"(?:tool|function|action|plugin|python)"
OPENER = (
    rf"<{CALL_NAMESPACE}(?:tool_?calls?|function_?calls?|tools|tool_use|start_function_call|action_call)>"
    rf"|<{CALL_NAMESPACE}(?:function|invoke|tool_call|function_call|tool|call)(?:=|\s+(?:name|tool)\s*=)"
    rf"|<[|｜][/]?(?:START_)?{TOOL_WORD}[\w▁ ]{{0,30}}[|｜]?>|<{TOOL_WORD}[\w▁]{{0,30}}[|｜]>"
    r"|\[/?TOOL_CALLS?\]|\[/?tool_calls?\]|\bfunctools(?=\[)"
    r"|(?:<\|start\|>(?:assistant)?\s{0,3})?<\|channel\|>\s{0,3}commentary\s{1,3}to="
    r"|<\|start\|>(?:assistant)?\s{0,3}to=|<\|tools_prefix\|>|>>>(?=[\w.]{1,100}\s{0,2}\n\s{0,4}\{)"
)
"""What begins a call that leaked; without groups, for use in other patterns. Ignores case."""

FOREIGN_TURN = (  # a tag or a token that opens another party's turn
    r"<(?:observation|observe|tool_response|tool_result|tool_output|function_results?|function_response|result|output)\b[^<>\n]{0,80}>"
    r"|<[|｜](?:observation|tool▁outputs?▁begin|tool_response|tool_output|user|ipython|tool_result)[^<>|｜\n]{0,20}[|｜]?>"
    r"|<[|｜]im_start[|｜]>\s{0,2}(?:user|tool|system)|<\|start_header_id\|>(?:user|tool|ipython)|<start_of_turn>(?:user|tool)"
    r"|<\|start\|>(?:functions|user|tool)|\[(?:INST|TOOL_RESULTS?|OBSERVATION)\]|<｜User｜>"
)
MAX_PARTS = 5_000
"""Labels, objects, fences and braces of a reply that are looked at, which bounds the time for any reply."""

MAX_PROSE = 4_000
"""Characters of prose that may follow a decision."""

MAX_OBJECTS = 100
"""Objects in an answer that are looked at."""

BEGINS = r"(?=<[|｜]?[\w/]|\[/?\w|functools|>>>)"
"""What every tag and token begins with: spares trying them all."""

EVENT = lazy_pattern(
    rf"(?P<label>{LABEL.pattern})"
    rf"|{BEGINS}(?:(?P<foreign>{FOREIGN_TURN}|{END_TOKEN.pattern})|(?P<leak>{OPENER}))"
    rf"|(?P<fence>^[ \t]*+(?:>[ \t]?)?(?:```|~~~)[^\n`]*$)|(?P<brace>[{{｛])",
    re.IGNORECASE | re.MULTILINE,
)
FENCE_LINE = lazy_pattern(r"^[ \t>]*+(?:```|~~~)", re.MULTILINE)
WHITESPACE = lazy_pattern(
    rf"[\s{INVISIBLE}]*+(?:[*_]{{2}}[\s{INVISIBLE}]*+)?(?:(?:(?:~~~|`{{3,5}})(?:\w[\w+.-]{{0,20}}(?=[\s{{]|\[\s*+[{{\"]))?|`{{1,2}})[\s{INVISIBLE}]*+(?:json\s++)?)?"
)
ANNOUNCED = lazy_pattern(
    r"(?P<word>[^\s\"'“”{}\[\]()<>`:：=][^\s\"“”{}\[\]()<>`:：=]*+)"
    r"(?:[ \t]++[^\s\"“”{}\[\]()<>`:：=]++){0,11}[ \t]{0,3}[:：](?=\s{0,8}[`{｛])"
)
"""A few words and a colon before an object or a code fence."""
WRAPPED_JSON = lazy_pattern(
    r"(?:\(|=|\$?JSON\b:?|<(?:json|action_input|input|args|arguments|parameters)>)\s{0,8}(?=[{｛])", re.IGNORECASE
)
"""What may enclose an object in place of a fence."""
OBJECT = lazy_pattern(rf"[\"'“]?[\[［]?[\s{INVISIBLE}]*+[{{｛]")
LANGUAGE = lazy_pattern(rf"(?P<word>json\w?)[ \t]*+:?[ \t]*+\n[\s{INVISIBLE}]*+(?=[\"'“\[［{{｛])", re.IGNORECASE)
"""The language of a code fence on a line of its own, where the fence got lost."""
CLOSING = lazy_pattern(rf"[\s{INVISIBLE}`~*;；。.]*+")
QUESTION_LABELS = frozenset(
    {
        "question",
        "next question",
        "new question",
        "follow up question",
        "follow-up question",
        "问题",
        "新问题",
        "下一个问题",
    }
)
PLAIN_ASKED = lazy_pattern(r"^\W*(?:question|问题|問題)\W*$", re.IGNORECASE)
"""The label of the task, as a model may repeat it at the beginning."""
AGREEMENT = lazy_pattern(
    r"\s*(?:yes|yeah|yep|ok|okay|sure|fine|please do|proceed|confirm(?:ed)?|approved?|agreed|granted)\b|.*\bgo ahead\b"
    r"|\s*(?:好|可以|是的|确认|同意|批准|没问题|行[,，。])",
    re.IGNORECASE,
)
"""The words of a person who agrees: they are not the task, so they do not repeat it."""
OWN_OUTPUT = lazy_pattern(r"respon|output|returns?\b|ausgabe|salida|sortie|输出|响应|返回|回应", re.IGNORECASE)
TOOL_ROLE = lazy_pattern(r"\W*(?:tool|function|工具|函数)\W*", re.IGNORECASE)
LINE_BRACE = lazy_pattern(r"^[ \t>]*+\[?[ \t]*+\{", re.MULTILINE)
LINE_HEAD = lazy_pattern(r"[^:：(（\[{｛\n]*")
CALL = lazy_pattern(r"(?<![\w.])([^\W\d][\w.]{0,120})[ \t]{0,2}[(\[{]")
SECOND_THOUGHT = lazy_pattern(
    r"\b(?:actually|instead|correction|scratch that|sorry|oops|on second thoughts?|hold on|hmm+|my mistake|never ?mind"
    r"|i meant|i mean|should (?:be|have been)|do not|don't|rather|ignore (?:that|this|the)|forget (?:that|it)|revised?"
    r"|but first|unless|please confirm|if you (?:confirm|agree|approve)|(?:once|after|until|when) you|before i"
    r"|not yet)\b"
    r"|(?<!please )\bwait\b[ \t]*(?:[,.!:;…—-]|$)|\bno[,.]"
    r"|等等|等一下|不对|更正|应该是|抱歉|改成|改为|而不是|错了|(?<!请)稍等|不要|取消|修正|确认后"
    r"|\b(?:antwort|réponse|respuesta|resposta|risposta|antwoord|odpowiedź|ответ)[ \t]{0,3}[:：]",
    re.IGNORECASE,
)

CONDITION = lazy_pattern(
    r"\b(?:if|provided|assuming|in case|but not|except)\b|\b(?:only|just) (?:when|after|with)\b"
    r"|如果|若|假如|除非|仅当|前提|只有(?:在|当)|的话",
    re.IGNORECASE,
)
"""Words behind a call that make it conditional: a tool that changes something knows no conditions."""

ANNOUNCES = lazy_pattern(
    r"\b(?:i(?:['’]ll| will| shall|['’]m going to| am going to| need to| have to| should| can now)|let me"
    r"|let['’]s|allow me"
    r"|(?:first|next|now),? i)\b|我(?:来|将|会|先|需要|要|这就)|让我|接下来|下一步",
    re.IGNORECASE,
)
"""Words in which the model says what it is about to do."""


def strip_partial_label(text: str) -> str:
    """`text` without the stump of an observation label at its very end, as a stop sequence may leave it."""
    last = text.rfind("\n")
    match = _STUMP.match(text, last) if last >= 0 and len(text) - last < 40 else None
    if match is None:
        return text
    stump = match["stump"].casefold()
    return text[:last].rstrip() if "observation".startswith(stump) or stump[0] in "观觀" else text


def label_kind(match: re.Match[str]) -> Kind:
    """Which kind of section a label opens."""
    return next((kind for kind in LABEL_PATTERNS if match[kind] is not None), "preamble")
