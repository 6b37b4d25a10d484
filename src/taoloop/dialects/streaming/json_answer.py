"""The answer in an object that is still being written: `{"thought": …, "action": "final", "action_input": "…"}`.

Only strict JSON is followed, and only a text: the reader of the whole reply may repair what is broken, or take an
answer out of an object, so there nothing is given.
"""

from __future__ import annotations

import re

from taoloop.dialects.parsing.json_decision import ROLES, plain_key
from taoloop.dialects.parsing.tool_names import is_final_name

_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_BLANKS = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[\w.+-]+")
_TAGS = re.compile(r"<[|｜/\w]")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX = re.compile(r"[0-9a-fA-F]{0,4}")
_FINAL_TYPES = frozenset({"final", "finalanswer", "finish", "answer", "最终答案"})
_MOST_KEY = 60


class NotStrictError(ValueError):
    """What was written is no strict JSON."""


class JsonText:
    """A JSON string that is still being written, decoded piece by piece. `closed`: its last quote was read."""

    def __init__(self) -> None:
        self.closed = False
        self._escape = ""  # the part of an escape sequence that has come
        self._high = 0  # the first half of a surrogate pair

    def feed(self, text: str, position: int) -> tuple[str, int]:
        """The text decoded from `position` on, and where it ends: behind the last quote, or at the end of `text`.

        Raises:
            NotStrictError: an escape is invalid, or a sign of control stands there as it is.
        """
        decoded: list[str] = []
        size = len(text)
        while position < size:
            if self._escape:
                position = self._escaped(text, position, decoded)
                continue
            if (plain := _PLAIN.match(text, position)) is not None:
                self._whole()
                decoded.append(plain.group())
                position = plain.end()
                continue
            sign = text[position]
            position += 1
            if sign == "\\":
                self._escape = sign
            elif sign == '"':
                self._whole()
                self.closed = True
                break
            else:
                raise NotStrictError
        return "".join(decoded), position

    def _escaped(self, text: str, position: int, decoded: list[str]) -> int:
        if self._escape == "\\":
            sign = text[position]
            if sign == "u":
                self._escape = "\\u"
            elif sign in _ESCAPES:
                self._whole()
                decoded.append(_ESCAPES[sign])
                self._escape = ""
            else:
                raise NotStrictError
            return position + 1
        digits = _HEX.match(text, position, position + 6 - len(self._escape))
        end = digits.end() if digits is not None else position
        self._escape += text[position:end]
        if len(self._escape) == len("\\uXXXX"):
            self._unit(int(f"0x{self._escape[2:]}", 0), decoded)
            self._escape = ""
        elif end < len(text):
            raise NotStrictError
        return end

    def _unit(self, unit: int, decoded: list[str]) -> None:
        if 0xDC00 <= unit <= 0xDFFF and self._high:
            decoded.append(chr(0x10000 + ((self._high - 0xD800) << 10) + unit - 0xDC00))
            self._high = 0
            return
        self._whole()
        if 0xD800 <= unit <= 0xDBFF:
            self._high = unit
        elif 0xDC00 <= unit <= 0xDFFF:
            raise NotStrictError
        else:
            decoded.append(chr(unit))

    def _whole(self) -> None:
        if self._high:
            raise NotStrictError


class ObjectText:
    """The text of the answer in one object. `over`: nothing more of it can come."""

    def __init__(self) -> None:
        self.over = False
        self._expects = "{"  # an opening brace, a `key`, `:`, a `value`, or what follows one: `,`
        self._string: JsonText | None = None
        self._read: list[str] = []  # what has come of that string, unless it is given on
        self._gives = False  # the string is the answer
        self._key = ""
        self._scalar = ""
        self._final = False  # the action is the final one
        self._input: str | None = None  # an input that came before its action

    def feed(self, text: str) -> str:
        """The next piece of the answer, decoded; empty for all else."""
        given: list[str] = []
        position = 0
        try:
            while position < len(text) and not self.over:
                if self._string is not None:
                    position = self._in_string(self._string, text, position, given)
                else:
                    position = self._between(text, position)
        except NotStrictError:
            self.over = True
        return "".join(given)

    def _in_string(self, string: JsonText, text: str, position: int, given: list[str]) -> int:
        piece, position = string.feed(text, position)
        (given if self._gives else self._read).append(piece)
        if not string.closed:
            return position
        self._string = None
        if self._gives:
            self.over = True
            return position
        value = "".join(self._read)
        self._read.clear()
        if _TAGS.search(value):
            raise NotStrictError  # thinking or a token in it: what the reader makes of the whole is not clear
        if self._expects == "key":
            self._key, self._expects = plain_key(value), ":"
            if len(value) > _MOST_KEY:
                raise NotStrictError
        else:
            self._expects = ","
            self._take(value, given)
        return position

    def _between(self, text: str, position: int) -> int:
        """The signs between strings."""
        blanks = _BLANKS.match(text, position)
        after = blanks.end() if blanks is not None else position
        if self._scalar and after > position:
            self._skip()
        position = after
        if position >= len(text):
            return position
        if self._expects == "value":
            scalar = _SCALAR.match(text, position)
            if scalar is not None:
                self._scalar += scalar.group()
                return scalar.end()
            if self._scalar:
                self._skip()
        sign = text[position]
        if sign == '"' and self._expects in ("key", "value"):
            self._open()
        elif sign == self._expects and sign in "{:,":
            self._expects = {"{": "key", ":": "value", ",": "key"}[sign]
        else:
            self.over = True  # the end of the object, or of what is followed
        return position + 1

    def _open(self) -> None:
        self._string = JsonText()
        if self._expects == "value":
            role = _role(self._key)
            self._gives = (role == "final" and self._input is None) or (role == "args" and self._final)
            if role == "final" and not self._gives:
                raise NotStrictError

    def _skip(self) -> None:
        """A number, true, false or null as the value of a key for which it says nothing."""
        role = _role(self._key)
        if role not in ("thought", "meta") and not (self._scalar == "null" and role in ("tool", "args", "final")):
            raise NotStrictError
        self._scalar, self._expects = "", ","

    def _take(self, value: str, given: list[str]) -> None:
        """A text that is not, or not yet, the answer."""
        role = _role(self._key)
        if role == "args" and self._input is None:
            self._input = value
        elif role == "tool" and is_final_name(value) and not self._final:
            self._final = True
            if self._input is not None:
                given.append(self._input)
                self.over = True
        elif role == "type":
            self.over = plain_key(value) not in _FINAL_TYPES
        elif self._key == "role":
            self.over = value != "assistant"
        elif role not in ("thought", "meta"):
            self.over = True


def _role(key: str) -> str:
    if key == "type":
        return "type"
    return next((role for role, words in ROLES.items() if key in words), "")
