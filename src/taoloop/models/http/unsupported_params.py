"""Parameters that a model turned out not to take: left out from the first refusal on, and asked again without them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from taoloop.models.http.errors import ProviderError

_DROPPABLE = ("temperature", "top_p", "stop", "stop_sequences", "max_tokens", "stream_options")
_SCHEMAS = ("response_format", "output_config")
_NAMED = {
    name: re.compile(rf"[\"'`]{name}[\"'`]" if name == "stop" else rf"\b{name}\b")  # a bare `stop` is a word of prose
    for name in (*_DROPPABLE, *_SCHEMAS)
}
_UNSUPPORTED = re.compile(
    r"unsupported|not[ _]support|not allowed|not permitted|unknown|unrecogni[sz]ed|unexpected|deprecated",
    re.IGNORECASE,
)
_NOT_BOTH = re.compile(r"temperature.{1,20}top_p.{1,30}cannot both", re.IGNORECASE)
_STREAMS_ONLY = re.compile(  # Qwen's thinking models: "This model only support stream mode, please enable the stream …"
    r"only supports? (?:the )?stream|stream mode|for non-streaming calls", re.IGNORECASE
)
_SCHEMA = re.compile(r"response_format|output_config|json_?schema|schema|grammar|structured output", re.IGNORECASE)


class UnsupportedParameters:
    """What one model does not take.

    `schemas` are those that it refused while it takes others; `whole_replies` is True for a model that only streams.
    `indispensable` parameters are sent whatever is said of them: a refusal that names one teaches nothing.
    """

    def __init__(self, indispensable: frozenset[str] = frozenset()) -> None:
        self._indispensable = indispensable
        self.whole_replies = False
        self.parameters: frozenset[str] = frozenset()
        self.schemas: frozenset[str] = frozenset()

    def learn(self, refusal: ProviderError, body: Mapping[str, Any], schema: str | None) -> bool:
        """Whether the refusal taught something, so that the same request can be made without it.

        Each lesson leaves out something that `body` has, so asking again comes to an end.
        """
        if refusal.status not in (400, 422):
            return False
        if "stream" not in body and _STREAMS_ONLY.search(refusal.message):
            self.whole_replies = True
            return True
        refused = (_parameters(refusal) & body.keys()) - self._indispensable
        if refused:
            self.parameters |= refused
            return True
        if schema is not None and body.keys() & set(_SCHEMAS) and _blames_schema(refusal):
            self.schemas |= {schema}
            return True
        return False


def _parameters(refusal: ProviderError) -> frozenset[str]:
    """The parameters that a refusal names as unsupported; none for a refusal of another kind."""
    if _NOT_BOTH.search(refusal.message):
        return frozenset({"top_p"})
    if not _UNSUPPORTED.search(f"{refusal.code} {refusal.message}"):
        return frozenset()
    if refusal.param:
        return frozenset(name for name in _NAMED if refusal.param == name)
    return frozenset(name for name, pattern in _NAMED.items() if pattern.search(refusal.message))


def _blames_schema(refusal: ProviderError) -> bool:
    if refusal.param:
        return refusal.param.startswith(_SCHEMAS) or "schema" in refusal.param
    return bool(_SCHEMA.search(f"{refusal.code} {refusal.message}"))
