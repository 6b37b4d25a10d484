"""`POST /v1/messages`: one request of Anthropic's Messages API, one run, one message, whole or as it is written.

What waits for approval is in the text of the message, and the user's next message answers it, as in a chat.
"""

from __future__ import annotations

from aiohttp import web

from taoloop.core.text import estimate_tokens
from taoloop.runtime.bound_agent import bind
from taoloop.serve.gateway.messages.encoder import MessageEncoder
from taoloop.serve.gateway.messages.message_request import (
    CountedRequest,
    chat_settings,
    named_as_sent,
    read_messages,
    require_client_tools,
    texts_of,
)
from taoloop.serve.gateway.repeats.matching import entered_request, match_request
from taoloop.serve.gateway.request_context import RequestContext
from taoloop.serve.gateway.request_schema import parse_body
from taoloop.serve.gateway.response_ids import ResponseId
from taoloop.serve.gateway.run_answer import answer_request
from taoloop.serve.gateway.run_request import chat_run_request


async def create_message(context: RequestContext) -> web.StreamResponse:
    """Answer a request for a message.

    Raises:
        ApiError: the protocol is off, the request is invalid, or its run has no answer.
    """
    _enter(context)
    body = await context.read_body()
    request = read_messages(body)
    served = context.find_agent(request.model)
    settings, origins = chat_settings(request)
    with named_as_sent(origins):
        run_request = await context.service.resolve_request(chat_run_request(settings, served, context.key))
        context.report_ignored_fields(request.ignored)
        run_request = await match_request(context, run_request, body)
        before = await context.service.load_run_before(run_request)
        with context.admit_run(run_request, before) as run_id, entered_request(context, run_request, run_id):
            response_id = ResponseId(run_id, before, separator="_")
            encoder = MessageEncoder(model=served.name, response_id=response_id, stops=settings.stops)
            return await answer_request(context, run_request, run_id, encoder, stream=bool(request.stream))


async def count_message_tokens(context: RequestContext) -> web.Response:
    """`POST /v1/messages/count_tokens`: about how many tokens a run begins with, the agent's own prompt among them.

    Raises:
        ApiError: the protocol is off, or the request is invalid.
    """
    _enter(context)
    request = parse_body(CountedRequest, await context.read_body())
    require_client_tools(request)
    agent = context.find_agent(request.model).agent
    spec = agent.spec_for("")
    own = sum(estimate_tokens(f"{card.name} {card.purpose} {card.input_schema}") for card in bind(agent).toolbox.cards)
    own += estimate_tokens(spec.instructions)
    return context.json_response({"input_tokens": own + sum(map(estimate_tokens, texts_of(request)))})


def _enter(context: RequestContext) -> None:
    context.require_protocol("messages")
    context.response_headers["request-id"] = context.record.request_id
