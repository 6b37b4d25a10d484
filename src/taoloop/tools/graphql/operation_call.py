"""The call of one GraphQL operation: its fixed text with the arguments as variables, and what the answer says of it.

Requests, retries, logins and egress rules are those of REST operations; an operation is a POST to the endpoint (GraphQL
over HTTP, draft of the GraphQL Foundation).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from taoloop.errors import ToolError
from taoloop.tools.egress import EgressResponse
from taoloop.tools.graphql.texts import TEXTS
from taoloop.tools.openapi.credentials import choose_alternative, credentials
from taoloop.tools.openapi.operation import Operation, Scheme
from taoloop.tools.openapi.operation_call import OperationCaller, success_output
from taoloop.tools.openapi.request import PreparedRequest
from taoloop.tools.openapi.texts import TEXTS as API_TEXTS
from taoloop.tools.openapi.value_encoding import apply_literals, check_header, to_json
from taoloop.tools.tool import RunContext, ToolOutput

LOGIN_SCHEME = "login"
"""The name of the login of people among the security schemes of an endpoint."""

_ACCEPT = "application/graphql-response+json, application/json;q=0.9"
_UNAUTHENTICATED = frozenset({"UNAUTHENTICATED", "UNAUTHORIZED", "INVALID_TOKEN"})
_MAX_ERRORS = 5
_MAX_ERROR_CHARS = 300


def endpoint_operation(name: str, endpoint: str, login: Mapping[str, str]) -> Operation:
    """The REST operation that sends an operation of GraphQL: a POST to the endpoint."""
    scheme = Scheme(name=LOGIN_SCHEME, kind="bearer", prefix="Bearer")
    return Operation(
        name=name,
        operation_id=name,
        method="POST",
        path="",
        document_path=name,
        servers=(endpoint,),
        security=({LOGIN_SCHEME: ()},) if login else (),
        schemes={LOGIN_SCHEME: scheme} if login else {},
    )


@dataclass(frozen=True, slots=True)
class GraphqlCaller(OperationCaller):
    """The handler of the tool of one operation."""

    text: str = ""
    """The document that is sent."""
    operation_name: str = ""
    """Which operation of it is meant."""

    def _request(
        self,
        values: Mapping[str, Any],
        tokens: Mapping[str, str],
        literals: Mapping[str, str],
        context: RunContext,  # noqa: ARG002  # the signature of the base
    ) -> PreparedRequest:
        source = self.api.source
        secrets = credentials(self.operation, choose_alternative(self.operation, source), source, tokens)
        variables = apply_literals(values, literals) if literals else values
        body = {"query": self.text, "operationName": self.operation_name, "variables": variables}
        headers = {"Accept": _ACCEPT, "Content-Type": "application/json", **source.headers, **secrets.headers}
        return PreparedRequest(
            method="POST",
            url=source.base_url,
            headers={name: check_header(f"headers.{name}", value) for name, value in headers.items()},
            body=to_json(body).encode("utf-8", "replace"),
            timeout_s=source.timeout_s,
            safe_url="" if source.hide_server else source.base_url.partition("?")[0],
        )

    def _is_unauthorized(self, response: EgressResponse) -> bool:
        if response.status == 401:
            return True
        answer = _parse(response)
        errors = [] if answer is None or answer.get("data") else _errors(answer)
        return bool(errors) and all(_code(error) in _UNAUTHENTICATED for error in errors)

    def _output(self, response: EgressResponse) -> ToolOutput:
        """What was answered; errors stand before the data that there is all the same.

        Raises:
            ToolError: `graphql_error`: there are only errors, or it is no answer of GraphQL.
        """
        if response.is_cut:  # it was carried out, and the answer is too large: its beginning is shown
            return success_output(response, self.api.clean, hide_server=self.api.source.hide_server)
        answer = _parse(response)
        if answer is None:
            raise self._error("no_graphql", media_type=response.media_type or "?")
        errors, data = _errors(answer), answer.get("data")
        if errors and (not isinstance(data, Mapping) or all(value is None for value in data.values())):
            raise self._error("graphql_error", operation=self.operation_name, errors=_joined(errors))
        display: dict[str, Any] = {"data": data}
        if errors:
            display = {"errors": [_brief(error) for error in errors[:_MAX_ERRORS]], "note": TEXTS.run_text("partial")}
            display["data"] = data
        return ToolOutput(self.api.clean(to_json(display)), "json")

    def _error(self, name: str, **values: Any) -> ToolError:
        hint = "" if self.card.reads_only else API_TEXTS.run_text("maybe_done")
        values = {key: self.api.clean(str(value)) for key, value in values.items()}
        return TEXTS.error(name, "graphql_error", hint=hint, **values)


def _parse(response: EgressResponse) -> Mapping[str, Any] | None:
    """The answer, if it is one of GraphQL; numbers as they are written."""
    try:
        answer = json.loads(response.text, parse_float=Decimal)
    except (ValueError, RecursionError, ArithmeticError):
        return None
    return answer if isinstance(answer, dict) and ("data" in answer or _errors(answer)) else None


def _errors(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    errors = answer.get("errors")
    return [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []


def _code(error: Mapping[str, Any]) -> str:
    extensions = error.get("extensions")
    return str(extensions.get("code", "")) if isinstance(extensions, dict) else ""


def _brief(error: Mapping[str, Any]) -> dict[str, Any]:
    """What a model reads of an error: the message, where it is, and the server's own code."""
    brief: dict[str, Any] = {"message": str(error.get("message", ""))[:_MAX_ERROR_CHARS]}
    if isinstance(path := error.get("path"), list):
        brief["path"] = path
    if code := _code(error):
        brief["code"] = code[:60]
    return brief


def _joined(errors: list[Mapping[str, Any]]) -> str:
    texts = []
    for error in map(_brief, errors[:_MAX_ERRORS]):
        where = f" (at {'.'.join(map(str, error['path']))})" if error.get("path") else ""
        texts.append(f"{error['message']}{where}" + (f" [{error['code']}]" if "code" in error else ""))
    return "; ".join(texts)
