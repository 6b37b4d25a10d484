"""A model that answers from a script: for tests, for demos, and for trying a runtime without a provider."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from taoloop.core.effects import ModelRequest
from taoloop.core.message import Delta, ModelReply, ToolCallText, Usage
from taoloop.errors import ConfigError, ScriptExhausted, ScriptUnused
from taoloop.translation import Translator, mark

translate = Translator("models")

Reply = str | Mapping[str, Any] | ModelReply
"""A scripted reply: a text, a mapping with `text` and `tool_calls`, a decision as a mapping, or a `ModelReply`."""

_KEYS = {"text", "tool_calls", "finish_reason", "usage", "cost_usd"}
_CALL_KEYS = {"name", "args", "id"}
_PIECE_CHARS = 8


class ScriptedModel:
    """Answers with the replies of a script in order: reply n to the n-th request of each run.

    The position follows from the run and not from the model, so one script serves any number of runs, at once or
    after a resume. A reply is a text, or a mapping with `text` and `tool_calls` (each with `name` and `args`; a
    text as `args` is sent as it is, so that broken arguments can be scripted), or a `ModelReply`. A mapping that is a
    decision, such as `{"thought": …, "action": …, "action_input": …}`, is that object as JSON.

    Asking for more replies than the script has is an error (the run ends as `model_failed`), and so is a run that
    completes with replies left over. A run that a limit ended may leave replies.

    Where a listener waits for the pieces of a reply, it gets them first, all at once. `spec` is `scripted`, or
    `scripted:FILE`.
    """

    def __init__(self, replies: Sequence[Reply], *, spec: str = "scripted", strict: bool = True) -> None:
        if isinstance(replies, str) or not isinstance(replies, Sequence):
            hint = translate("Write a list; each entry is a text, or a mapping with `text` and `tool_calls`.")
            text = mark("The script {spec!r} is {kind}, not a list of replies.")
            raise ConfigError(translate(text, spec=spec, kind=_kind(replies)), hint=hint)
        self._replies = tuple(reply_from(reply, number, spec) for number, reply in enumerate(replies, 1))
        self.spec, self.reads_prompts, self._strict = spec, False, strict

    @classmethod
    def from_file(cls, path: Path | str) -> ScriptedModel:
        """The script in a YAML or JSON file.

        Raises:
            ConfigError: the file cannot be read or is no list of replies; names file and place.
        """
        import yaml  # noqa: PLC0415  # only scripts in files need it

        try:
            content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            reason = error.strerror or error
            message = translate("The script {path!r} cannot be read: {reason}.", path=str(path), reason=reason)
            raise ConfigError(message, hint=translate("Check the path.")) from error
        except UnicodeDecodeError as error:
            message = translate("The script {path!r} is not UTF-8 text.", path=str(path))
            raise ConfigError(message, hint=translate("Save it as UTF-8.")) from error
        except yaml.YAMLError as error:
            text = mark("The script {path!r} is not YAML or JSON: {error}.")
            raise ConfigError(translate(text, path=str(path), error=error)) from error
        return cls(content, spec=f"scripted:{path}")

    @property
    def dialect(self) -> str:
        """The dialect in which the script is written, as far as its replies show."""
        if any(reply.tool_calls for reply in self._replies):
            return "native"
        texts = [reply.text.lstrip() for reply in self._replies]
        if texts and _are_json_decisions(texts):
            return "json"
        labels = ("thought", "action", "final", "思考", "行动", "动作", "最终")
        return "text" if any(text.lower().startswith(labels) for text in texts) else "native"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The script's reply for this turn of the run."""
        if request.turn >= len(self._replies):
            raise ScriptExhausted(
                f"The script {self.spec!r} has {_count(len(self._replies))}; the run asked for one more "
                f"({request.purpose})."
            )
        reply = self._replies[request.turn]
        if request.on_delta is not None:
            for delta in pieces(reply):
                request.on_delta(delta)
        return reply

    def check_used(self, replies: int) -> None:
        """Refuse a completed run that used fewer replies than the script has."""
        if self._strict and replies < len(self._replies):
            raise ScriptUnused(
                f"The run completed after {_count(replies)}; the script {self.spec!r} has {len(self._replies)}.",
                hint="Shorten the script, or see in the trace why the run ended early.",
            )

    async def close(self) -> None:
        """Nothing to close."""


def _are_json_decisions(texts: Sequence[str]) -> bool:
    """Whether replies are JSON objects that decide something, alone or behind a remark; a broken one may be one."""
    from taoloop.dialects.parsing.json_decision import given_roles  # noqa: PLC0415  # a run has it, an import does not
    from taoloop.dialects.parsing.json_repair import parse_value  # noqa: PLC0415  # as above
    from taoloop.dialects.parsing.strict_json import NotJsonError  # noqa: PLC0415  # as above

    def decides(text: str) -> bool | None:
        """None: the object cannot be read."""
        if (start := text.find("{")) < 0:
            return False
        try:
            roles = given_roles(parse_value(text, start).value)
        except NotJsonError:
            return None
        return "final" in roles or "thought" in roles or {"tool", "args"} <= roles.keys()

    found = [decides(text) for text in texts]
    if all(text.startswith(("{", "```")) for text in texts):
        return any(decision is not False for decision in found)
    return all(found)


def pieces(reply: ModelReply) -> Iterator[Delta]:
    """A reply as a streaming model would hand it over: thinking, text, and then each call, its arguments in parts."""
    yield from (Delta(kind="thinking", text=part) for part in _parts(reply.thinking))
    yield from (Delta(kind="text", text=part) for part in _parts(reply.text))
    for index, call in enumerate(reply.tool_calls):
        for part in _parts(call.arguments):
            yield Delta(kind="call", text=part, index=index, name=call.name)
        yield Delta(kind="call", index=index, name=call.name, done=True)


def _parts(text: str) -> Iterator[str]:
    return (text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS))


def reply_from(reply: Reply, number: int, spec: str) -> ModelReply:
    """The reply that an entry of a script stands for; `number` and `spec` name it in errors.

    Raises:
        ConfigError: it is neither a text nor a mapping with known keys.
    """
    if isinstance(reply, ModelReply):
        return reply
    if isinstance(reply, str):
        return ModelReply(text=reply, finish_reason="stop", model=spec, cost_usd=0.0)
    where = translate("Reply {number} of the script {spec!r}", number=number, spec=spec)
    if not isinstance(reply, Mapping):
        raise ConfigError(
            translate("{where} is {kind}.", where=where, kind=_kind(reply)),
            hint=translate("Write a text, or a mapping."),
        )
    if not set(reply) & _KEYS and _are_json_decisions([text := json.dumps(reply, ensure_ascii=False, default=str)]):
        return ModelReply(text=text, finish_reason="stop", model=spec, cost_usd=0.0)
    if unknown := set(reply) - _KEYS:
        raise _unknown_key(where, unknown, _KEYS)
    calls = reply.get("tool_calls") or ()
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise ConfigError(translate("{where}: tool_calls is no list.", where=where))
    tool_calls = tuple(_tool_call(call, index, where) for index, call in enumerate(calls, 1))
    usage = reply.get("usage") or {}
    try:
        counted = Usage(**usage)
    except TypeError as error:
        text = mark("{where}: usage takes input_tokens, output_tokens and cached_tokens.")
        raise ConfigError(translate(text, where=where)) from error
    return ModelReply(
        text=str(reply.get("text") or ""),
        tool_calls=tool_calls,
        finish_reason=reply.get("finish_reason") or ("tool_calls" if tool_calls else "stop"),
        model=spec,
        usage=counted,
        cost_usd=reply.get("cost_usd", 0.0),
    )


def _tool_call(call: Any, index: int, where: str) -> ToolCallText:
    where = translate("{where}: tool call {index}", where=where, index=index)
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise ConfigError(translate("{where} has no name.", where=where), hint=translate("Write `name` and `args`."))
    if unknown := set(call) - _CALL_KEYS:
        raise _unknown_key(where, unknown, _CALL_KEYS)
    args = call.get("args", {})
    arguments = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)
    return ToolCallText(name=call["name"], arguments=arguments, id=call.get("id"))


def _unknown_key(where: str, unknown: set[Any], known: set[str]) -> ConfigError:
    message = translate("{where} has the unknown key {key!r}.", where=where, key=min(map(str, unknown)))
    return ConfigError(message, hint=translate("Known: {names}.", names=", ".join(sorted(known))))


_KINDS: tuple[tuple[Any, str], ...] = (
    (type(None), mark("empty")),
    (bool, mark("true or false")),
    (str, mark("a text")),
    (int | float, mark("a number")),
    (Mapping, mark("a mapping")),
    (Sequence, mark("a list")),
)
"""What a value of YAML may be, in plain words."""


def _kind(value: object) -> str:
    """A value that is not what was expected, in plain words."""
    name = next((name for kind, name in _KINDS if isinstance(value, kind)), mark("of the type {kind}"))
    return translate(name, kind=type(value).__name__)


def _count(replies: int) -> str:
    return f"{replies} repl{'y' if replies == 1 else 'ies'}"
