"""The card of an agent: what it is for, where it is reached, and what a client needs for it.

Like the list of models, only clients with a key get one.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

import taoloop
from taoloop.models.base import sees_images
from taoloop.runtime.bound_agent import bind
from taoloop.serve.gateway.auth.login_links import public_url
from taoloop.serve.gateway.config.model import ServedAgent
from taoloop.serve.gateway.errors import ApiError
from taoloop.serve.gateway.request_context import RequestContext

CARD_PATH = "/.well-known/agent-card.json"
_IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"]


async def first_card(context: RequestContext) -> web.Response:
    """`GET /.well-known/agent-card.json`: the card of the first agent that this key may use.

    Raises:
        ApiError: the protocol is off, or the key is unknown or may use none.
    """
    context.require_protocol("a2a")
    served = next(iter(context.permitted_agents()), None)
    if served is None:
        raise ApiError(status=404, message="This key may use no agent.", code="model_not_found")
    return context.json_response(_card(context, served))


async def agent_card(context: RequestContext) -> web.Response:
    """`GET /a2a/{agent}/.well-known/agent-card.json`: the card of one agent.

    Raises:
        ApiError: the protocol is off, or the key is unknown or may not use the agent.
    """
    context.require_protocol("a2a")
    return context.json_response(_card(context, context.find_agent(context.request.match_info["agent"])))


def _card(context: RequestContext, served: ServedAgent) -> dict[str, Any]:
    request, bound = context.request, bind(served.agent)
    base = public_url(context) or f"{request.scheme}://{request.headers.get('Host', '')}"
    url = f"{base}/a2a/{served.name}"
    description = served.description or f"The agent {served.name}."
    can_see = sees_images(bound.model) or served.agent.describe_image is not None
    card = {
        "name": served.name,
        "description": description,
        "version": taoloop.__version__,
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version} for version in ("1.0", "0.3")
        ],
        "capabilities": {"streaming": True, "pushNotifications": context.config.a2a_push is not None},
        "defaultInputModes": ["text/plain", "application/json", *(_IMAGES if can_see else ())],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": served.name, "name": served.name, "description": description, "tags": ["agent"]}],
        "url": url,  # from here on for clients of version 0.3
        "preferredTransport": "JSONRPC",
        "protocolVersion": "0.3.0",
    }
    if context.config.needs_key:
        card["securitySchemes"] = {"key": {"httpAuthSecurityScheme": {"scheme": "bearer"}}}
        card["securityRequirements"] = [{"schemes": {"key": {"list": []}}}]
    return card
