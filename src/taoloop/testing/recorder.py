"""Record and replay: real replies once, and the same replies without a network from then on."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply
from taoloop.errors import ConfigError, ReplayDiverged
from taoloop.models.base import Model, is_language_model, reply_deltas
from taoloop.models.real_call_switch import forbidden_by
from taoloop.models.registry import is_provider, resolve_model
from taoloop.testing.recording import Recording, RequestKey, RequestMasks

Mode = Literal["auto", "record", "replay"]


class Recorder:
    """A model that records what another one answers in a file, and answers from that file.

    `model` is a model or a spec such as `openai:NAME`; from a spec it is made (and needs its key) only when it is
    called. `path` ends with .yaml, .yml or .json. Modes: `auto` answers what is recorded, and asks and records the
    rest, unless real calls are forbidden; `replay` never asks; `record` always asks, and replaces what was recorded
    for the same request.

    A request is known by everything that the model sees: messages, tools, sampling, purpose, model. What differs from
    run to run (the nonce, ids of runs) does not count, nor do time limits, nor texts that fit a regular expression in
    `ignore`, such as a date. Values of environment variables that are named like a secret (KEY, TOKEN, PASSWORD …) are
    not written; look at the file before you share it nevertheless. The order of requests does not matter, and runs may
    overlap; a request that was recorded several times gets its replies in their order, then the last one again.
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

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The recorded reply, or the model's.

        Raises:
            ReplayDiverged: the request is not recorded, and the model may not be asked; says what differs from the
                recorded request that is most like it.
        """
        masks = RequestMasks.of(request, self._env, self._ignore)
        key = RequestKey.of(request, self.spec, masks)
        times = self._asked[key.key]
        self._asked[key.key] += 1
        recorded = self._recording.replies(key.key)
        if recorded and self._mode != "record":
            reply = masks.mask_reply(recorded[min(times, len(recorded) - 1)])
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
        self._recording.add(key, masks.hidden(reply), replace=self._mode == "record" and times == 0)
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
