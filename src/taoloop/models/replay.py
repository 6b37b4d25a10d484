"""A model that answers with the replies of a recorded run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from taoloop.core.effects import ModelRequest
from taoloop.core.events import Fact, ModelErred, ModelReplied, RunStarted
from taoloop.core.message import SIDE_PURPOSES, ModelReply
from taoloop.core.stored_events import fact_of_record
from taoloop.errors import ConfigError, JournalCorrupt, ModelContextOverflow, ModelError, ReplayDiverged
from taoloop.translation import Translator, mark

translate = Translator("models")

_HINT = mark("Record one with: tao show RUN_ID --json > FILE")


def read_records(path: Path | str) -> Iterator[tuple[int, Mapping[str, Any], Fact]]:
    """The events in a file of JSON lines, as `tao show RUN --json` prints them: line number, record and fact of each.

    Raises:
        ConfigError: the file cannot be read, or a line of it is no event.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        not_text = translate("it is not UTF-8 text")
        reason = not_text if isinstance(error, UnicodeDecodeError) else error.strerror or error
        message = translate("The recorded run {path!r} cannot be read: {reason}.", path=str(path), reason=reason)
        raise ConfigError(message, hint=translate(_HINT)) from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            yield number, record, fact_of_record(record)
        except (ValueError, KeyError, TypeError, AttributeError, JournalCorrupt) as error:
            raise not_an_event(path, number, error) from error


def not_an_event(path: Path | str, number: int, error: Exception) -> ConfigError:
    """The error for a line that is no event."""
    message = translate("{where}: this line is no event of a run: {error}.", where=f"{path}:{number}", error=error)
    return ConfigError(message, hint=translate(_HINT))


class ReplayModel:
    """Answers with the replies and errors of a recorded run in their order; the tools are called for real.

    For a replay that touches nothing, see `taoloop.runtime.after.replay`.

    Attributes:
        spec: `replay`, or `replay:FILE`.
        dialect: The dialect of the recorded run.
        is_language_model: Whether the recorded run asked its model what the task calls for: then it is asked again.
        reads_prompts: Never: the replies come in their order.
    """

    def __init__(self, facts: Iterable[Fact], *, spec: str = "replay") -> None:
        self.spec, self.dialect, self.is_language_model, self.reads_prompts = spec, "native", False, False
        self._replies: list[ModelReplied | ModelErred] = []
        for fact in facts:
            if isinstance(fact, RunStarted):
                self.dialect = fact.agent.dialect
                self.is_language_model = fact.agent.policy.pin == "model"
            elif isinstance(fact, ModelReplied | ModelErred):
                self._replies.append(fact)

    @classmethod
    def from_file(cls, path: Path | str) -> ReplayModel:
        """The run in a file of JSON lines, as `tao show RUN --json` prints it.

        Raises:
            ConfigError: the file cannot be read, or a line of it is no event.
        """
        facts = [fact for _, _, fact in read_records(path)]
        return cls(facts, spec=f"replay:{path}")

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The recorded reply for this turn."""
        turn = request.turn + request.trace.model_errors
        if turn >= len(self._replies):
            raise ReplayDiverged(
                f"The recorded run has {len(self._replies)} replies; this run asked for one more ({request.purpose})."
            )
        recorded = self._replies[turn]
        if recorded.purpose != request.purpose and {recorded.purpose, request.purpose} & {*SIDE_PURPOSES}:
            raise ReplayDiverged(
                f"The recorded run was asked for {recorded.purpose!r} here, this one for {request.purpose!r}.",
                hint="Give the agent the same context_tokens and policy as the recorded one.",
            )
        if isinstance(recorded, ModelErred):
            overflow = recorded.code == ModelContextOverflow.code
            raise ModelContextOverflow(recorded.message) if overflow else ModelError(recorded.message)
        return ModelReply(
            text=recorded.text,
            tool_calls=recorded.tool_calls,
            finish_reason=recorded.finish_reason,
            model=recorded.model,
            usage=recorded.usage,
            cost_usd=0.0,
            thinking=recorded.thinking,
        )

    def check_used(self, replies: int) -> None:
        """Refuse a completed run that needed fewer replies than the recorded one."""
        recorded = sum(isinstance(fact, ModelReplied) for fact in self._replies)
        if replies < recorded:
            raise ReplayDiverged(f"The run completed after {replies} of {recorded} recorded replies.")

    async def close(self) -> None:
        """Nothing to close."""
