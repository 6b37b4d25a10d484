"""Record and replay: real replies once, and the same replies without a network from then on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import unified_diff
from itertools import takewhile
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from taoloop.core.cards.tool_search import listed_cards
from taoloop.core.effects import ModelRequest
from taoloop.core.message import Message, ModelReply, Purpose, ToolCallText, Usage
from taoloop.core.text import replace_surrogates
from taoloop.dialects.prompt import describe
from taoloop.errors import ConfigError, ReplayDiverged
from taoloop.models.base import Model, is_language_model, reads_pdf, reads_prompts, reply_deltas, sees_images
from taoloop.models.providers import knows_vision
from taoloop.models.real_call_switch import forbidden_by
from taoloop.models.registry import is_provider, resolve_model
from taoloop.tools.json_schema import plain

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_SECRET_CHARS = 8
_KEY_CHARS = 16


class RequestMasks:
    """Texts that differ from run to run or must not be recorded, each with its placeholder.

    These are the nonce and the ids of the run, which a recorded reply gets again, the values of variables that are
    named like secrets, and what fits `ignore`.
    """

    def __init__(self, request: ModelRequest, env: Mapping[str, str] | None, ignore: Sequence[re.Pattern[str]]) -> None:
        started = request.trace.started
        ids = [(request.trace.run_id, "⟨run⟩")]
        if started is not None:
            ids = [(started.nonce, "⟨nonce⟩"), *ids, (started.parent or "", "⟨parent⟩")]
        variables = os.environ if env is None else env
        secrets = [(value, f"⟨{name}⟩") for name, value in variables.items() if _SECRET_NAME.search(name)]
        self._ids = [pair for pair in ids if len(pair[0]) >= _SECRET_CHARS]
        self._secrets = sorted(
            (pair for pair in secrets if len(pair[0]) >= _SECRET_CHARS), key=lambda pair: -len(pair[0])
        )
        self._ignored = ignore

    def hide(self, text: str) -> str:
        """The text as it may be recorded."""
        text = replace_surrogates(text)
        for value, mask in (*self._secrets, *self._ids):
            text = text.replace(value, mask)
        for pattern in self._ignored:
            text = pattern.sub("⟨…⟩", text)
        return text

    def show(self, text: str) -> str:
        """A recorded text with the ids of this run; secrets stay hidden."""
        for value, mask in self._ids:
            text = text.replace(mask, value)
        return text


def _with_texts(reply: ModelReply, change: Callable[[str], str]) -> ModelReply:
    calls = tuple(replace(call, arguments=change(call.arguments)) for call in reply.tool_calls)
    return replace(reply, text=change(reply.text), tool_calls=calls)


@dataclass(frozen=True, slots=True)
class RequestKey:
    """One request as plain data that is the same in every run of the same test."""

    key: str
    """The digest of everything else, under which replies are recorded."""

    about: Mapping[str, Any]
    """Everything except messages and tools."""

    tools: list[dict[str, Any]]
    """The tools, where the API gets them apart from the prompt."""

    messages: list[dict[str, Any]]
    """The messages."""

    @classmethod
    def of(cls, request: ModelRequest, spec: str, masks: RequestMasks) -> RequestKey:
        """The request to the model `spec`. Time limits do not count: they do not change what is asked."""
        sampling = {
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_output_tokens": request.max_output_tokens,
            "stop": list(request.stop) or None,
            "reply_schema": plain(request.reply_schema),
        }
        about: dict[str, Any] = {"model": spec, "dialect": request.dialect, "purpose": request.purpose}
        about |= {name: value for name, value in sampling.items() if value is not None}
        if request.purpose == "sample":  # samples are asked for in the same words, and each has its own reply
            about["sample"] = request.trace.samples + 1
        cards = listed_cards(request.tools) if request.native else ()  # else the prompt describes them
        tools = [
            {"name": card.name, "description": describe(card), "parameters": plain(card.input_schema)} for card in cards
        ]
        messages = [_message(message, masks) for message in request.messages]
        return cls(digest([about, tools, messages]), about, tools, messages)

    def lines(self) -> list[str]:
        """The request as lines of text, to be compared with another."""
        lines = [f"{name}: {value}" for name, value in self.about.items()]
        lines += [f"tool {tool['name']}: {json.dumps(tool, ensure_ascii=False)}" for tool in self.tools]
        for message in self.messages:
            body = [*str(message["content"]).splitlines(), *map(str, message.get("tool_calls", ()))]
            lines += [f"[{message['role']}] {line}" for line in body]
        return lines


def digest(value: Any) -> str:
    """A short name for data: the same for the same JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_CHARS]


def _message(message: Message, masks: RequestMasks) -> dict[str, Any]:
    masked: dict[str, Any] = {"role": message.role, "content": masks.hide(message.content)}
    if message.tool_calls:
        masked["tool_calls"] = [
            {"name": call.name, "arguments": masks.hide(call.arguments)} | ({} if call.id is None else {"id": call.id})
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        masked["tool_call_id"] = message.tool_call_id
    return masked


VERSION = 1
_DIFF_LINES = 14
_DIFF_CHARS = 160
_PROCESS_LOCK = Lock()


Exchanges = dict[str, tuple[RequestKey, tuple[ModelReply, ...]]]
"""Requests by their key, each with the replies in the order in which they came."""


class Recording:
    """The exchanges of one file. Several recorders, in several processes, may add to it at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._exchanges: Exchanges = {}
        self._load()

    @property
    def first(self) -> RequestKey | None:
        """The first request, if there is any."""
        return next((request for request, _ in self._exchanges.values()), None)

    def has(self, purpose: Purpose) -> bool:
        """Whether a request of this purpose was recorded."""
        return any(request.about["purpose"] == purpose for request, _ in self._exchanges.values())

    def replies(self, key: str) -> tuple[ModelReply, ...]:
        """The replies to a request; empty if it was not recorded."""
        return self._exchanges[key][1] if key in self._exchanges else ()

    def add(self, request: RequestKey, reply: ModelReply, *, replace: bool) -> None:
        """Add a reply to those to the same request, or `replace` them, and write the file."""
        with _PROCESS_LOCK, _lock_folder(self.path):
            self._load()
            before = () if replace else self.replies(request.key)
            self._exchanges[request.key] = (request, (*before, reply))
            _write(self.path, _to_document(self._exchanges))

    def difference(self, request: RequestKey) -> str:
        """How a request differs from the one recorded that is most like it, in a few lines."""
        if not self._exchanges:
            return "Nothing is recorded there."
        nearest = max(
            (recorded for recorded, _ in self._exchanges.values()),
            key=lambda candidate: _similarity(candidate, request),
        )
        lines = list(unified_diff(nearest.lines(), request.lines(), "recorded", "asked", n=0, lineterm=""))[2:]
        lines = [
            line if len(line) <= _DIFF_CHARS else f"{line[: _DIFF_CHARS - 1]}…" for line in lines if line[0] in "+-"
        ]
        more = [f"… and {len(lines) - _DIFF_LINES} more lines"] if len(lines) > _DIFF_LINES else []
        return "\n".join(
            [f"It differs from the recorded request {nearest.key} (-) so (+):", *lines[:_DIFF_LINES], *more]
        )

    def _load(self) -> None:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"The recording {str(self.path)!r} cannot be read: {error}.") from error
        try:
            self._exchanges = _exchanges(_parse_file(self.path, text))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            why = " ".join(str(error).split()) if isinstance(error, ValueError) else f"it has another form ({error})"
            raise ConfigError(
                f"The recording {str(self.path)!r} cannot be read: {why}.",
                hint="Correct it, or delete it and record it again.",
            ) from error


def _similarity(candidate: RequestKey, other: RequestKey) -> tuple[int, int, int]:
    """How many messages in a row are the same from the beginning, and what else is."""
    pairs = zip(candidate.messages, other.messages, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    about = sum(candidate.about.get(name) == value for name, value in other.about.items())
    return same, about + (candidate.tools == other.tools), -abs(len(candidate.messages) - len(other.messages))


def _to_document(exchanges: Exchanges) -> dict[str, Any]:
    """The content of the file. What a request shares with an earlier one is written once."""
    toolsets: dict[str, Any] = {}
    prefixes: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    for request, replies in exchanges.values():
        ends = [digest(request.messages[:length]) for length in range(len(request.messages) + 1)]
        shared = next((n for n in range(len(ends) - 1, 0, -1) if ends[n] in prefixes), 0)
        row: dict[str, Any] = {"key": request.key, **request.about}
        if request.tools:
            row["tools"] = digest(request.tools)
            toolsets[row["tools"]] = request.tools
        if shared:
            row["after"] = prefixes[ends[shared]]
        reply_rows = [_reply_row(reply) for reply in replies]
        rows.append(row | {"messages": request.messages[shared:], "replies": reply_rows})
        prefixes.setdefault(ends[-1], request.key)
    return {"recording": VERSION} | ({"tools": toolsets} if toolsets else {}) | {"exchanges": rows}


def _exchanges(content: Any) -> Exchanges:
    if not isinstance(content, Mapping) or "recording" not in content:
        raise ValueError("it is no recording")
    if content["recording"] != VERSION:
        raise ValueError(f"it has the version {content['recording']!r}, this taoloop reads {VERSION}")
    toolsets = content.get("tools") or {}
    by_key: Exchanges = {}
    for row in content["exchanges"]:
        rest = dict(row)
        key, replies = rest.pop("key"), tuple(_reply(reply) for reply in rest.pop("replies"))
        before = by_key[rest.pop("after")][0].messages if "after" in rest else []
        messages = before + rest.pop("messages")
        tools = toolsets[rest.pop("tools")] if "tools" in rest else []
        by_key[key] = (RequestKey(key, rest, tools, messages), replies)
    return by_key


def _reply_row(reply: ModelReply) -> dict[str, Any]:
    """The fields of a reply that say something."""
    default = asdict(ModelReply())
    row = {name: value for name, value in asdict(reply).items() if value != default[name]}
    return {name: [*value] if isinstance(value, tuple) else value for name, value in row.items()} or {"text": ""}


def _reply(row: Mapping[str, Any]) -> ModelReply:
    calls = tuple(ToolCallText(**call) for call in row.get("tool_calls", ()))
    return ModelReply(**{**row, "tool_calls": calls, "usage": Usage(**row.get("usage", {}))})


def _parse_file(path: Path, text: str) -> Any:
    if path.suffix.lower() == ".json":
        return json.loads(text)
    import yaml  # noqa: PLC0415  # only recordings in YAML need it

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _format_file(path: Path, content: Mapping[str, Any]) -> str:
    if path.suffix.lower() == ".json":
        return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    import yaml  # noqa: PLC0415  # as above

    class Dumper(yaml.SafeDumper):
        """Texts of several lines as blocks, and nothing by reference."""

        def ignore_aliases(self, _data: Any) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        lines = value.split("\n")
        style = None if len(lines) == 1 else "|"
        if not all(line.isprintable() for line in lines):  # what YAML would fold or read as a line break
            style = '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return yaml.dump(content, Dumper=Dumper, allow_unicode=True, sort_keys=False, width=120)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    """Replace the file as a whole, or leave the old one."""
    temporary = path.with_name(f".{path.name}.new")  # the folder is locked: nobody else writes it
    data = _format_file(path, content).encode()
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600)  # what a model was told is for its owner
    temporary.write_bytes(data)
    temporary.replace(path)


@contextlib.contextmanager
def _lock_folder(path: Path) -> Iterator[None]:
    """Keep other processes from changing files in the folder of `path`, where the system has such locks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl  # noqa: PLC0415  # Windows has none; there, record in one process
    except ImportError:
        yield
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


Mode = Literal["auto", "record", "replay"]


class Recorder:
    """A model that records what another one answers in a file, and answers from that file.

    `model` is a model or a spec such as `openai:NAME`; from a spec it is made (and needs its key) only when it is
    called. `path` ends with .yaml, .yml or .json. Modes: `auto` answers what is recorded, and asks and records the
    rest, unless real calls are forbidden; `replay` never asks; `record` always asks, and replaces what was recorded
    for the same request.

    A request is known by everything that the model sees: messages, tools, sampling, purpose, model; of samples that are
    voted on also the number. What differs from run to run (the nonce, ids of runs) does not count, nor do time limits,
    nor texts that fit a regular expression in `ignore`, such as a date. Values of environment variables that are named
    like a secret (KEY, TOKEN, PASSWORD …) are not written; look at the file before you share it nevertheless. The order
    of requests does not matter, and runs may overlap; a request that was recorded several times gets its replies in
    their order, then the last one again.
    """

    def __init__(
        self,
        model: Model | str | None,
        path: Path | str,
        *,
        mode: Mode = "auto",
        ignore: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._path = Path(path)
        if self._path.suffix.lower() not in (".yaml", ".yml", ".json"):
            raise ConfigError(f"The recording {str(path)!r} has no known form.", hint="Name a .yaml or .json file.")
        if mode not in ("auto", "record", "replay"):
            raise ConfigError(f"There is no mode {mode!r}.", hint="Modes: auto, record, replay.")
        if model is None and mode == "record":
            raise ConfigError("There is no model to record.", hint="Give one, or the mode replay.")
        self._model, self._mode, self._ignore, self._env = model, mode, _patterns(ignore), env
        self._recording = Recording(self._path)
        self._asked: Counter[str] = Counter()

    @property
    def spec(self) -> str:
        """That of the model; without one, that of the first recorded request."""
        if isinstance(self._model, str):
            return self._model
        if self._model is not None:
            return self._model.spec
        first = self._recording.first
        return "recorded" if first is None else str(first.about["model"])

    @property
    def dialect(self) -> str:
        """That of the first recorded request; without any, that of the model."""
        first = self._recording.first
        return str(first.about["dialect"]) if first is not None else self._real().dialect

    @property
    def is_language_model(self) -> bool:
        """Whether the model is one, as far as that is known; without a model, whether the recording shows it."""
        if isinstance(self._model, str):
            return is_provider(self._model)
        if self._model is not None:
            return is_language_model(self._model)
        return self._recording.has("pin")

    @property
    def sees_images(self) -> bool:
        """Whether the model sees images, as far as that is known; a recording alone needs none of their bytes."""
        if isinstance(self._model, str):
            return is_provider(self._model) and knows_vision(self._model.partition(":")[2])
        return sees_images(self._model)

    @property
    def reads_pdf(self) -> bool:
        """Whether the model reads PDFs, as far as that is known."""
        return reads_pdf(self._model)

    @property
    def reads_prompts(self) -> bool:
        """Whether a model may be asked; a recording alone replies by its order."""
        return self._model is not None and reads_prompts(self._model)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The recorded reply, or the model's.

        Raises:
            ReplayDiverged: the request is not recorded, and the model may not be asked; says what differs from the
                recorded request that is most like it.
        """
        masks = RequestMasks(request, self._env, self._ignore)
        key = RequestKey.of(request, self.spec, masks)
        times = self._asked[key.key]
        self._asked[key.key] += 1
        recorded = self._recording.replies(key.key)
        if recorded and self._mode != "record":
            reply = _with_texts(recorded[min(times, len(recorded) - 1)], masks.show)
            if request.on_delta is not None:
                for delta in reply_deltas(reply):
                    request.on_delta(delta)
            return reply
        if why := self._not_asked():
            raise ReplayDiverged(
                f"This request ({request.purpose}, turn {request.turn}) is not recorded in {str(self._path)!r}, and "
                f"{why}. Record it with mode='auto', or see why the run asks something else now. "
                f"{self._recording.difference(key)}"
            )
        reply = await self._real().complete(request)
        masked = replace(_with_texts(reply, masks.hide), thinking="")
        self._recording.add(key, masked, replace=self._mode == "record" and times == 0)
        return reply

    def check_used(self, replies: int) -> None:
        """Passed on to the model, if it answers."""
        if self._mode != "replay" and not isinstance(self._model, str | None):
            self._model.check_used(replies)

    async def close(self) -> None:
        """Close the model, if there is one."""
        if not isinstance(self._model, str | None):
            await self._model.close()

    def _not_asked(self) -> str:
        """Why the model is not asked; an empty text if it is."""
        if self._mode == "replay":
            return "mode='replay' never asks"
        if self._model is None:
            return "there is no model to ask"
        by = forbidden_by(self._env)
        return f"real calls are forbidden by {by}" if by and self._mode == "auto" else ""

    def _real(self) -> Model:
        if self._model is None:
            raise ConfigError(
                f"Nothing is recorded in {str(self._path)!r}, and there is no model.", hint="Record it with a model."
            )
        if isinstance(self._model, str):
            self._model = resolve_model(self._model, os.environ if self._env is None else self._env)
        return self._model


def _patterns(ignore: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    patterns = [ignore] if isinstance(ignore, str) else ignore
    try:
        return tuple(re.compile(pattern) for pattern in patterns)
    except re.error as error:
        raise ConfigError(f"ignore={ignore!r} holds no regular expressions: {error}.") from error
