"""The batch APIs of OpenAI and Anthropic: many requests at once, answered within 24 hours at half the price.

Sources: https://platform.openai.com/docs/guides/batch and https://docs.anthropic.com/en/docs/build-with-claude/batch-processing
"""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taoloop.errors import ConfigError, ModelReplyUnreadable
from taoloop.models.http.errors import make_error, parse_provider_error
from taoloop.models.http.provider_model import ProviderModel
from taoloop.models.http.transport import HttpResponse, HttpTransport

MAX_BATCH_BYTES = 256 * 1024 * 1024
"""What is read of the replies of one batch."""

CALL_TIMEOUT_S = 120.0
"""How long one call about a batch may take, in seconds."""

_EXPIRED = {"error": {"message": "the batch ended before this request was answered", "type": "expired"}}
_NOT_FOUND, _STATUS_EXPIRED = 404, 503


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """One request of a batch."""

    id: str
    """Its name in the batch."""

    body: Mapping[str, Any]
    """What a call of its own would send."""

    headers: Mapping[str, str]
    """The headers that a call of its own would need; a batch gets those of its first request."""


Answers = Mapping[str, HttpResponse] | HttpResponse
"""The answers of a batch by the ids of its requests, or one for all of them."""


class BatchApi(ABC):
    """The batches of one model.

    Args:
        model: The model.
    """

    def __init__(self, model: ProviderModel) -> None:
        self._model, target = model, model.target()
        self._transport = HttpTransport(target, max_bytes=MAX_BATCH_BYTES)
        self._url = target.url.partition("?")[0]

    @abstractmethod
    async def submit(self, requests: Sequence[BatchRequest]) -> str:
        """Begin a batch; gives its id.

        Raises:
            ModelError: it was not taken.
        """

    @abstractmethod
    async def results(self, batch_id: str) -> Answers | None:
        """The answers of a batch; None while it is at work. A request that it left out has none.

        Raises:
            ModelError: the batch cannot be asked about now.
        """

    async def close(self) -> None:
        """Close the connections of the running loop."""
        await self._transport.close()

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
        return self._read(await self._transport.post(body, timeout_s=CALL_TIMEOUT_S, headers=headers, url=url))

    async def _state(self, batch_id: str) -> dict[str, Any] | None:
        """What the provider says of a batch; None: it knows none of this id."""
        answer = await self._transport.get(f"{self._batches_url}/{batch_id}", timeout_s=CALL_TIMEOUT_S)
        return None if answer.status == _NOT_FOUND else self._read(answer)

    @property
    @abstractmethod
    def _batches_url(self) -> str:
        """The address of all batches."""

    async def _lines(self, url: str) -> list[dict[str, Any]]:
        answer = self._require_ok(await self._transport.get(url, timeout_s=None))
        try:
            return [json.loads(line) for line in answer.body.splitlines() if line.strip()]
        except ValueError as error:
            raise ModelReplyUnreadable(f"The replies of a batch of {self._model.spec} are no JSON lines.") from error

    def _read(self, answer: HttpResponse) -> dict[str, Any]:
        try:
            value = json.loads(self._require_ok(answer).body)
        except ValueError as error:
            raise self._model.unreadable("it is not JSON") from error
        if not isinstance(value, dict):
            raise self._model.unreadable("JSON of another form")
        return value

    def _require_ok(self, answer: HttpResponse) -> HttpResponse:
        if not answer.ok:
            refusal = parse_provider_error(answer.status, answer.body, answer.headers)
            raise make_error(refusal, self._model.endpoint)
        return answer

    def _text(self, value: Mapping[str, Any], name: str) -> str:
        if not isinstance(text := value.get(name), str) or not text:
            raise self._model.unreadable(f"an answer about a batch without {name!r}")
        return text


class OpenAIBatches(BatchApi):
    """`/v1/batches`: the requests go up as a file, and the replies come as one."""

    _PATH = "/chat/completions"

    async def submit(self, requests: Sequence[BatchRequest]) -> str:
        """Begin a batch; gives its id.

        Raises:
            ModelError: it was not taken.
        """
        entries = [
            {"custom_id": request.id, "method": "POST", "url": f"/v1{self._PATH}", "body": request.body}
            for request in requests
        ]
        lines = "".join(f"{json.dumps(entry, ensure_ascii=False, default=str)}\n" for entry in entries)
        boundary = secrets.token_hex(16)
        parts = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="batch.jsonl"\r\n'
            f"Content-Type: application/jsonl\r\n\r\n{lines}\r\n--{boundary}--\r\n"
        )
        kind = {"content-type": f"multipart/form-data; boundary={boundary}"}
        file = await self._post(f"{self._base}/files", parts.encode(errors="replace"), kind)
        order = {"endpoint": f"/v1{self._PATH}", "completion_window": "24h"}
        body = json.dumps({"input_file_id": self._text(file, "id"), **order}).encode()
        return self._text(await self._post(self._batches_url, body, {}), "id")

    async def results(self, batch_id: str) -> Answers | None:
        """The answers of a batch; None while it is at work. A request that it left out has none.

        Raises:
            ModelError: the batch cannot be asked about now.
        """
        batch = await self._state(batch_id)
        if batch is None:
            return expired_answer()
        if batch.get("status") == "failed":
            errors = (batch.get("errors") or {}).get("data") or [{}]
            reason = {"error": {"message": f"the batch {batch_id} failed: {errors[0].get('message')}"}}
            return HttpResponse(status=400, body=json.dumps(reason).encode())
        if batch.get("status") not in ("completed", "expired", "cancelled"):
            return None
        answers: dict[str, HttpResponse] = {}
        for name in ("output_file_id", "error_file_id"):
            if not batch.get(name):
                continue
            for line in await self._lines(f"{self._base}/files/{batch[name]}/content"):
                response = line.get("response") or {}
                status = response.get("status_code") or _STATUS_EXPIRED
                content = response.get("body") or {"error": line.get("error") or _EXPIRED["error"]}
                answers[line["custom_id"]] = HttpResponse(status=status, body=json.dumps(content).encode())
        return answers

    @property
    def _batches_url(self) -> str:
        return f"{self._base}/batches"

    @property
    def _base(self) -> str:
        return self._url.removesuffix(self._PATH)


class AnthropicBatches(BatchApi):
    """`/v1/messages/batches`."""

    async def submit(self, requests: Sequence[BatchRequest]) -> str:
        """Begin a batch; gives its id.

        Raises:
            ModelError: it was not taken.
        """
        entries = [{"custom_id": request.id, "params": request.body} for request in requests]
        body = json.dumps({"requests": entries}, ensure_ascii=False, default=str).encode(errors="replace")
        return self._text(await self._post(self._batches_url, body, requests[0].headers), "id")

    async def results(self, batch_id: str) -> Answers | None:
        """The answers of a batch; None while it is at work. A request that it left out has none.

        Raises:
            ModelError: the batch cannot be asked about now.
        """
        batch = await self._state(batch_id)
        if batch is None:
            return expired_answer()
        if batch.get("processing_status") != "ended":
            return None
        lines = await self._lines(f"{self._batches_url}/{batch_id}/results")
        return {line["custom_id"]: _anthropic_answer(line.get("result") or {}) for line in lines}

    @property
    def _batches_url(self) -> str:
        return f"{self._url}/batches"


def _anthropic_answer(result: Mapping[str, Any]) -> HttpResponse:
    if result.get("type") == "succeeded":
        return HttpResponse(status=200, body=json.dumps(result["message"]).encode())
    if result.get("type") == "errored":
        error = result.get("error") or {}
        error = error if isinstance(error.get("error"), dict) else {"error": error}
        is_invalid = error["error"].get("type") == "invalid_request_error"
        return HttpResponse(status=400 if is_invalid else 500, body=json.dumps(error).encode())
    return expired_answer()


def expired_answer() -> HttpResponse:
    """The answer to a request that a batch left out: it may be sent again."""
    return HttpResponse(status=_STATUS_EXPIRED, body=json.dumps(_EXPIRED).encode())


def batch_api(model: ProviderModel) -> BatchApi:
    """The batch API of a model's provider.

    Raises:
        ConfigError: it has none that is spoken here.
        ModelError, MissingExtra: its API cannot be called; says why.
    """
    kinds = {"openai": OpenAIBatches, "anthropic": AnthropicBatches}
    kind = kinds.get(model.endpoint.provider)
    if kind is None:
        raise ConfigError(
            f"{model.spec} has no batch API that taoloop knows.", hint="Batches need openai:NAME or anthropic:NAME."
        )
    return kind(model)
