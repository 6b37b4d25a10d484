"""What a request wants: a new run, or to continue one that waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from taoloop.core.message import Message
from taoloop.core.text import language_of
from taoloop.serve.gateway.chat_approval import ApprovalReply, parse_approval_reply, parse_waiting_run
from taoloop.serve.gateway.chat_messages import InvalidMessages, parse_messages
from taoloop.serve.gateway.client_tools import apply_tool_choice, parse_call_id
from taoloop.serve.gateway.config.model import ApiKey, ServedAgent
from taoloop.serve.gateway.errors import DENIED, ApiError, ApiErrorRaised, invalid, invalid_field, missing
from taoloop.serve.gateway.schema.chat import ChatMessage, ChatRequest, ClientTool
from taoloop.serve.texts import TEXTS


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What one request wants of an agent, whichever API it came by.

    Either it starts a run for `task`, or it continues `run`, which waits for tool results or for an approval.
    """

    served: ServedAgent
    """The agent that answers."""

    task: str = ""
    """The question that a new run is to answer."""

    history: tuple[Message, ...] = ()
    """The conversation before the task, as the client sent it."""

    system: str = ""
    """The client's own instructions; they are added to those of the agent."""

    after: str | None = None
    """An earlier run whose conversation the new one continues."""

    run: str | None = None
    """The waiting run that is continued; None: a new run."""

    tool_results: Mapping[str, str] = field(default_factory=dict)
    """Results of the client's own tools by call id, for the run that waits for them."""

    approval: ApprovalReply | None = None
    """The person's reply, for the run that waits for it."""

    temperature: float | None = None
    """Sampling temperature; None leaves the agent's."""

    top_p: float | None = None
    """Nucleus sampling; None leaves the agent's."""

    token_limit: int | None = None
    """The longest reply of the model, in tokens; None leaves the agent's."""

    schema: Mapping[str, Any] | None = None
    """The JSON Schema that the answer must fit; None: a text."""

    schema_param: str = "response_format.json_schema.schema"
    """The field of the request that the schema came from, for error messages."""

    tools: tuple[ClientTool, ...] = ()
    """The client's own tools that are offered to the model."""

    tool_param: str = "tools[{}].function"
    """The field of the request that the tool with this index came from, for error messages."""

    must_call: bool = False
    """Whether one of the client's tools must be called before there is an answer."""

    one_call: bool = False
    """Whether an answer shows one call of the client's tools at a time."""

    fallback: RunRequest | None = None
    """The new run to start instead, where the request offers tools that the waiting run does not know."""

    owner: str = ""
    """The name of the client's key. Nobody can continue a run of another key."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of the new run: where it came from."""

    @property
    def answer_is_held_back(self) -> bool:
        """Whether nothing can be sent before the run ends, because the answer is checked or rewritten first."""
        return self.schema is not None or self.served.reshape is not None or self.must_call


def continue_message(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The message that makes a run of tool results, in the language of the user's last message."""
    users = (str(message.get("content")) for message in reversed(messages) if message["role"] == "user")
    return {"role": "user", "content": TEXTS.text(language_of(next(users, "")), "continue")}


def chat_run_request(request: ChatRequest, served: ServedAgent, key: ApiKey | None) -> RunRequest:
    """The run request of a chat request.

    Raises:
        ApiErrorRaised: its messages are invalid; names the field.
    """
    owner = key.name if key is not None else ""
    tool_results = parse_tool_results(request.messages)
    if tool_results is None and (pending := parse_pending_run(request.messages)) is not None:
        run_id, approval = pending
        require_may_approve(key)
        return RunRequest(served=served, run=run_id, approval=approval, owner=owner)
    messages: list[Mapping[str, Any]] = [message.model_dump(exclude_none=True) for message in request.messages]
    try:
        parsed = parse_messages(messages if tool_results is None else [*messages, continue_message(messages)])
    except InvalidMessages as error:
        raise invalid_field(error.param, str(error)) from None
    labels = run_labels(served, owner, "chat", request.user)
    choice = apply_tool_choice(request.tool_choice, request.tools or ())
    run_request = RunRequest(
        served=served,
        task=parsed.question,
        history=parsed.history,
        system=parsed.system,
        temperature=request.temperature,
        top_p=request.top_p,
        token_limit=request.token_limit,
        schema=request.answer_schema,
        tools=choice.offered,
        must_call=choice.must_call,
        one_call=request.parallel_tool_calls is False,
        owner=owner,
        labels=labels,
    )
    return run_request if tool_results is None else with_tool_results(run_request, *tool_results)


def with_tool_results(request: RunRequest, run_id: str, tool_results: Mapping[str, str]) -> RunRequest:
    """The request to continue a run that waits for these results; `request` itself is the fallback."""
    return replace(request, run=run_id, tool_results=tool_results, fallback=request)


def run_labels(served: ServedAgent, owner: str, via: str, user: str | None) -> dict[str, str]:
    """The labels of a run: where it came from."""
    labels = {"key": owner, "agent": served.name, "via": via}
    return {**labels, "user": user[:256]} if user else labels


def require_may_approve(key: ApiKey | None) -> None:
    """Refuse a key whose client may not approve calls.

    Raises:
        ApiErrorRaised: it may not approve.
    """
    if key is not None and not key.may_approve:
        message = "This key may not approve calls. The operator of the server can: `tao approvals`."
        raise ApiErrorRaised(ApiError(status=403, message=message, kind=DENIED, code="approval_not_allowed"))


def parse_tool_results(
    messages: Sequence[ChatMessage], names: tuple[str, str, str] = ("messages", "tool_call_id", "content")
) -> tuple[str, dict[str, str]] | None:
    """The run whose calls the last messages answer, and the results by call id; None: they answer none.

    `names` are the names of the list, the id and the result in the request, for error messages.

    Raises:
        ApiErrorRaised: an id is not of this server, or a result is not a text; names the field.
    """
    list_name, id_name, result_name = names
    if not messages or messages[-1].role != "tool":
        return None
    results: dict[str, str] = {}
    runs: set[str] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role != "tool":
            break
        param = f"{list_name}[{index}].{id_name}"
        ids = parse_call_id(message.tool_call_id or "")
        if ids is None:
            raise invalid(f"`{param}` is the id of no tool call that this server gave.", param)
        runs.add(ids[0])
        if message.content is None:
            raise missing(f"{list_name}[{index}].{result_name}")
        for number, part in enumerate(() if isinstance(message.content, str) else message.content):
            if part.type != "text" or part.text is None:
                raise invalid_field(f"{list_name}[{index}].{result_name}[{number}].type", "Only texts can be read.")
        results[ids[1]] = message_text(message)
    if len(runs) != 1:
        raise invalid("The last results of tools answer calls of more than one run.", list_name)
    return runs.pop(), results


def parse_pending_run(messages: Sequence[ChatMessage]) -> tuple[str, ApprovalReply] | None:
    """The waiting run that the last answer named, and the client's reply to its question."""
    if len(messages) < 2 or messages[-1].role != "user" or messages[-2].role != "assistant":
        return None
    waiting_run, reply_text = parse_waiting_run(message_text(messages[-2])), message_text(messages[-1])
    return (
        (waiting_run[0], replace(parse_approval_reply(reply_text), code=waiting_run[1]))
        if waiting_run is not None and reply_text.strip()
        else None
    )


def message_text(message: ChatMessage) -> str:
    """The text of a message."""
    content: Any = message.content
    if isinstance(content, str):
        return content
    return "".join(part.text or part.refusal or "" for part in content or ())
