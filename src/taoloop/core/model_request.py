"""One question to a model: the prompt, and the facts that it was made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.fast_dataclass import fast_constructor
from taoloop.core.message import Delta, Message, Purpose
from taoloop.core.trace import Trace


@dataclass(slots=True, kw_only=True)
class ModelRequest:
    """One question to a model.

    `messages` is the prompt. `tools` are the cards on offer; `native` says that the provider should get them as
    tools of its API (otherwise the prompt already holds them). `task`, `trace` and `dialect` let a model that
    does not read prose (scripted, replay, offline) work from the facts. `turn` counts the replies that the run
    has had so far. `timeout_s` None means no limit. `reply_schema` is a JSON Schema that the text of the reply must
    fit; a provider with structured output is asked to keep to it, others have it in the prompt. `on_delta` is called
    with each piece of the reply by models that can stream; the reply itself is returned whole all the same.
    """

    task: str
    trace: Trace
    messages: tuple[Message, ...]
    dialect: str
    tools: tuple[ToolCard, ...] = ()
    native: bool = False
    purpose: Purpose = "decide"
    turn: int = 0
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    stop: tuple[str, ...] = ()
    timeout_s: float | None = None
    reply_schema: Mapping[str, Any] | None = None
    on_delta: Callable[[Delta], None] | None = None


new_model_request = fast_constructor(ModelRequest)
