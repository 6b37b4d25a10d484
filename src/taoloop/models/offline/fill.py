"""Fills the arguments of a tool from a clause, from the rest of the task and from earlier observations.

A value is used once per call, and nothing is invented: an argument without a value stays open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from taoloop.models.offline import choices, phrases, units
from taoloop.models.offline.arithmetic import render
from taoloop.models.offline.extract import MARK, Atom, Kind, Skeleton
from taoloop.models.offline.lexicon import CHANGES
from taoloop.models.offline.match import Profile
from taoloop.models.offline.parsing import parse
from taoloop.models.offline.results import Finding
from taoloop.models.offline.results import field as result_field
from taoloop.models.offline.schema import Param, Role
from taoloop.models.offline.sides import number_near, sided
from taoloop.models.offline.textparts import Part, part_of, text_parts
from taoloop.models.offline.values import as_number, fits
from taoloop.models.offline.words import is_chinese, name_concepts, name_words

OPEN: Any = object()
"""Stands for an argument without a value."""

_ORDER: tuple[Role, ...] = (
    "handle", "email", "url", "date", "clock", "path", "currency", "choice", "boolean", "unit", "zone", "place",
    "language", "expression", "key", "id", "object", "number", "list", "name", "query", "text", "any",
)  # fmt: skip
_KINDS: Mapping[Role, tuple[Kind, ...]] = {
    "email": ("email",), "url": ("url",), "date": ("date",), "clock": ("clock", "date"), "path": ("path",),
    "currency": ("currency",), "zone": ("zone", "place"), "place": ("place", "zone"), "key": ("key", "id"),
    "query": ("quoted",), "text": ("quoted",), "name": ("quoted", "id", "key"), "id": ("id", "key", "quoted", "number"),
    "handle": ("id",),
    "any": ("quoted", "id", "email", "url", "path", "key", "place", "zone", "date", "currency"),
}  # fmt: skip
_MARK = re.compile(MARK)
_SHAPED: frozenset[Role] = frozenset(
    {"choice", "boolean", "list", "object", "email", "url", "currency", "unit", "handle"}
)
_UNWORDED: frozenset[Role] = frozenset({"date", "clock", "expression", "zone", "path"})
_ASKING = re.compile(r"^[请问查询一下看现在把\s]+")
_SUFFIX = re.compile(r"\.[a-z]{2,5}\b")
_ONE_WORD = re.compile(
    rf"(?:please\s+)?(?:write|save|append|put)\s+([A-Za-z]+)\s+(?:to|into|in)\s+{MARK}", re.IGNORECASE
)
_TOPICS = frozenset({"topic", "subject", "term", "keyword", "keywords", "entity", "主题", "关键词"})
_SPOKEN = re.compile(
    r"(?:\b(?:saying|says|say|that\s+says|text|message|body|reading)|说|内容(?:是|为)?|写着)\s*[:：]?\s*$",
    re.IGNORECASE,
)
_CONTAINER = re.compile(
    r"(?:web\s?)?(?:pages?|sites?|websites?|articles?|links?|documents?|files?)|网页|页面|文章|网站|链接|文件|文档",
    re.IGNORECASE,
)
_AFTER_COLON = re.compile(r"[:：]\s*(\S.*)$", re.DOTALL)
_ORDINAL = re.compile(r"(?<!\d)(\d{1,9})(?:st|nd|rd|th)\b")
_THERE = re.compile(r"\bthere\b|那里|那边|当地|那儿", re.IGNORECASE)
_DICTATED = r"(?:write|save|append|send|put|post|say)\s+"
_VAGUE = re.compile(
    r"(?:(?:everything|anything|something|all|any|it|them|this|that|these|those|one|ones|stuff|things?|rest|other|others)\s*)+"
    r"|(?:所有|全部|一切|全|它|他|她|们|这些|那些|这个|那个|东西|其他|其余|都)+",
    re.IGNORECASE,
)
_JOINS = re.compile(r"\b(?:and|then|or|but)\b|[,，;；]|然后|以及|并且|或者")
"""In bare words for a call that acts these begin something else: better no call than one on the wrong thing."""

_DAYS = re.compile(r"\b(?:today|tomorrow|yesterday|tonight)\b|今天|明天|后天|昨天|今晚", re.IGNORECASE)


@dataclass(slots=True)
class Filled:
    """Arguments for one call.

    `open` are required arguments without a value, `taken` names the mark that each took, `said` the plain words,
    `used` are all marks that went into the call, `earlier` says that an earlier result was used.
    """

    args: dict[str, Any] = field(default_factory=dict)
    open: list[Param] = field(default_factory=list)
    taken: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    earlier: bool = False


@dataclass(slots=True)
class Filler:
    """One clause, seen as a source of values. `whole` is the whole task, for what the clause leaves out."""

    clause: str
    skeleton: Skeleton
    profile: Profile
    whole: str = ""
    findings: Sequence[Finding] = ()
    used: set[str] = field(default_factory=set)
    taken: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    earlier: bool = False
    parts: Mapping[Part, str] = field(default_factory=dict)

    def fill(self) -> Filled:
        """Values for all arguments that can have one."""
        self.parts = text_parts(self.clause, self.skeleton)
        filled = self._all(self.profile.params)
        filled.earlier, filled.used = self.earlier, self.used
        return filled

    def _all(self, params: Sequence[Param]) -> Filled:
        result = Filled(taken=self.taken, said=self.said)
        ranked = sorted(
            range(len(params)),
            key=lambda i: (not params[i].required, _ORDER.index(params[i].role), params[i].side == "to", i),
        )
        for param in (params[i] for i in ranked):
            value = self._value(param)
            if value is not OPEN and fits(value, param):
                result.args[param.name] = value
            elif param.required:
                result.open.append(param)
        result.args = {param.name: result.args[param.name] for param in params if param.name in result.args}
        return result

    def _value(self, param: Param) -> Any:
        if part := part_of(param, self.profile.params, self.parts):
            return self._part(param, part)
        special: dict[Role, Callable[[Param], Any]] = {
            "choice": self._choice, "boolean": self._boolean, "number": self._number, "list": self._list,
            "object": self._object, "unit": self._unit, "language": self._language, "expression": self._expression,
        }  # fmt: skip
        value = special.get(param.role, self._typed)(param)
        if value is OPEN and param.required:
            value = self._last_resort(param)
        return value

    def _part(self, param: Param, part: str) -> str:
        if not _MARK.fullmatch(part):
            return part
        self.used.add(part)
        self.taken[param.name] = part
        atom = self.skeleton.atom(part)
        return atom.value if atom.kind == "quoted" else atom.source

    def _typed(self, param: Param) -> Any:
        """A value of the kinds that fit the argument's role: here, then in the rest of the task."""
        if not param.takes_text:
            return self._number(param) if param.types & {"integer", "number"} else OPEN
        if text := self._labelled(param):
            quoted = [self.skeleton.atom(mark).value for mark in self._marks(self.clause, ("quoted",))]
            if param.role != "text" or not quoted or text in quoted:
                return text
        marks = self._marks(self.clause, _KINDS.get(param.role, ()))
        if param.role in ("zone", "place") and not marks and _THERE.search(self.clause):
            marks = self._marks(self.whole, _KINDS[param.role])[-1:]
        if param.role in ("zone", "place") and not marks and (name := self._place_name()):
            return name
        if not param.required and param.role in ("any", "name", "query", "text"):
            return OPEN
        if param.role == "path" and not marks and (folder := phrases.folder(self.clause, self.skeleton)):
            return folder
        if param.role == "text" and self.findings and not marks and phrases.REFERENCE.search(self.clause):
            self.earlier = True
            return self.findings[-1].text()
        if not marks and param.required and param.role not in ("query", "text", "name", "any"):
            marks = self._of_kind(param, self._marks(self.whole, _KINDS.get(param.role, ())))
        if param.role != "currency":
            money = [mark for mark in marks if self.skeleton.atom(mark).kind == "currency"]
            marks = [mark for mark in marks if mark not in money] or money
        if param.side == "to" and param.role in ("name", "any", "id") and (name := self._receiver(marks)):
            self.said[param.name] = name
            return name
        return self._take(param, sided(param, self.profile.params, marks, self.clause, self.skeleton))

    def _of_kind(self, param: Param, marks: list[str]) -> list[str]:
        """The marks without files of another kind than the argument's description names (".json or .yaml")."""
        kinds = set(_SUFFIX.findall(param.text.lower())) if param.role == "path" else set()
        return [m for m in marks if not kinds or set(_SUFFIX.findall(self.skeleton.atom(m).value.lower())) & kinds]

    def _receiver(self, marks: Sequence[str]) -> str:
        """Who stands behind "to" by name, where no other value does; empty if nobody."""
        found = phrases.receiver(self.clause)
        to = [mark for mark in marks if re.search(r"\bto\s+$|给\s*$", self.clause[: self.clause.find(mark)])]
        return "" if to else found

    def _place_name(self) -> str:
        """A place that the table does not know, as the task writes it: the tool may know it, or say what is near."""
        found = [name for name in phrases.names(self.clause, self.skeleton, only_places=True) if name.isascii()]
        if found or not is_chinese(self.clause):
            return next((name for name in found if name not in self.said.values()), "")
        rest = phrases.residue(self.clause, self.skeleton, set(self.profile.strong), self.used)
        return rest if 2 <= len(rest) <= 6 and _ASKING.sub("", self.clause).startswith(rest) else ""

    def _labelled(self, param: Param) -> str:
        if param.role not in ("name", "text", "query", "any", "key"):
            return ""
        return phrases.labelled(self.clause, self.skeleton, param.name)

    def _marks(self, text: str, kinds: Sequence[Kind]) -> list[str]:
        marks = [mark for mark in _MARK.findall(text) if mark not in self.used]
        marks = [mark for mark in marks if self.skeleton.atom(mark).kind in kinds]
        if kinds == _KINDS["name"]:
            marks = self._not_spoken(marks, text)
        return sorted(marks, key=lambda mark: kinds.index(self.skeleton.atom(mark).kind) > 0 and len(kinds) > 2)

    def _take(self, param: Param, mark: str | None) -> Any:
        if mark is None:
            return OPEN
        self.used.add(mark)
        self.taken[param.name] = mark
        return self._as(param, self.skeleton.atom(mark))

    def _as(self, param: Param, atom: Atom) -> str:
        if param.role == "zone" and atom.zone:
            return atom.zone
        if atom.kind == "place":
            own = f"{self.profile.card.purpose} {param.text}"
            return atom.value if is_chinese(atom.source) and atom.value in own else atom.source
        return atom.value

    def _choice(self, param: Param) -> Any:
        rest = "".join(" " if char in self.used else char for char in self.clause)
        value, mark = choices.choose(param, rest, self.skeleton)
        if value is None and param.required:
            value, mark = choices.choose(param, self.whole, self.skeleton)
        if mark:
            self.used.add(mark)
        return OPEN if value is None else value

    def _boolean(self, param: Param) -> Any:
        value = choices.boolean(param, self.skeleton.restore(self.clause))
        return OPEN if value is None else value

    def _number(self, param: Param) -> Any:
        marks = self._marks(self.clause, ("number",))
        own = units.unit_of(param.name, param.text)
        behind = {mark: units.unit_behind(mark, self.clause) for mark in marks} if own else {}
        if own:
            marks = [mark for mark in marks if not behind[mark] or units.comparable(behind[mark], own)]
            measured = [mark for mark in marks if behind[mark]]
        near = number_near(param, measured if own and measured else marks, self.clause, self.skeleton)
        if not near and own and measured:
            near = measured[0]
        marks = [near] if near else marks if param.required else []
        marks.sort(key=lambda mark: self.skeleton.atom(mark).weak)
        for mark in marks:
            text, unit = self.skeleton.atom(mark).value, behind.get(mark, "")
            value = as_number(units.converted(text, unit, own) if unit and unit != own else text, param)
            if value is not None:
                self.used.add(mark)
                self.taken[param.name] = mark
                return value
        ordinal = _ORDINAL.search(self.clause) if param.required and not marks else None
        return as_number(ordinal[1], param) if ordinal else OPEN

    def _list(self, param: Param) -> Any:
        item = param.item
        if item is None or not param.required:
            return OPEN
        numeric = item.role == "number"
        marks = self._marks(self.clause, ("number",) if numeric else _KINDS.get(item.role, _KINDS["any"]))
        self.used.update(marks)
        atoms = [self.skeleton.atom(mark) for mark in marks]
        found: list[Any] = [as_number(atom.value, item) if numeric else self._as(item, atom) for atom in atoms]
        if not found and not numeric and item.takes_text:
            found = [*phrases.listed(self.skeleton.restore(self.clause))]
        return [value for value in found if value is not None and fits(value, item)] or OPEN

    def _object(self, param: Param) -> Any:
        inner = self._all(param.fields)
        return OPEN if inner.open or not inner.args else inner.args

    def _unit(self, param: Param) -> Any:
        return choices.unit(param, self.clause, self.skeleton) or OPEN

    def _language(self, param: Param) -> Any:
        return choices.language(param, self.skeleton.restore(self.clause)) or OPEN

    def _expression(self, param: Param) -> Any:
        tree = parse(self.clause, self.skeleton)
        try:
            return render(tree) if tree is not None and param.takes_text else OPEN
        except ValueError:
            return OPEN

    def _last_resort(self, param: Param) -> Any:
        """For a required argument: an earlier result, a name, a quotation, or what the clause is about."""
        for finding in reversed(self.findings):
            value = result_field(finding.content, param.name)
            if value is None and param.role == "currency":
                value = result_field(finding.content, "currency")
            if value is None and param.role == "handle":
                value = finding.observed.artifact
            if value is not None and fits(value, param):
                self.earlier = True
                return value
        if param.role == "number":
            number = self.findings[-1].number() if self.findings else None
            value = None if number is None else as_number(number, param)
            self.earlier = value is not None
            return OPEN if value is None else value
        if not param.takes_text or param.role in _SHAPED:
            return OPEN
        quoted = self._quoted(param)
        value = quoted or self._words_for(param)
        unsure = _VAGUE.fullmatch(value) is not None or (not quoted and _JOINS.search(value) is not None)
        vague = self.profile.acts and param.role != "text" and unsure
        if value and not vague and value not in self.said.values():
            self.said[param.name] = value
            return value
        return OPEN

    def _is_no_place(self, text: str) -> bool:
        """True for what holds an identifier, is an acronym, or describes: an IP address is no country."""
        kinds = ("id", "key", "number", "email", "url", "path")
        codes = (atom.source for atom in self.skeleton.within(self.clause) if atom.kind in kinds)
        acronym = text.isupper() and text.isascii() and len(text) == len("IP")
        return acronym or " of the " in text or (is_chinese(text) and "的" in text) or any(c in text for c in codes)

    def _named_otherwise(self, param: Param) -> set[str]:
        """The concepts of the other arguments' names: their words lead to their values, not to this one's."""
        return {c for other in self.profile.params if other is not param for c in name_concepts(other.name)}

    def _quoted(self, param: Param) -> str:
        marks = self._marks(self.clause, ("quoted",))
        marks = marks if param.role == "text" else self._not_spoken(marks, self.clause)
        self.used.update(marks[:1])
        return self.skeleton.atom(marks[0]).value if marks else ""

    def _not_spoken(self, marks: list[str], text: str) -> list[str]:
        """The marks that are no message's words, where the tool has an argument for these."""
        if not any(param.role == "text" for param in self.profile.params):
            return marks
        return [mark for mark in marks if not _SPOKEN.search(text[: text.find(mark)])]

    def _words_for(self, param: Param) -> str:
        if param.role in _UNWORDED:
            day = _DAYS.search(self.clause) if param.role == "date" else None
            return day.group() if day else ""
        known = set(self.profile.strong) | set(param.own) | self._named_otherwise(param)
        if param.role == "key":
            made = [*phrases.record_keys(self.clause, self.skeleton), ""][0]
            if key := choices.closest(made, choices.listed(param, self.profile.card), self.clause) or made:
                return key
        asks = not _TOPICS & set(name_words(param.name))
        if asks and param.role == "query" and "@web" in self.profile.strong and phrases.QUESTION.search(self.clause):
            return self.skeleton.restore(self.clause).strip(" ?？.。")
        if param.role in ("place", "name", "any", "key", "id"):
            found = [name for name in phrases.names(self.clause, self.skeleton) if name not in self.said.values()]
            if param.role == "place":
                found = [name for name in found if not self._is_no_place(name)]
            if found or param.role == "id":
                return [*found, ""][0]
        if param.role == "text":
            return self._text_for(known)
        idle = set() if param.role == "query" else CHANGES | {"@read"}
        rest = phrases.residue(self.clause, self.skeleton, known | idle, self.used)
        return "" if param.role == "place" and self._is_no_place(rest) else rest

    def _text_for(self, known: set[str]) -> str:
        """What was found last, or the words that the clause gives as a text."""
        if self.findings:
            self.earlier = True
            return self.findings[-1].text()
        if self.profile.acts and (told := _AFTER_COLON.search(self.clause)):
            return self.skeleton.restore(told[1]).strip()
        word = _ONE_WORD.match(self.clause)
        if word and not phrases.REFERENCE.fullmatch(word[1]) and not _VAGUE.fullmatch(word[1]):
            return word[1]
        spent = self.used | set(self._marks(self.clause, ("path", "email", "url")))
        rest = phrases.residue(self.clause, self.skeleton, known, spent)
        if _CONTAINER.fullmatch(rest) and self._marks(self.clause, ("path", "url")):
            return ""  # the text is in what the mark names
        dictated = re.search(_DICTATED + re.escape(rest), self.skeleton.restore(self.clause), re.IGNORECASE)
        return rest if dictated or not self.profile.changes else ""
