"""A model that answers with the replies of a recorded run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from taoloop.core.effects import ModelRequest
from taoloop.core.events import Fact, ModelErred, ModelReplied, RunStarted
from taoloop.core.message import ModelReply
from taoloop.core.stored_events import fact_of_record
from taoloop.errors import ConfigError, JournalCorrupt, ModelContextOverflow, ModelError, ReplayDiverged


class ReplayModel:
    """Gives the recorded replies, and the errors between them, in their order; the tools are called for real.

    For a replay that touches nothing, see `taoloop.runtime.after.replay`.
    """

    def __init__(self, facts: Iterable[Fact], *, spec: str = "replay") -> None:
        self._spec, self._dialect, self._was_asked = spec, "native", False
        self._replies: list[ModelReplied | ModelErred] = []
        for fact in facts:
            if isinstance(fact, RunStarted):
                self._dialect = fact.agent.dialect
                self._was_asked = fact.agent.policy.pin == "model"
            elif isinstance(fact, ModelReplied | ModelErred):
                self._replies.append(fact)

    @classmethod
    def from_file(cls, path: Path | str) -> ReplayModel:
        """The run in a file of JSON lines, as `tao show RUN --json` prints it.

        Raises:
            ConfigError: the file cannot be read, or a line of it is no event.
        """
        facts: list[Fact] = []
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            why = error.strerror or error
            raise ConfigError(
                f"The recorded run {str(path)!r} cannot be read: {why}.",
                hint="Check the path, or record one with: tao show RUN_ID --json > FILE",
            ) from error
        except UnicodeDecodeError as error:
            raise ConfigError(
                f"The recorded run {str(path)!r} is not UTF-8 text.",
                hint="Record one with: tao show RUN_ID --json > FILE",
            ) from error
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                facts.append(fact_of_record(json.loads(line)))
            except (ValueError, KeyError, TypeError, JournalCorrupt) as error:
                raise ConfigError(
                    f"{path}:{number}: this line is no event of a run: {error}.",
                    hint="Record one with: tao show RUN_ID --json > FILE",
                ) from error
        return cls(facts, spec=f"replay:{path}")

    @property
    def spec(self) -> str:
        """`replay`, or `replay:FILE`."""
        return self._spec

    @property
    def dialect(self) -> str:
        """The dialect of the recorded run."""
        return self._dialect

    @property
    def is_language_model(self) -> bool:
        """Whether the recorded run asked its model what the task calls for: then it is asked again."""
        return self._was_asked

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The recorded reply for this turn."""
        turn = request.turn + request.trace.model_errors
        if turn >= len(self._replies):
            raise ReplayDiverged(
                f"The recorded run has {len(self._replies)} replies; this run asked for one more ({request.purpose})."
            )
        recorded = self._replies[turn]
        if recorded.purpose != request.purpose and {recorded.purpose, request.purpose} & {"compact", "pin", "read"}:
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
        """Nothing to let go of."""
