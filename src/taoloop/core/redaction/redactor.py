"""Removes secrets from texts, data and facts before they go anywhere. Pure.

By name (`password=…`, `{"api_key": …}`, headers), by pattern (prefixes of vendors, tokens, private keys, URLs with a
password) and by value (secrets that the configuration contains, in every form of `encoded_forms`). A secret is replaced
by `[redacted:NAME]`. A text or object without secrets is returned as the same object.
"""

from __future__ import annotations

import base64
import dataclasses
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, TypeVar, cast

import pydantic_core

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, call_digest
from taoloop.core.events import ActionRequested, Fact, ModelReplied, RunStarted
from taoloop.core.redaction.patterns import (
    LABEL,
    Strength,
    is_secret,
    may_begin,
    may_hold,
    open_line_at,
    partial_secret_at,
    redact_patterns,
    redaction_label,
    secret_name_strength,
)
from taoloop.core.text import lazy_pattern

MIN_SECRET_CHARS = 8
"""Characters. A shorter value is not searched for: it would be found in ordinary text."""

T = TypeVar("T")
F = TypeVar("F", bound=Fact)

RUNTIME_FIELDS = frozenset(
    {
        *("kind", "nonce", "run_id", "parent", "child", "after", "by_call_id", "call_id", "ref", "id", "digest"),
        *("idempotency_key", "artifact", "output_digest", "waiting_for", "tier", "tiers", "approved_tiers", "verdict"),
        *("reason_codes", "authenticated", "media_type"),
        *("status", "purpose", "form", "finish_reason", "language", "dialect", "strategy"),
    }
)
"""Fields of facts that taoloop fills in itself, or a provider with an id: they are never changed."""

_NUMBER_TYPES = frozenset({int, float})
_MIN_SECRET_NUMBER = 10 ** (MIN_SECRET_CHARS - 1)  # from here on a number may be a secret that is known by its value
_OPTIONAL_TYPES = ("int", "float", "Usage", "Limits")
_NUMERIC_ANNOTATIONS = frozenset(
    ("bool", "int | float", *_OPTIONAL_TYPES, *(f"{kind} | None" for kind in _OPTIONAL_TYPES))
)

MAX_WORD_CHARS = 1_024  # characters that are held back because no blank comes; longer than any token
_MIN_PATTERN_CHARS = 6  # characters; a text below it holds no secret that is looked for
_GRAM_CHARS = 5  # of a sample of a text
_SAMPLING_PAYS = 700  # number of forms times distance of the samples, from which on they cost less than each search
_PAIR_LENGTH = 2
_MAX_CACHED = 4_096
_MAX_SPACED_CHARS = 100  # of a value that is looked for with blanks in it
_SPACING_MARKS = ("-", "\n")  # besides a blank, between all characters of a value
_GROUPINGS = ((2, " "), (3, " "), (4, " "), (4, "-"), (5, " "))  # characters in a group, and what is between two
_MIN_CORE_CHARS = 10  # characters of base64; fewer are no proof
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_DECIMAL = lazy_pattern(r"-?[0-9]+\.[0-9]+")
_SECRET_VARIABLE = lazy_pattern(
    r"(?:^|_)(?:API_?KEY|TOKEN|SECRET|PASS(?:WORD|WD|PHRASE)|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|CREDENTIALS?)$"
    r"|PASSWORD",
    re.IGNORECASE,
)


class Redactor:
    """Removes secrets. Make one per configuration; it is immutable and may be used from any thread.

    Args:
        secrets: known values by name (`{"DEEPSEEK_API_KEY": "sk-…"}`), or values alone. Values of fewer than 8
            characters are not looked for.
        patterns: also by name and by pattern. False: by value alone.
    """

    def __init__(self, secrets: Mapping[str, str] | Iterable[str] = (), *, patterns: bool = True) -> None:
        items = secrets.items() if isinstance(secrets, Mapping) else (("secret", value) for value in secrets)
        self._patterns = patterns
        self._cache: dict[int, tuple[Any, Any]] = {}
        self._set_forms(
            {
                form: redaction_label(_label_name(name))
                for name, value in items
                if len(value) >= MIN_SECRET_CHARS
                for form in encoded_forms(value)
            }
        )

    def _set_forms(self, labels_by_form: Mapping[str, str]) -> None:
        """Look for these forms of known secrets: the longest first, because it may contain a shorter one."""
        self._labels_by_form = tuple(sorted(labels_by_form.items(), key=lambda pair: -len(pair[0])))
        self._forms = tuple(form for form, _ in self._labels_by_form)
        self._form_starts = "".join(f"\0{form}" for form in self._forms)  # one search instead of one for each form
        self._multi_word = tuple(form for form in self._forms if len(form) > MAX_WORD_CHARS or not _is_one_word(form))
        shortest = min(map(len, self._forms), default=0)
        stride = shortest - _GRAM_CHARS + 1  # a form of so many characters covers a whole sample of the text
        self._stride = stride if stride * len(self._forms) > _SAMPLING_PAYS else 0
        self._grams = frozenset(
            form[at : at + _GRAM_CHARS] for form in self._forms for at in range(len(form) - _GRAM_CHARS + 1)
        )
        self._min_chars = min([_MIN_PATTERN_CHARS if self._patterns else MIN_SECRET_CHARS, *map(len, self._forms)])

    def __bool__(self) -> bool:
        """False: nothing can ever match, so the whole step may be skipped."""
        return self._patterns or bool(self._labels_by_form)

    def merged_with(self, other: Redactor | None) -> Redactor:
        """A redactor that knows the secrets of both."""
        if other is None or other is self:
            return self
        if self._patterns and set(other._labels_by_form) <= set(self._labels_by_form):
            return self
        merged = Redactor(patterns=self._patterns or other._patterns)
        merged._set_forms(dict(other._labels_by_form + self._labels_by_form))
        return merged

    def partial_secret_at(self, text: str) -> int:
        """Where a secret of several words, such as `Bearer TOKEN`, may have begun; the text's length if nowhere.

        A text that is shown word by word must stop there until it is clear how it continues.
        """
        may_match = self._patterns and ("://" in text or may_hold(text))  # the `@` of a URL comes after its password
        end = partial_secret_at(text) if may_match else len(text)
        for form in self._multi_word:
            at = max(0, len(text) - len(form) + 1)
            while (at := text.find(form[0], at, end)) >= 0:
                if form.startswith(text[at:]):
                    end = at
                    break
                at += 1
        return end

    def open_line_at(self, text: str) -> int:
        """Where the line begins that announces a secret on the lines after `text`; the text's length if none does."""
        return open_line_at(text) if self._patterns and may_hold(text) else len(text)

    def may_hold(self, text: str) -> bool:
        """False: `text` contains nothing to redact. Cheap; True does not mean that it contains something."""
        if len(text) < self._min_chars:
            return False
        if self._patterns and may_hold(text):
            return True
        if self._stride and self._grams.isdisjoint(
            [text[at : at + _GRAM_CHARS] for at in range(0, len(text), self._stride)]
        ):
            return False
        for form in self._forms:  # noqa: SIM110  # a generator would cost more than the search
            if form in text:
                return True
        return False

    def holds_known(self, data: bytes) -> bool:
        """Whether bytes that are no text, such as an image's, contain a known secret as it is."""
        return any(form.encode() in data for form in self._forms)

    def may_begin(self, word: str) -> bool:
        """False: no secret begins in `word`, whatever follows it; for a word that is still being written."""
        if self._patterns and may_begin(word):
            return True
        return any(f"\0{word[at:]}" in self._form_starts for at in range(len(word)))

    def text(self, text: str) -> str:
        """`text` without secrets. If the whole text is JSON it is redacted by its names, and stays JSON."""
        if not self.may_hold(text):
            return text
        if self._patterns and text[:1] in ("{", "["):
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                pass
            else:
                redacted = self.value(value)
                if redacted is not value:
                    return json.dumps(redacted, ensure_ascii=False)
                return self._without_known(text)  # digits that JSON reads as a number with other digits
        cleaned = self._without_known(text)
        cleaned = redact_patterns(cleaned) if self._patterns else cleaned
        return text if cleaned == text else cleaned

    def value(self, value: Any) -> Any:
        """Plain data (what JSON holds) without secrets, in its values and in its keys."""
        try:
            return self._value(value, "")
        except RecursionError:
            return redaction_label("too_deep")

    def fact(self, fact: F) -> F:
        """The fact without secrets, in every field but those that taoloop fills in itself (`RUNTIME_FIELDS`)."""
        if isinstance(fact, ModelReplied) and self._is_plainly_clean(fact):
            return fact
        if isinstance(fact, RunStarted):
            return cast("F", self._run_started(fact))
        parts: list[str] = []
        _collect_texts(fact, parts)
        if not self.may_hold("\n".join(parts)):
            return fact
        redacted = cast("F", self._object(fact))
        if isinstance(redacted, ActionRequested) and redacted.args is not cast("ActionRequested", fact).args:
            # else a replay, which has only what was stored, would make another digest
            redacted = cast("F", dataclasses.replace(redacted, digest=call_digest(redacted.tool, redacted.args)))
        return redacted

    def _is_plainly_clean(self, reply: ModelReplied) -> bool:
        """Whether calls that came through the provider's API have nothing to redact, which a quick look shows for most.

        What was read from the arguments is in them as it came, unless an escape hides it.
        """
        act = reply.decision
        if type(act) is not Act or len(act.calls) != len(reply.tool_calls) or reply.thinking:
            return False
        parts = [reply.text, reply.model, act.reason]
        for raw in reply.tool_calls:
            if "\\" in raw.arguments:
                return False
            parts += (raw.name, raw.arguments)
        for call in act.calls:
            if type(call.args) is not dict:
                return False
            parts.append(call.tool)
        return not self.may_hold("\n".join(parts))

    def _run_started(self, fact: RunStarted) -> RunStarted:
        """The start of a run. Its agent is most of it, and the same for run after run."""
        names = ("task", "history", "trusted", "user_instructions", "images", "files", "deps")
        changes = {name: self._object(text) for name in names if (text := getattr(fact, name))}
        return _with_changes(fact, {"agent": self._redact_once(fact.agent, self._agent_spec), **changes})

    def _agent_spec(self, spec: AgentSpec) -> AgentSpec:
        """An agent's description. Runs may have descriptions of their own, but share cards and prompts."""
        tools = _with_items(spec.tools, [self._redact_once(card, self._object) for card in spec.tools])
        changes = {
            name: self._object(getattr(spec, name)) for name in ("instructions", "output_schema", "model_settings")
        }
        prompts = self._redact_once(spec.prompts, self._object)
        return _with_changes(spec, {"tools": tools, "prompts": prompts, **changes})

    def _redact_once(self, value: T, look: Callable[[T], T]) -> T:
        """The result of `look` for something that many runs share: each object is examined only once."""
        _, clean = self._cache.get(id(value), (None, None))
        if clean is None:
            clean = look(value)
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[id(value)] = value, clean  # with the object itself, so that its id is not reused
        return cast("T", clean)

    def _without_known(self, text: str) -> str:
        for form, label in self._labels_by_form:
            if form in text:
                text = text.replace(form, label)
        return text

    def _value(self, value: Any, kind: Strength, name: str = "") -> Any:
        if isinstance(value, str):
            if kind and is_secret(value, "weak" if kind == "box" else kind):
                return self._label_of_field(value, name)
            return self.text(value)
        if isinstance(value, Mapping):
            return self._mapping(value, kind)
        if isinstance(value, list | tuple):
            if len(value) == _PAIR_LENGTH and isinstance(value[0], str) and isinstance(value[1], str):
                kind = (secret_name_strength(value[0]) if self._patterns else "") or kind  # a header as a pair
                second = self._value(value[1], kind, value[0])
                return value if second is value[1] else type(value)((value[0], second))
            return _with_items(
                value, [self._item(before, item, kind, name) for before, item in zip(["", *value], value, strict=False)]
            )
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._number(value, kind, name)
        return value

    def _item(self, before: Any, item: Any, kind: Strength, name: str) -> Any:
        """An item of a list; after an option such as `--password` it is the value of the option."""
        if self._patterns and isinstance(before, str) and before.startswith("-"):
            option = before.lstrip("-")
            if strength := secret_name_strength(option):
                kind, name = strength, option
        return self._value(item, kind, name)

    def _number(self, value: float, kind: Strength, name: str) -> Any:
        """A number, or a label if its digits are a secret: then it is no longer a number."""
        digits = _digits(value)
        for form, label in self._labels_by_form:
            if form in digits:
                return label
        is_named = kind == "strong" and self._patterns and len(digits) >= MIN_SECRET_CHARS // 2
        return redaction_label(_label_name(name)) if is_named else value

    def _mapping(self, value: Mapping[Any, Any], kind: Strength) -> Mapping[Any, Any]:
        changed, out = False, dict[Any, Any]()
        field_name = ""  # {"name": "Authorization", "value": "…"}
        for key in ("name", "key", "header"):
            if isinstance(value.get(key), str) and "value" in value:
                field_name = value[key]
        for key, item in value.items():
            name = key if isinstance(key, str) else ""
            inner = secret_name_strength(name) if self._patterns else ""
            if key == "value" and field_name and self._patterns:
                inner, name = secret_name_strength(field_name) or inner, field_name
            if isinstance(item, Mapping) and inner != "box":
                inner = ""  # a schema of a password is no password
            new_key = self.text(key) if isinstance(key, str) else key
            new = self._value(item, inner or ("box" if kind == "box" else ""), name)
            changed = changed or new is not item or new_key is not key
            out[new_key] = new
        return out if changed else value

    def _label_of_field(self, value: str, name: str) -> str:
        for form, label in self._labels_by_form:  # the better name, if it is known
            if value == form:
                return label
        return redaction_label(_label_name(name))

    def _object(self, value: Any) -> Any:
        """A frozen dataclass, a tuple of them, or a value inside one."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, tuple):
            return _with_items(value, [self._object(item) for item in value])
        if isinstance(value, Mapping | list):
            return self.value(value)
        names = _fields(type(value))  # type: ignore[arg-type]  # a class can be hashed
        return _with_changes(value, {name: self._object(getattr(value, name)) for name in names})


def _with_changes(value: T, changes: Mapping[str, Any]) -> T:
    """A dataclass with other values in some fields; the same object if all of them are those that it has."""
    different = {name: new for name, new in changes.items() if new is not getattr(value, name)}
    return cast("T", dataclasses.replace(cast("Any", value), **different)) if different else value


def _with_items(value: Any, items: list[Any]) -> Any:
    """A list or tuple with other items; the same object if all of them are those that it has."""
    if all(new is old for new, old in zip(items, value, strict=True)):
        return value
    return tuple(items) if isinstance(value, tuple) else items


def contains_redaction(value: Any) -> bool:
    """True if something in plain data was redacted: a call with such arguments must not be run."""
    if isinstance(value, str):
        return LABEL.search(value) is not None
    if isinstance(value, Mapping):
        return any(contains_redaction(key) or contains_redaction(item) for key, item in value.items())
    return isinstance(value, list | tuple) and any(contains_redaction(item) for item in value)


def _collect_texts(value: Any, parts: list[str]) -> None:
    """Append every text in a fact that may contain a secret to `parts`; quick, because every fact passes here."""
    kind = type(value)
    if kind is str:
        parts.append(value)
    elif kind is tuple:
        for item in value:
            _collect_texts(item, parts)
    elif kind is ModelReplied:
        _collect_reply_texts(value, parts)
    elif kind is dict:
        _collect_dict_texts(value, parts)
    elif isinstance(value, Mapping | list):
        if value:
            parts.append(_json(value))
    elif (getter := _getter(kind)) is not None:  # type: ignore[arg-type]  # a class can be hashed
        for item in getter(value):
            if item:
                _collect_texts(item, parts)


def _collect_reply_texts(reply: ModelReplied, parts: list[str]) -> None:
    """The same for a reply, the fact with the most texts; a test compares it with the fields."""
    parts += (reply.text, reply.thinking, reply.model)
    decision = reply.decision
    if type(decision) is Act:
        parts.append(decision.reason)
        for call in decision.calls:
            parts.append(call.tool)
            _collect_texts(call.args, parts)
    elif decision is not None:
        _collect_texts(decision, parts)
    for call_text in reply.tool_calls:
        parts += (call_text.name, call_text.arguments)


def _collect_dict_texts(value: dict[Any, Any], parts: list[str]) -> None:
    """Arguments, which are mostly flat; a key that announces a secret is marked by a colon."""
    for key, item in value.items():
        if type(key) is not str or key == "value":  # of a pair with "name", perhaps
            parts.append(_json(value))
            return
        parts.append(f"{key}:" if secret_name_strength(key) else key)
        if type(item) is str:
            parts.append(item)
        elif type(item) in _NUMBER_TYPES:
            if not -_MIN_SECRET_NUMBER < item < _MIN_SECRET_NUMBER or type(item) is float:
                parts.append(_digits(item))
        elif item is not None and type(item) is not bool:
            parts.append(_json(item))


def _digits(number: float) -> str:
    try:
        return repr(number)
    except ValueError:  # longer than Python writes: not a known secret
        return ""


def _json(value: Any) -> str:
    try:
        return pydantic_core.to_json(value).decode()
    except (pydantic_core.PydanticSerializationError, UnicodeEncodeError):
        return json.dumps(value, ensure_ascii=False, default=repr)


@lru_cache(maxsize=256)
def _fields(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass that may contain what others wrote; none for any other type."""
    if not dataclasses.is_dataclass(kind):
        return ()
    # a card's purpose is what its source says
    ours = RUNTIME_FIELDS - {"purpose"} if kind is ToolCard else RUNTIME_FIELDS
    fields = (field for field in dataclasses.fields(kind) if field.type not in _NUMERIC_ANNOTATIONS)
    return tuple(field.name for field in fields if field.name not in ours)


@cache
def _getter(kind: type) -> Callable[[Any], tuple[Any, ...]] | None:
    names = _fields(kind)
    if not names:
        return None
    if len(names) == 1:
        only = attrgetter(names[0])
        return lambda value: (only(value),)
    return cast("Callable[[Any], tuple[Any, ...]]", attrgetter(*names))


def _is_one_word(form: str) -> bool:
    """Whether a text has no blank, and no other character that ends words."""
    return not any(char.isspace() or char > "\x7f" for char in form)


def _label_name(name: str) -> str:
    """A name that can be part of a label."""
    plain = "".join(char if char.isalnum() or char in "._-" else "_" for char in name)[:80]
    return plain or "secret"


def secrets_of(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment whose names say that they are secret: `*_API_KEY`, `*_TOKEN`, `*PASSWORD*` …"""
    return {
        name: value
        for name, value in environ.items()
        if len(value) >= MIN_SECRET_CHARS and _SECRET_VARIABLE.search(name)
    }


def encoded_forms(value: str) -> list[str]:
    """Every form of `value` that is searched for, the longest first, each once."""
    raw = value.encode("utf-8", "replace")
    forms = {value, *_echoes(value), *_escaped_forms(value), *_percent_forms(value), *_binary_forms(raw)}
    return sorted((form for form in forms if len(form) >= MIN_SECRET_CHARS), key=len, reverse=True)


def _echoes(value: str) -> Iterator[str]:
    """What a model makes of a value that it was told not to repeat as it is."""
    yield value[::-1]
    yield value.upper()
    yield value.lower()
    if len(value) <= _MAX_SPACED_CHARS and not any(char.isspace() for char in value):
        for echo in (value, value[::-1], value.upper()):
            yield " ".join(echo)
        for mark in _SPACING_MARKS:
            yield mark.join(value)
        for size, mark in _GROUPINGS:
            yield mark.join(value[at : at + size] for at in range(0, len(value), size))


def _escaped_forms(value: str) -> Iterator[str]:
    for ascii_only in (False, True):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]  # JSON inside JSON
        yield once.replace("/", "\\/")
    yield repr(value)[1:-1]
    yield html.escape(value)
    yield html.escape(value, quote=False)
    if _DECIMAL.fullmatch(value):
        yield value.rstrip("0")  # as a number, which keeps no zeros at its end


def _percent_forms(value: str) -> Iterator[str]:
    raw = value.encode("utf-8", "replace")
    whole = "".join(chr(byte) if chr(byte) in _UNRESERVED else f"%{byte:02X}" for byte in raw)
    for form in (whole, whole.replace("%2F", "/"), whole.replace("%20", "+")):
        yield form
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form)


def _binary_forms(raw: bytes) -> Iterator[str]:
    yield raw.hex()
    yield raw.hex().upper()
    for lead in range(3):  # the bytes before it shift the groups of three bytes
        text = base64.b64encode(b"\0" * lead + raw).decode()
        # only characters that no neighbouring byte contributes to
        core = text[-(-8 * lead // 6) : 8 * (lead + len(raw)) // 6]
        if len(core) >= _MIN_CORE_CHARS:
            yield core
            yield core.replace("+", "-").replace("/", "_")
