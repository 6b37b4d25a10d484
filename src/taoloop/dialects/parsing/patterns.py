"""The marks at which the parser of a reply stops, and what may enclose a value."""

from __future__ import annotations

import re

from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.cleanup import END_TOKEN
from taoloop.dialects.parsing.json_repair import INVISIBLE
from taoloop.dialects.parsing.labels import LABEL
from taoloop.dialects.parsing.leaked_calls import OPENER

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
    rf"[\s{INVISIBLE}]*+(?:[*_]{{2}}[\s{INVISIBLE}]*+)?(?:(?:~~~|`{{1,5}})(?:\w[\w+.-]{{0,20}}(?=[\s{{\[]))?[\s{INVISIBLE}]*+(?:json\s++)?)?"
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
    (
        "question",
        *(f"{word} question" for word in ("next", "new", "follow up", "follow-up")),
        "问题",
        "新问题",
        "下一个问题",
    )
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
