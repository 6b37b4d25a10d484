"""What the beginning of a line or of an answer may still become: asked of a reply that is still being written.

Both questions are answered generously: yes where the reader of the whole reply might see a label, or no answer at all.
"""

from __future__ import annotations

import re
from itertools import product

from taoloop.dialects.loose import INVISIBLE

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


def seen(line: str) -> str:
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


def may_be_nothing(text: str) -> bool:
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
