"""The logins of people that runs turned out to need: the address for each is added to the answer, for the person.

The model reads that a login is needed, and never the address: it is made after the run, for this one answer.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from taoloop.core.events import Observed, Resumed
from taoloop.core.trace import Trace
from taoloop.journals.base import Journal
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.subagent import MAX_DEPTH, AgentTool
from taoloop.serve.gateway.auth.accounts import LOGIN_PATH
from taoloop.serve.gateway.request_context import RequestContext
from taoloop.serve.gateway.run_request import RunRequest
from taoloop.serve.gateway.run_response import RunResponse
from taoloop.serve.hosts import AllowedHosts
from taoloop.serve.texts import TEXTS
from taoloop.tools.oauth.user_login import LOGIN_LIFETIME_S, LOGIN_REQUIRED, UserLogin, logins_of
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import Toolbox

_LOCAL = AllowedHosts()


def public_url(context: RequestContext) -> str:
    """The address of this server for browsers, without a slash at its end; empty: nobody knows it.

    It is the operator's word. Without that it is only known where the browser is on this machine: other names in the
    header `Host` may be anybody's.
    """
    if context.config.public_url:
        return context.config.public_url.rstrip("/")
    host = context.request.headers.get("Host", "")
    return f"{context.request.scheme}://{host}" if _LOCAL.accepts(host) else ""


async def add_login_links(context: RequestContext, request: RunRequest, response: RunResponse) -> RunResponse:
    """The response with an address for each login that the run needed and its person does not have yet."""
    trace = response.result.trace
    if response.error is not None:
        return response
    logins = await _needed_logins(trace, request.served.agent.toolbox, context.service.journal)
    if not logins:
        return response
    language, base = trace.agent.language, public_url(context)
    lines, links = [], []
    for login in logins.values():
        if await login.is_logged_in(trace.user):
            continue
        api = login.client.api
        if not base:
            lines.append(TEXTS.text(language, "login_no_address", api=api))
            continue
        url = f"{base}{LOGIN_PATH}/{await login.invite(trace.user)}"
        lines.append(TEXTS.text(language, "login_here", api=api, url=url, minutes=int(LOGIN_LIFETIME_S // 60)))
        links.append({"api": api, "url": url})
    if not lines:
        return response
    response = replace(response, agent={**response.agent, "logins": links})
    if response.tool_calls or request.answer_is_held_back:  # a program reads that
        return response
    text = "\n".join(lines)
    is_waiting = response.result.status == "waiting"  # its text ends with the code of its question
    parts = (text, response.content) if is_waiting else (response.content, text)
    return replace(response, content="\n\n".join(filter(None, parts)))


def logins_within(toolbox: Toolbox, depth: int = MAX_DEPTH) -> tuple[UserLogin, ...]:
    """The logins that tools need of a person, with those of agents that are tools."""
    inner = (inner_toolbox(tool) for tool in toolbox if depth > 0)
    boxes = (box for box in inner if box is not None)
    return (*logins_of(toolbox), *chain.from_iterable(logins_within(box, depth - 1) for box in boxes))


def inner_toolbox(tool: Tool) -> Toolbox | None:
    """The tools of an agent that is a tool; None: it is no agent."""
    return bind(tool.handler.agent).toolbox if isinstance(tool.handler, AgentTool) else None


async def _needed_logins(trace: Trace, tools: Toolbox, journal: Journal) -> dict[str, UserLogin]:
    """The logins that calls lacked since the run was last resumed, by client, with those of the runs within it."""
    logins: dict[str, UserLogin] = {}
    for event in reversed(trace.events):
        fact = event.fact
        if isinstance(fact, Resumed):
            break
        if not isinstance(fact, Observed) or (name := trace.calls[fact.call_id].requested.tool) not in tools:
            continue
        tool = tools.get(name)
        if fact.error is not None and fact.error.code == LOGIN_REQUIRED and tool.login is not None:
            logins.setdefault(tool.login.client.id, tool.login)
        if fact.child is not None and (inner := inner_toolbox(tool)) is not None:
            child = Trace(fact.child, await journal.load(fact.child))
            logins = await _needed_logins(child, inner, journal) | logins
    return logins
