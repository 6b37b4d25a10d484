"""What a chat request wants: a new run, or to go on with one that waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from taoloop.serve.gateway.asked import BadMessages, asked
from taoloop.serve.gateway.chat_wire import ChatMessage, ChatRequest
from taoloop.serve.gateway.client_tools import inside_ids
from taoloop.serve.gateway.config import ApiKey, ServedAgent
from taoloop.serve.gateway.refusals import DENIED, Refusal, RequestRefused, invalid, invalid_field, missing
from taoloop.serve.gateway.service import Wish
from taoloop.serve.gateway.waiting import Said, meant_run, understood


def chat_wish(request: ChatRequest, served: ServedAgent, key: ApiKey | None) -> Wish:
    """What a chat request wants of an agent.

    Raises:
        RequestRefused: its messages are of no use; names the place.
    """
    owner = key.name if key is not None else ""
    if (going_on := _results_of(request.messages)) is not None:
        run_id, outputs = going_on
        return Wish(served=served, run=run_id, outputs=outputs, owner=owner)
    if (waited := waited_for(request.messages)) is not None:
        run_id, said = waited
        require_may_approve(key)
        return Wish(served=served, run=run_id, said=said, owner=owner)
    try:
        found = asked([message.model_dump(exclude_none=True) for message in request.messages])
    except BadMessages as error:
        raise invalid_field(error.param, str(error)) from None
    labels = labels_of(served, owner, "chat", request.user)
    return Wish(
        served=served,
        task=found.question,
        history=found.history,
        system=found.system,
        temperature=request.temperature,
        top_p=request.top_p,
        token_limit=request.token_limit,
        schema=request.schema_wanted,
        tools=tuple(request.tools or ()) if request.tool_choice != "none" else (),
        owner=owner,
        labels=labels,
    )


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
        raise RequestRefused(Refusal(status=403, message=message, kind=DENIED, code="approval_not_allowed"))


def _results_of(messages: Sequence[ChatMessage]) -> tuple[str, dict[str, str]] | None:
    """The run whose calls the last messages answer, and the answers by call; None: they answer none."""
    if not messages or messages[-1].role != "tool":
        return None
    outputs: dict[str, str] = {}
    runs: set[str] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role != "tool":
            break
        param = f"messages[{index}].tool_call_id"
        ids = inside_ids(message.tool_call_id or "")
        if ids is None:
            raise invalid(f"`{param}` is the id of no tool call that this server gave.", param)
        runs.add(ids[0])
        if message.content is None:
            raise missing(f"messages[{index}].content")
        for number, part in enumerate(() if isinstance(message.content, str) else message.content):
            if part.type != "text" or part.text is None:
                raise invalid_field(f"messages[{index}].content[{number}].type", "Only texts can be read.")
        outputs[ids[1]] = text_of(message)
    if len(runs) != 1:
        raise invalid("The last tool messages answer calls of more than one run.", "messages")
    return runs.pop(), outputs


def waited_for(messages: Sequence[ChatMessage]) -> tuple[str, Said] | None:
    """The run that the last answer said to be waiting, and what the client says to it."""
    if len(messages) < 2 or messages[-1].role != "user" or messages[-2].role != "assistant":
        return None
    meant, words = meant_run(text_of(messages[-2])), text_of(messages[-1])
    return (meant[0], replace(understood(words), code=meant[1])) if meant is not None and words.strip() else None


def text_of(message: ChatMessage) -> str:
    """The text of a message."""
    content: Any = message.content
    if isinstance(content, str):
        return content
    return "".join(part.text or part.refusal or "" for part in content or ())
