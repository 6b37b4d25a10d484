"""The model of an `ai-agent` file: any OpenAI-compatible endpoint by its full URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from taoloop.core.decision import Act, Problem
from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply
from taoloop.dialects import get_dialect
from taoloop.models.openai import OpenAIModel
from taoloop.models.providers import Endpoint

PROVIDER = "llm"
"""The provider of such a model in traces and messages: `llm:NAME`."""

KEY_FIELD = "llm.apiKey"

_INVENTED_OBSERVATION = "invented_observation"
_MAX_STOPS = 20  # a thought may mention observations before the action


class FixedUrlModel(OpenAIModel):
    """A chat model at exactly one URL. It takes the key as a bearer token, and nothing from the environment.

    Servers often ignore `stop`. Where a reply continues with an observation that the model made up, everything after
    its action is cut off, as the server should have done.
    """

    def __init__(self, url: str, model: str, api_key: str, host: str = "") -> None:
        self._host = host  # the header, where the address is overridden
        super().__init__(Endpoint(provider=PROVIDER, model=model, api_key=api_key, url=url, key_var=KEY_FIELD))

    def _headers(self, body: Mapping[str, Any]) -> Mapping[str, str] | None:
        more = super()._headers(body)
        return {**(more or {}), "Host": self._host} if self._host else more

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One reply, cut where it should have stopped."""
        return cut_at_stop(await super().complete(request), request)


def cut_at_stop(reply: ModelReply, request: ModelRequest) -> ModelReply:
    """`reply` up to the first stop sequence after its action, where it invents an observation; else unchanged."""
    stops = "|".join(map(re.escape, request.stop))
    ends = [match.start() for match in islice(re.finditer(stops, reply.text), _MAX_STOPS)] if stops else []
    if not ends:
        return reply
    dialect = get_dialect(request.dialect)
    whole = dialect.read(reply, request.tools)
    if not isinstance(whole, Problem) or whole.code != _INVENTED_OBSERVATION:
        return reply
    for end in ends:
        cut = replace(reply, text=reply.text[:end], finish_reason="stop")
        if isinstance(dialect.read(cut, request.tools), Act):
            return cut
    return reply
