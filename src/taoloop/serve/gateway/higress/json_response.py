"""`jsonResp` of an `ai-agent` file: the final answer rewritten as JSON by one more model call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from taoloop.config.settings_reader import SettingsReader
from taoloop.core.agent_spec import Limits
from taoloop.core.events import RunStarted
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, RunExists, ToolSourceError
from taoloop.policy import tainted
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.engine.clock import new_nonce
from taoloop.runtime.output_type import OutputValidator
from taoloop.runtime.result import Result
from taoloop.serve.texts import TEXTS
from taoloop.tools.openapi.document import parse_values

if TYPE_CHECKING:
    from taoloop.journals.base import Journal
    from taoloop.runtime.runner import Listener
    from taoloop.serve.gateway.config.model import ServedAgent


def response_schema(value: Any, _reader: SettingsReader) -> dict[str, Any]:
    """The JSON Schema in a mapping, or in a text in JSON or YAML.

    Raises:
        ConfigError: it is neither a mapping nor a text with one in JSON or YAML, or not a valid JSON Schema.
    """
    if isinstance(value, str):
        try:
            value = parse_values(value.encode(), "the text")
        except ToolSourceError as error:
            raise ConfigError(error.message) from None
    if not isinstance(value, dict):
        raise ConfigError("a JSON Schema is expected: a mapping, or a text that holds one in JSON or YAML.")
    return OutputValidator(value).schema


async def rewrite_as_json(
    served: ServedAgent, journal: Journal, result: Result, on_event: Listener | None = None
) -> Result:
    """A separate run without tools, whose answer is the same as JSON that matches the schema.

    A reply that does not match is sent back once. Where that fails, the status of the returned run says so.
    """
    if served.reshape is None or result.answer is None:
        raise ValueError("nothing to reshape")  # a bug of the caller
    outer = result.trace
    language = outer.agent.language
    writer = Agent(
        model=bind(served.agent).model,
        name=f"{outer.agent.name}-json",
        strategy="standard",
        dialect="native",
        language=language,
        output_type=dict(served.reshape.schema or {"type": "object"}),
        limits=Limits(max_steps=1),
        closing_turn=False,
        max_output_tokens=outer.agent.max_output_tokens,
        model_timeout_s=served.agent.model_timeout_s,
        journal=journal,
        secrets=served.agent.secrets,
    )
    task = TEXTS.text(language, "rewrite_as_json", question=outer.task, answer=result.answer)
    labels = outer.started.labels if outer.started is not None else {}
    started = RunStarted(
        task=task,
        agent=replace(writer.spec_for(task), temperature=0.0),
        nonce=new_nonce(),
        parent=outer.run_id,
        depth=1,
        tainted=tainted(outer),
        labels=labels,
    )
    run_id = f"{outer.run_id}.json"
    try:
        return await bind(writer).start(journal, Trace(run_id), started, listener=on_event)
    except RunExists:  # the client repeats its request, or left in the meantime
        trace = Trace(run_id, await journal.load(run_id))
        return Result.of(trace) if trace.status == "completed" else await writer.resume(run_id, on_event=on_event)
