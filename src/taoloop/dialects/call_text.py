"""Where the text of a native reply that is still being written begins a call: such text is never shown as an answer.

A model without the calls of the API writes them into its text, alone or behind words. Whether the text is a call is
known once the reply is complete; until then it waits from the first mark or letter that may begin the name of a tool.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from taoloop.dialects.parsing.json_decision import ROLES, plain_key

_LEAD = r"(?:```[\w+-]{0,20}\s*)?[`'\"*]*(?:[(\[][ \t]*){0,2}[`'\"*]*"
_START = re.compile(rf"(?<![\w`'\"(\[*]){_LEAD}(?=[^\W\d]|\Z)")
_OBJECT = re.compile(
    r"(?:^[ \t>]*|(?<=[\s:：。]))(?:```[\w+-]{0,20}\s*)?\[?\s*\{\s*"
    r"(?:[\"'](?P<key>[^\"'\n]{0,60})(?P<end>[\"'])?|(?P<open>\Z))",
    re.MULTILINE,
)
_FENCE_END = re.compile(r"(?:^|\n)[ \t]*`{1,3}[\w+-]{0,20}\s*\Z")
_SEPARATORS = re.compile(r"[\s_\-.\\]+")
_NAME_END = re.compile(r"[`*\"']*\s{0,4}(?:[:：]|,(?=\s{0,4}(?:\{|\Z)))?\s{0,4}(?:```(?:json)?\s*)?")
_BRACE = re.compile(r"(?:```[\w+-]{0,20}\s*)?\{")
_IN_OBJECT = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}]')
_CALL_KEYS = (
    ROLES["tool"] | ROLES["args"] | frozenset({"type", "toolcall", "toolcalls", "functioncall", "call", "calls"})
)
_WORD = re.compile(r"[\w.\\-]+")
_NAMESPACE = "functions"
_MAX_NAME_CHARS = 160


class CallText:
    """Finds the place in a text from where it may be a call, piece by piece as the text is written.

    Args:
        names: The names of the tools on offer.
    """

    def __init__(self, names: Sequence[str]) -> None:
        plain = {_plain(name) for name in names}
        self._names = plain | {_NAMESPACE + name for name in plain}
        self._prefixes = {name[:end] for name in self._names for end in range(len(name) + 1)}
        words = "|".join(r"(?:\\?[_\-. ])?".join(map(re.escape, name)) for name in sorted(plain, key=len, reverse=True))
        self._call = re.compile(
            rf"(?<![\w`'\"(\[*]){_LEAD}(?:{_NAMESPACE}\.)?(?:{words}){_NAME_END.pattern}[({{\[]", re.IGNORECASE
        )

        exact = "|".join(map(re.escape, sorted(filter(None, names), key=len, reverse=True)))
        self._tag = re.compile(rf"<(?:{exact})(?=[\s/>])" if exact else r"(?!)")
        self._mention = re.compile(rf"(?<![\w.-])(?:{exact})(?![\w-])" if exact else r"(?!)")
        self._is_mentioned = False  # a tool, in what came so far
        self._has_begun = False  # something was certain to be no call

    def find(self, text: str) -> tuple[int, bool]:
        """Up to where a text is certain to be no call, and whether a call begins there.

        The text begins where the last one stopped being certain, and has more behind it.
        """
        end, is_call = self._find(text)
        self._has_begun = self._has_begun or bool(text[:end].strip())
        return end, is_call

    def _find(self, text: str) -> tuple[int, bool]:
        calls = (
            [call.start() for call in (self._call.search(text), self._tag.search(text)) if call] if self._names else []
        )
        start, is_call = min(calls, default=len(text)), bool(calls)
        for match in _OBJECT.finditer(text, 0, start):
            key = plain_key(match["key"] or "")
            is_open = match["end"] is None and match.end() == len(text)
            if is_open or (match["end"] and (key in _CALL_KEYS or key in self._names)):
                return match.start(), not is_open
        if is_call:
            return start, True
        return min(self._find_open_end(text), self._find_arguments(text)), False

    def _find_arguments(self, text: str) -> int:
        """Where the arguments of a call may begin: behind the name of a tool, and with nothing behind them.

        They are an object somewhere behind it, or the rest of the line where the name begins the text.
        """
        mention = self._mention.search(text)
        if mention is None and not self._is_mentioned:
            return len(text)
        self._is_mentioned = True
        if mention is not None and not self._has_begun and self._is_named_line(text, mention):
            return 0
        for brace in _BRACE.finditer(text, 0 if mention is None else mention.end()):
            depth = 0
            for mark in _IN_OBJECT.finditer(text, brace.end() - 1):
                depth += {"{": 1, "}": -1}.get(mark.group(), 0)
                if not depth:
                    break
            if depth or not text[mark.end() :].strip(" \t\r\n`;)"):
                return brace.start()
        return len(text)

    def _is_named_line(self, text: str, mention: re.Match[str]) -> bool:
        """Whether a text is one line that begins with the name of a tool and a colon, or may become one."""
        if text[: mention.start()].strip("`*\"' ") or "\n" in text.strip():
            return False
        behind = text[mention.end() :].lstrip("`*\"' ")
        return not behind or behind[0] in ":："

    def _find_open_end(self, text: str) -> int:
        """Where the end of a text begins that may become a call."""
        fence = _FENCE_END.search(text, max(0, len(text) - 40))
        base = max(0, len(text) - _MAX_NAME_CHARS)
        for match in _START.finditer(text, base):
            if self._may_continue(text[match.end() :]):
                return match.start() if fence is None else min(match.start(), fence.start())
        return len(text) if fence is None else fence.start()

    def _may_continue(self, tail: str) -> bool:
        """Whether a text that begins with a letter is the beginning of a name, or one whose arguments may follow."""
        plain = _plain(tail)
        if plain in self._prefixes:
            return True
        head = _WORD.match(tail)
        if head is None or _plain(head.group()) not in self._names:
            return False
        return _NAME_END.fullmatch(tail, head.end()) is not None


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).casefold()
