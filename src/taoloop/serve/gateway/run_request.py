"""What a request wants: a new run, or to continue one that waits; read from its messages and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from taoloop.core.message import Message
from taoloop.core.policy import TaskAuthority
from taoloop.core.text import language_of, replace_surrogates
from taoloop.core.trace import ACCOUNT
from taoloop.runtime.conversations.message_history import EarlierCall, MessageHistory
from taoloop.serve.gateway.auth.accounts import account_of, without_login_links
from taoloop.serve.gateway.auth.keys import ApiKey
from taoloop.serve.gateway.chat_approval import ApprovalReply, parse_approval_reply, parse_waiting_run
from taoloop.serve.gateway.client_tools import apply_tool_choice, parse_call_id
from taoloop.serve.gateway.config.model import ServedAgent
from taoloop.serve.gateway.errors import ApiError, invalid, invalid_field, missing
from taoloop.serve.gateway.repeats.ledger import RequestIdentity
from taoloop.serve.gateway.request_attachments import SentAttachment, sent_attachments
from taoloop.serve.gateway.request_schema import ChatMessage, ChatRequest, ClientTool, ResponsesRequest
from taoloop.serve.texts import TEXTS

_INSTRUCTIONS = ("system", "developer")
_RESULTS = ("tool", "function")
_NO_SETTINGS = ChatRequest(model="-", messages=[])


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

    attachments: Mapping[int | None, tuple[SentAttachment, ...]] = field(default_factory=dict)
    """The images and files of the task (None) and of messages in `history` (by index), as the client sent them."""

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

    settings: ChatRequest | ResponsesRequest = field(default_factory=lambda: _NO_SETTINGS)
    """The request of the API, for sampling, the limit of tokens, the schema of the answer and the names of fields."""

    tools: tuple[ClientTool, ...] = ()
    """The client's own tools that are offered to the model."""

    must_call: bool = False
    """Whether one of the client's tools must be called before there is an answer."""

    stops: tuple[str, ...] = ()
    """The client's stop sequences: the answer ends before them."""

    fallback: RunRequest | None = None
    """The new run to start instead, where the request offers tools that the waiting run does not know."""

    owner: str = ""
    """The name of the client's key. Nobody can continue a run of another key."""

    authority: TaskAuthority = "full"
    """What the client's words may authorise; without a key, the client is the operator's own machine."""

    may_approve: bool = True
    """Whether the client may approve calls. Questions of the model it may answer in any case: they are the user's."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of the new run: where it came from."""

    identity: RequestIdentity | None = None
    """By what a repeat of this request is recognized; None: a repeat of it is harmless."""

    is_repeat: bool = False
    """Whether `run` was begun by an earlier attempt of this request, and is only to be answered."""

    new_run: str = ""
    """The id of the new run, where an earlier attempt has given it; empty: a fresh one."""

    @property
    def answer_is_held_back(self) -> bool:
        """Whether nothing can be sent before the run ends, because the answer is checked or rewritten first."""
        return self.settings.answer_schema is not None or self.served.reshape is not None or self.must_call


def chat_run_request(request: ChatRequest, served: ServedAgent, key: ApiKey | None) -> RunRequest:
    """The run request of a chat request.

    Raises:
        ApiError: its messages are invalid; names the field.
    """
    messages = request.messages
    is_reply = [message.role for message in messages[-2:]] == ["assistant", "user"] and messages[-1].text.strip()
    waiting_run = parse_waiting_run(messages[-2].text) if is_reply else None
    if waiting_run is None:
        return new_run_request(request, messages, served, key)
    run_id, code = waiting_run
    owner, authority = owner_of(key)
    approval = replace(parse_approval_reply(messages[-1].text), code=code)
    return RunRequest(
        served=served,
        run=run_id,
        approval=approval,
        owner=owner,
        authority=authority,
        may_approve=key is None or key.may_approve,
        stops=request.stops,
    )


def owner_of(key: ApiKey | None) -> tuple[str, TaskAuthority]:
    """The name under which a client's runs are stored, and what its words may authorise."""
    return (key.name, key.task_authority) if key is not None else ("", "full")


def new_run_request(
    request: ChatRequest | ResponsesRequest, messages: Sequence[ChatMessage], served: ServedAgent, key: ApiKey | None
) -> RunRequest:
    """A request for a new run, or, where the last messages are results of tools, for the run that waits for them.

    Raises:
        ApiError: a message or the tool choice is invalid; names the field.
    """
    list_name, (owner, authority) = request.message_names[0], owner_of(key)
    tool_results = parse_tool_results(messages, request.message_names)
    parsed = parse_messages(messages if tool_results is None else [*messages, _continue_message(messages)], list_name)
    tools, must_call = apply_tool_choice(request.tool_choice, request.client_tools)
    if isinstance(request, ChatRequest):
        system, stops = parsed.system, request.stops
    else:
        system, stops = "\n\n".join(filter(None, (request.instructions, parsed.system))), ()
    labels = {"key": owner, "agent": served.name, "via": request.via}
    run_request = RunRequest(
        served=served,
        task=parsed.question,
        history=parsed.history,
        attachments=parsed.attachments,
        system=system,
        settings=request,
        tools=tools,
        must_call=must_call,
        stops=stops,
        owner=owner,
        authority=authority,
        may_approve=key is None or key.may_approve,
        labels=labels | _user_labels(owner, request.user or ""),
    )
    if tool_results is None:
        return run_request
    run_id, results = tool_results
    return replace(run_request, run=run_id, tool_results=results, fallback=run_request)


def _user_labels(owner: str, user: str) -> dict[str, str]:
    """The labels that say for whom a run is."""
    account, user = account_of(owner, user), user[:256]
    return ({"user": user} if user else {}) | ({ACCOUNT: account} if account != user else {})


def require_may_approve(key: ApiKey | None) -> None:
    """Refuse a key whose client may not approve calls.

    Raises:
        ApiError: it may not approve, or its words do not have full authority.
    """
    if key is not None and not (key.may_approve and key.task_authority == "full"):
        raise approval_not_allowed()


def approval_not_allowed() -> ApiError:
    """The error of an approval that only the operator may give."""
    message = "This key may not approve calls. The operator of the server can: `tao approvals`."
    return ApiError(status=403, message=message, code="approval_not_allowed")


# Messages


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedMessages:
    """The messages of a request, as a run takes them."""

    question: str
    """The last message of the user: the task of the run."""

    history: tuple[Message, ...] = ()
    """The messages before it, without the instructions."""

    attachments: Mapping[int | None, tuple[SentAttachment, ...]] = field(default_factory=dict)
    """The images and files of the question (None) and of messages in `history`, by their index."""

    system: str = ""
    """The client's instructions: all system and developer messages."""


def parse_messages(messages: Sequence[ChatMessage], list_name: str = "messages") -> ParsedMessages:
    """Parse the messages of a chat; `list_name` is the field that they came in, for error messages.

    Instructions are joined wherever they are; what becomes of the other messages is in
    `taoloop.runtime.conversations.message_history`.

    Raises:
        ApiError: there is no question, or a part that can be neither read nor seen; names the field.
    """
    if not messages:
        raise invalid_field(list_name, "There is no message.")
    sent = [sent_attachments(message, f"{list_name}[{index}].content") for index, message in enumerate(messages)]
    texts = [_message_text(message) for message in messages]
    last = max(
        (index for index, message in enumerate(messages) if message.role not in _INSTRUCTIONS),
        default=len(messages) - 1,
    )
    if messages[last].role != "user":
        raise invalid_field(f"{list_name}[{last}].role", "The last message must come from the user.")
    if not texts[last].strip() and not sent[last]:
        raise invalid_field(f"{list_name}[{last}].content", "Empty question: the last message has no text.")
    history = MessageHistory()
    attachments: dict[int | None, tuple[SentAttachment, ...]] = {None: sent[last]} if sent[last] else {}
    system: list[str] = []
    for index, (message, text) in enumerate(zip(messages, texts, strict=True)):
        if index == last:
            continue
        if message.role in _INSTRUCTIONS:
            system.append(text.strip())
        elif message.role == "user":
            if sent[index]:
                attachments[len(history.messages)] = sent[index]
            history.add_user(text)
        elif message.role in _RESULTS:
            history.add_result(text, message.tool_call_id, message.name)
        else:
            history.add_assistant(text, _calls_of(message))
    instructions = "\n\n".join(filter(None, system))
    return ParsedMessages(
        question=texts[last], history=tuple(history.messages), attachments=attachments, system=instructions
    )


def _calls_of(message: ChatMessage) -> Iterator[EarlierCall]:
    """The tool calls of a message of the assistant."""
    for call in message.tool_calls or ():
        yield EarlierCall(call.id, *call.called)
    older_form = (message.model_extra or {}).get("function_call")
    if isinstance(older_form, Mapping):
        yield EarlierCall(None, older_form.get("name"), older_form.get("arguments"))


def _message_text(message: ChatMessage) -> str:
    """The text of a message, its parts joined."""
    return without_login_links(replace_surrogates(message.refusal or "" if message.content is None else message.text))


def _continue_message(messages: Sequence[ChatMessage]) -> ChatMessage:
    """The message that makes a run of tool results, in the language of the user's last message."""
    question = next((message.text for message in reversed(messages) if message.role == "user"), "")
    return ChatMessage(role="user", content=TEXTS.text(language_of(question), "continue"))


def parse_tool_results(
    messages: Sequence[ChatMessage], names: tuple[str, str, str]
) -> tuple[str, dict[str, str]] | None:
    """The run whose calls the last messages answer, and the results by call id; None: they answer none.

    `names` are the names of the list, the id and the result in the request, for error messages.

    Raises:
        ApiError: an id is not of this server, or a result is not a text; names the field.
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
        param = f"{list_name}[{index}]"
        ids = parse_call_id(message.tool_call_id or "")
        if ids is None:
            raise invalid(f"`{param}.{id_name}` is the id of no tool call that this server gave.", f"{param}.{id_name}")
        runs.add(ids[0])
        if message.content is None:
            raise missing(f"{param}.{result_name}")
        for number, part in enumerate(message.content if isinstance(message.content, list) else ()):
            if part.type != "text" or part.text is None:
                raise invalid_field(f"{param}.{result_name}[{number}].type", "Only texts can be read.")
        results[ids[1]] = message.text
    if len(runs) != 1:
        raise invalid("The last results of tools answer calls of more than one run.", list_name)
    return runs.pop(), results
