"""What a chat request wants: a new run, or to go on with one that waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from taoloop.core.text import language_of
from taoloop.serve.gateway.chat_approval import ApprovalReply, parse_approval_reply, parse_waiting_run
from taoloop.serve.gateway.chat_messages import InvalidMessages, parse_messages
from taoloop.serve.gateway.client_tools import chosen, parse_call_id
from taoloop.serve.gateway.config.model import ApiKey, ServedAgent
from taoloop.serve.gateway.errors import DENIED, ApiError, ApiErrorRaised, invalid, invalid_field, missing
from taoloop.serve.gateway.run_service import RunRequest
from taoloop.serve.gateway.schema.chat import ChatMessage, ChatRequest


def continue_message(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a run is told that begins with results of tools, in the language of the user's last words."""
    words = next((str(one.get("content")) for one in reversed(messages) if one["role"] == "user"), "")
    return {"role": "user", "content": "请继续。" if language_of(words) == "zh" else "Go on."}


def chat_run_request(request: ChatRequest, served: ServedAgent, key: ApiKey | None) -> RunRequest:
    """What a chat request wants of an agent.

    Raises:
        RequestRefused: its messages are of no use; names the place.
    """
    owner = key.name if key is not None else ""
    going_on = results_of(request.messages)
    if going_on is None and (waited := pending_run(request.messages)) is not None:
        run_id, said = waited
        require_may_approve(key)
        return RunRequest(served=served, run=run_id, said=said, owner=owner)
    messages: list[Mapping[str, Any]] = [message.model_dump(exclude_none=True) for message in request.messages]
    try:
        found = parse_messages(messages if going_on is None else [*messages, continue_message(messages)])
    except InvalidMessages as error:
        raise invalid_field(error.param, str(error)) from None
    labels = labels_of(served, owner, "chat", request.user)
    choice = chosen(request.tool_choice, request.tools or ())
    wish = RunRequest(
        served=served,
        task=found.question,
        history=found.history,
        system=found.system,
        temperature=request.temperature,
        top_p=request.top_p,
        token_limit=request.token_limit,
        schema=request.schema_wanted,
        tools=choice.offered,
        must_call=choice.must,
        one_call=request.parallel_tool_calls is False,
        owner=owner,
        labels=labels,
    )
    return wish if going_on is None else with_tool_results(wish, *going_on)


def with_tool_results(wish: RunRequest, run_id: str, outputs: Mapping[str, str]) -> RunRequest:
    """The wish to go on with a run that waits for these results; `wish` itself is what begins where it cannot."""
    return replace(wish, run=run_id, outputs=outputs, anew=wish)


def labels_of(served: ServedAgent, owner: str, via: str, user: str | None) -> dict[str, str]:
    """What a run says of where it came from."""
    labels = {"key": owner, "agent": served.name, "via": via}
    return {**labels, "user": user[:256]} if user else labels


def require_may_approve(key: ApiKey | None) -> None:
    """Refuse a key whose client may not answer what waits for a person.

    Raises:
        RequestRefused: it may not.
    """
    if key is not None and not key.may_approve:
        message = "This key may not answer what waits for a person. Whoever runs the server can: `tao approvals`."
        raise ApiErrorRaised(ApiError(status=403, message=message, kind=DENIED, code="approval_not_allowed"))


def results_of(
    messages: Sequence[ChatMessage], names: tuple[str, str, str] = ("messages", "tool_call_id", "content")
) -> tuple[str, dict[str, str]] | None:
    """The run whose calls the last messages answer, and the answers by call; None: they answer none.

    `names` is how the request calls the list, the id and the result.

    Raises:
        RequestRefused: an id is none of this server, or a result is no text; names the place.
    """
    place, id_name, result_name = names
    if not messages or messages[-1].role != "tool":
        return None
    outputs: dict[str, str] = {}
    runs: set[str] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role != "tool":
            break
        param = f"{place}[{index}].{id_name}"
        ids = parse_call_id(message.tool_call_id or "")
        if ids is None:
            raise invalid(f"`{param}` is the id of no tool call that this server gave.", param)
        runs.add(ids[0])
        if message.content is None:
            raise missing(f"{place}[{index}].{result_name}")
        for number, part in enumerate(() if isinstance(message.content, str) else message.content):
            if part.type != "text" or part.text is None:
                raise invalid_field(f"{place}[{index}].{result_name}[{number}].type", "Only texts can be read.")
        outputs[ids[1]] = text_of(message)
    if len(runs) != 1:
        raise invalid("The last results of tools answer calls of more than one run.", place)
    return runs.pop(), outputs


def pending_run(messages: Sequence[ChatMessage]) -> tuple[str, ApprovalReply] | None:
    """The run that the last answer said to be waiting, and what the client says to it."""
    if len(messages) < 2 or messages[-1].role != "user" or messages[-2].role != "assistant":
        return None
    meant, words = parse_waiting_run(text_of(messages[-2])), text_of(messages[-1])
    return (
        (meant[0], replace(parse_approval_reply(words), code=meant[1])) if meant is not None and words.strip() else None
    )


def text_of(message: ChatMessage) -> str:
    """The text of a message."""
    content: Any = message.content
    if isinstance(content, str):
        return content
    return "".join(part.text or part.refusal or "" for part in content or ())
