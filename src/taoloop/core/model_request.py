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
    """One question to a model."""

    task: str
    """What the user asked."""
    trace: Trace
    """The run so far; with `task` and `dialect` it lets a model that does not read prose (scripted, replay, offline)
    work from the facts."""
    messages: tuple[Message, ...]
    """The prompt."""
    dialect: str
    """How the decision is to be written."""
    tools: tuple[ToolCard, ...] = ()
    """The cards on offer."""
    native: bool = False
    """The provider gets the tools as tools of its API; otherwise the prompt already contains them."""
    purpose: Purpose = "decide"
    """What the model is asked for."""
    turn: int = 0
    """How many replies the run has had so far."""
    temperature: float | None = None
    """None: the provider's default."""
    top_p: float | None = None
    """None: the provider's default."""
    max_output_tokens: int | None = None
    """The longest reply, in tokens; None: the provider's limit."""
    stop: tuple[str, ...] = ()
    """Texts at which the provider ends the reply."""
    timeout_s: float | None = None
    """How long the reply may take; None: no limit."""
    reply_schema: Mapping[str, Any] | None = None
    """A JSON Schema that the text of the reply must fit. A provider with structured output is asked to keep to it,
    others have it in the prompt."""
    on_delta: Callable[[Delta], None] | None = None
    """Called with each piece of the reply by models that can stream; the reply itself is returned whole all the same.
    """


new_model_request = fast_constructor(ModelRequest)
