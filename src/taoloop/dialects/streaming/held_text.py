"""The text of an answer that is still being written, given on as soon as nothing can take it back.

Held back are the beginnings of what may end an answer (a label at the beginning of a line, a tag or a control token),
and what may be trimmed off its edges. Where one of those is found, nothing more is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

from taoloop.dialects.parsing.cleanup import EDGE_CHARS, strip_end_tokens, strip_thinking
from taoloop.dialects.parsing.json_repair import INVISIBLE
from taoloop.dialects.parsing.labels import LABEL
from taoloop.dialects.parsing.parse_error import ReplyParseError
from taoloop.dialects.parsing.patterns import EVENT

_MARKS = re.compile(
    r"[\s>#+•\-*_`\[【(（「<✿\d.)、\ufe0f\u2190-\u21ff\u25a0-\u27be\u2b00-\u2bff\U0001f300-\U0001faff]*"
)
"""Bullets, quotes, headings, numbers, brackets and signs in front of the word of a label."""
_MOST_MARKS = 60
_LONGEST_LABEL = 120
_BETWEEN = re.compile(r"[ \t_\-'’#\d*`\]】)）」>✿]*")
_ASIDE = re.compile(r"(?:[(（][^()\n]{0,60}|\[[^\[\]\n]{0,60})(?:[)）\]][\s\d#(（*_`\]】)）」>✿]{0,16})?")
_FROM = re.compile(r"from(?:\s[^\n:：]{0,100})?")
_OBSERVED = re.compile(r"ob\w{0,20}")
_HAN = re.compile(
    "[思考想法路維推理行动作動工具函数操输入参数的輸參數观觀察测測到结果結返回执搜索查询调用响应出值名称最终終答案复覆論"
    "论新下一个问题用户确认消息提者使問題観관찰결과ユーザ사용자]+"
)


def _split(*lines: str) -> tuple[str, ...]:
    return tuple(word for line in lines for word in line.split())


_WORDS = _split(
    "thought thoughts thinking reasoning action actions tool function input inputs args argument arguments param",
    "params parameter parameters final answer question next new follow user human result results api search",
    "execution command environment call return beobachtung beobachtungen osservazione osservazioni waarneming",
    "наблюдение наблюдения наблюдени спостереження gözlem gozlem quan pozorování havainto megfigyelés παρατήρηση",
    "pengamatan iagttagelse ملاحظة الملاحظة תצפית अवलोकन การสังเกต utilisateur benutzer nutzer usuario usuaria",
    "usuário utente gebruiker пользователь użytkownik kullanici",
)
_LATER = _WORDS + _split(
    "name response responses reply output outputs returns returned says say s confirmation message turn up sát from"
)
_FIRST_BEGINNINGS = frozenset(word[:end] for word in _WORDS for end in range(1, len(word) + 1))
_LATER_BEGINNINGS = frozenset(word[:end] for word in _LATER for end in range(1, len(word) + 1))
_NO_DOTS = str.maketrans("İı", "ii")  # a label is found by any case of its letters
_UNSEEN = re.compile(f"[{INVISIBLE}]")
_BLANKS = re.compile(r"[^\S\n]")

_PLACE = re.compile(
    r"(?:<[^<>/=\"'\n]{0,60}>?|\{{1,2}[^{}\n\"':]{0,60}\}{0,2}|\$\{?[^{}\n ]{0,60}\}?|\[{1,2}[^\[\]\n]{0,60}\]{0,2}"
    r"|%(?:\((?:\w{0,40}(?:\)s?)?)?)?|[A-Z0-9_]{1,46}|\.+|…+)\s*"
)
_LONGEST_PLACE = 80


def _phrases(*parts: str) -> list[str]:
    return ["".join(chosen) for chosen in product(*(part.split("|") for part in parts))]


_TEMPLATES = (
    *_phrases("|the ", "input ", "to|for|of", " the ", "action|tool"),
    *_phrases("its|the", " argument", "|s", " as one json object"),
    *_phrases("|your |the ", "final answer to the ", "|original ", "|input ", "question|task"),
    *_phrases("your|the", " | final ", "answer", "| here| to the task| goes here"),
    *("answer here", "action input", "string", "str", "none", "null", "n/a"),
    *_phrases("行动|动作|工具", "|的", "输入"),
    *_phrases("|对", "原始", "|输入", "问题的最终答案"),
    *_phrases("|你的|对任务的", "|最终", "答案|回答"),
)


def normalise_line(line: str) -> str:
    """A line as the reader takes it when it looks for a label: nothing invisible, and every blank is a blank."""
    return line if line.isascii() else _BLANKS.sub(" ", _UNSEEN.sub("", line))


def may_be_label(line: str) -> bool:
    """Whether a line that goes on may turn out to begin with a label."""
    line = line.translate(_NO_DOTS).casefold()
    marks = _MARKS.match(line)
    start = marks.end() if marks is not None else 0
    if start > _MOST_MARKS or len(line) - start > _LONGEST_LABEL:
        return False
    return _goes_on(line[start:], first=True)


def _goes_on(body: str, *, first: bool = False) -> bool:
    if not body or body in (_FIRST_BEGINNINGS if first else _LATER_BEGINNINGS):
        return True
    if not first and (_ASIDE.fullmatch(body) or _FROM.fullmatch(body)):
        return True
    for pattern in (_OBSERVED, _HAN):
        if (run := pattern.match(body)) is not None and _behind(body, run.end()):
            return True
    return any(body.startswith(word) and _behind(body, len(word)) for word in (_WORDS if first else _LATER))


def _behind(body: str, position: int) -> bool:
    between = _BETWEEN.match(body, position)
    return _goes_on(body[between.end() if between is not None else position :])


def may_be_placeholder(text: str) -> bool:
    """Whether an answer that goes on may turn out to be none: a placeholder, a phrase of the prompt, `None`."""
    if len(text) > _LONGEST_PLACE:
        return False
    if _PLACE.fullmatch(text) is not None:
        return True
    plain = text.casefold()
    return _may_be_template(plain) or (plain.startswith("the ") and _may_be_template(plain[4:]))


def _may_be_template(plain: str) -> bool:
    bare = plain.rstrip().rstrip(".。").rstrip()
    return any(
        phrase.startswith(plain) or phrase == bare or (phrase.endswith("object") and plain.startswith(phrase))
        for phrase in _TEMPLATES
    )


Opening = Callable[[str], bool | None]
"""What the beginning of an answer says of all of it: True: go on; False: give nothing; None: it is too early to say."""

_SIGN = r"[<\[>✿◁]|functools\[|\bf(?:u(?:n(?:c(?:t(?:o(?:o(?:ls?)?)?)?)?)?)?)?\Z"
_IN_LINES = re.compile(rf"\n|{_SIGN}", re.IGNORECASE)
_IN_ONE = re.compile(r"[<\[◁]")
_TAG_ENDS = re.compile(r"[<>\n]")
_LONGEST_TAG = 130
_TOKENS = ("inst]", "tool_calls]", "tool_call]", "tool_results]", "tool_result]", "observation]", "think]", "eos]")
_COLONS = re.compile("[:：】>]")
_TRIMMED = EDGE_CHARS + "\x1c\x1d\x1e\x1f\x85\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_TRIMMED += "\u2028\u2029\u202f\u205f*"
_MOST_BLANKS = 10_000
_LABELLED = 80  # so much of a line with a label may be written anew by the reader
_STUMP = re.compile(r"[\s>#*_`-]*(?:ob[a-z]{1,9}|[观觀][察测]?)\s*[<\[]", re.IGNORECASE)
"""The stump of a label at the end of a reply: it is dropped, also before the tags and tokens that are."""
_HOLD, _STOP = -1, -2


class HeldBackText:
    """The answer in a text. `over`: nothing more will be given; `at`: the sign or label that ended it.

    `lines`: labels end it, and `in_line` says that it begins behind something else on its line. `ends` says whether a
    label ends it, `opening` what its beginning says.
    """

    def __init__(
        self,
        *,
        lines: bool,
        opening: Opening,
        in_line: bool = True,
        ends: Callable[[re.Match[str]], bool] | None = None,
    ) -> None:
        self.over = False
        self.at = ""
        self._lines, self._signs = lines, _IN_LINES if lines else _IN_ONE
        self._head = lines and not in_line  # at the beginning of a line, where a label may stand
        self._opening, self._ends = opening, ends
        self._pending = ""  # may still become something else
        self._begun = False
        self._open = ""  # the beginning, as long as it is too early to give it
        self._tail: list[str] = []  # would be trimmed if nothing followed

    def feed(self, text: str) -> str:
        """The next piece that is certain to be in the answer."""
        return "" if self.over else self._edge(self._certain(text))

    def _certain(self, text: str) -> str:
        """What is neither a sign nor a label, whatever comes."""
        text, position = self._pending + text, 0
        given: list[str] = []
        self._pending = ""
        while True:
            if self._head and (reach := self._judge(text, position)) < 0:
                break
            sign = self._signs.search(text, position)
            if sign is None:
                return "".join([*given, text[position:]]) if given else text[position:]
            start = sign.start()
            given.append(text[position:start])
            position = start
            reach = start + 1 if text[start] == "\n" else self._mark(text, start)
            if reach < 0:
                break
            self._head = text[start] == "\n"
            given.append(text[start:reach])
            position = reach
        if reach == _STOP:
            self.over = True
        else:
            self._pending = text[position:]
        return "".join(given)

    def _judge(self, text: str, start: int) -> int:
        """Whether a line begins with a label: hold it, stop before it, or go on."""
        end = text.find("\n", start)
        line = normalise_line(text[start:] if end < 0 else text[start:end])
        label = LABEL.match(line if end >= 0 else f"{line}\0") if end >= 0 or _COLONS.search(line) else None
        if label is None:
            if _STUMP.match(line if end < 0 else f"{line}<"):
                return self._stop(line)
            if end < 0 and may_be_label(line):
                return _HOLD
        elif self._ends is None or self._ends(label):
            return self._stop(label.group())
        elif end < 0 and len(line) < _LABELLED:
            return _HOLD
        elif line[:_LABELLED] != text[start : start + min(len(line), _LABELLED)]:
            return self._stop(line)  # what is invisible there is taken off, and blanks with it
        self._head = False
        return start

    def _mark(self, text: str, start: int) -> int:
        """Behind a sign that means nothing, or whether to hold it or to stop before it."""
        sign = text[start]
        if sign == "<":
            return self._tag(text, start)
        if sign == ">":
            run = text[start : start + 4]
            if run in (">", ">>", ">>>"):
                return _HOLD
            return self._stop(run) if run.startswith(">>>") and (run[3].isalnum() or run[3] in "_.") else start + 1
        if sign == "[":
            rest = text[start + 1 : start + 16].casefold().removeprefix("/")
            if any(rest.startswith(token) for token in _TOKENS):
                return self._stop(text[start : start + 16])
            at_end = len(text) - start <= len(rest) + 2  # the bracket and perhaps a slash
            return _HOLD if at_end and any(token.startswith(rest) for token in _TOKENS) else start + 1
        if sign in "fF":
            return self._stop("functools[") if text[start : start + 10].endswith("[") else _HOLD
        return self._stop(sign)

    def _tag(self, text: str, start: int) -> int:
        following = text[start + 1 : start + 2]
        if following and following in "|｜":
            return self._stop(text[start : start + 30])
        if following and not (following.isalnum() or following in "_/"):
            return start + 1
        end = _TAG_ENDS.search(text, start + 1, start + _LONGEST_TAG)
        if end is None and len(text) - start < _LONGEST_TAG:
            return _HOLD
        reach = start + 1 if end is None else end.end() if end.group() == ">" else end.start()
        tag = text[start : reach if end is not None else start + _LONGEST_TAG]
        return self._stop(tag) if is_mark(tag) else reach

    def _stop(self, at: str) -> int:
        self.at = at
        return _STOP

    def _edge(self, text: str) -> str:
        """`text` without what may be trimmed, once its beginning is clear."""
        if not self._begun:
            self._open += text
            text = self._open.lstrip(EDGE_CHARS)
            goes_on = self._opening(text) if text else None
            if goes_on is False or len(self._open) > _MOST_BLANKS:
                self.over = True
            if not goes_on:
                return ""
            self._begun, self._open = True, ""
        kept = text.rstrip(_TRIMMED)
        if not kept:
            if text:
                self._tail.append(text)
            return ""
        given = "".join([*self._tail, kept]) if self._tail else kept
        self._tail = [text[len(kept) :]] if len(kept) < len(text) else []
        return given


def is_mark(tag: str) -> bool:
    """Whether a tag means something to the reader: thinking, a turn, a call, the end of an answer."""
    return (
        strip_end_tokens(tag) != tag
        or EVENT.match(tag) is not None
        or tag.casefold().startswith(("<start_of_turn", "<s>", "<bos>"))
        or opens_thinking(tag)
        or closes_thinking(tag)
    )


def opens_thinking(tag: str) -> bool:
    """Whether a tag opens a block of thinking."""
    try:
        strip_thinking(tag)
    except ReplyParseError:
        return True
    return False


def closes_thinking(tag: str) -> bool:
    """Whether a tag closes a block of thinking."""
    try:
        return "x" not in strip_thinking(f"x\n{tag}\n")
    except ReplyParseError:
        return False
