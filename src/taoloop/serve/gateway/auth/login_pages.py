"""The pages of a login: what it is about, the way to the authorization server, and back.

A ticket in an address is a bearer secret, and programs of chats open addresses to preview them, so opening one begins
nothing: the person must press a button. The page says for whom the login is, because whoever follows somebody else's
address would lend that person their account. A cookie binds the way back to the browser that went.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator
from html import escape

from aiohttp import web

from taoloop.core.text import RUN_LANGUAGE
from taoloop.errors import TaoError
from taoloop.serve.gateway.auth.accounts import LOGIN_PATH, person_of
from taoloop.serve.gateway.auth.login_links import logins_within, public_url
from taoloop.serve.gateway.auth.origins import is_foreign, origin_refused
from taoloop.serve.gateway.request_context import RequestContext
from taoloop.tools.oauth.texts import TEXTS
from taoloop.tools.oauth.user_login import LOGIN_LIFETIME_S, UserLogin, login_failed

CALLBACK_PATH = "/oauth/callback"
"""The path of the redirect, which is registered at each authorization server."""

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_PAGE = """<!doctype html>
<html lang="{language}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>body{{font:1rem/1.5 system-ui;max-width:36rem;margin:4rem auto;padding:0 1rem}}
button{{font:inherit;padding:.5rem 1rem}}</style><h1>{title}</h1>
{body}
</html>
"""


async def login_page(context: RequestContext) -> web.StreamResponse:
    """`GET /oauth/login/{ticket}`: what the login is about; it begins nothing."""
    with_language(context)
    ticket = context.request.match_info["ticket"]
    for login in _logins(context):
        if (account := await login.invited(ticket)) is not None:
            return _ask(login, account)
    return _failed(login_failed("state_unknown"))


async def begin_login(context: RequestContext) -> web.StreamResponse:
    """`POST /oauth/login/{ticket}`: sends the browser to the authorization server; the ticket is used up.

    Raises:
        ApiError: the page of another origin sent it.
    """
    with_language(context)
    if is_foreign(context.request.headers, ()):
        raise origin_refused(context.request.headers)
    ticket, base = context.request.match_info["ticket"], public_url(context)
    for login in _logins(context):
        if base and await login.invited(ticket) is not None:
            return await _page_of(context, _begin(login, ticket, base))
    return _failed(login_failed("state_unknown"))


async def finish_login(context: RequestContext) -> web.StreamResponse:
    """`GET /oauth/callback`: the browser comes back with a code, which is exchanged for tokens."""
    with_language(context)
    request = context.request
    if request.method != "GET":  # HEAD must not use up a code
        return web.Response(headers=_HEADERS)
    fields = dict(request.query)
    state = fields.get("state", "")
    browser = request.cookies.get(_cookie_name(state), "")
    for login in _logins(context):
        if await login.has_begun(state):
            response = await _page_of(context, _finish(login, fields, browser))
            response.del_cookie(_cookie_name(state), path="/oauth/")
            return response
    return _failed(login_failed("state_unknown"))


LOGIN_ROUTES: list[tuple[str, str, Callable[[RequestContext], Awaitable[web.StreamResponse]]]] = [
    ("GET", f"{LOGIN_PATH}/{{ticket}}", login_page),
    ("POST", f"{LOGIN_PATH}/{{ticket}}", begin_login),
    ("GET", CALLBACK_PATH, finish_login),
]
"""Method, path and handler of the routes for browsers; the ticket or the state in them is the credential."""


def with_language(context: RequestContext) -> None:
    """Take the language of the browser for the texts of this request."""
    RUN_LANGUAGE.set("zh" if context.request.headers.get("Accept-Language", "").lower().startswith("zh") else "en")


def _logins(context: RequestContext) -> Iterator[UserLogin]:
    """The logins that the agents of the configuration need."""
    for served in context.config.agents.values():
        yield from logins_within(served.agent.toolbox)


async def _begin(login: UserLogin, ticket: str, base: str) -> web.Response:
    started = await login.accept(ticket, f"{base}{CALLBACK_PATH}")
    response = web.Response(status=303, headers={**_HEADERS, "Location": started.url})
    response.set_cookie(
        _cookie_name(started.state),
        started.browser,
        max_age=int(LOGIN_LIFETIME_S),
        path="/oauth/",
        httponly=True,
        samesite="Lax",
        secure=base.startswith("https:"),
    )
    return response


async def _finish(login: UserLogin, fields: dict[str, str], browser: str) -> web.Response:
    await login.finish(fields, browser)
    return _page(login.client.api, f"<p>{_text('page_done', api=login.client.api)}</p>")


async def _page_of(context: RequestContext, step: Awaitable[web.Response]) -> web.Response:
    """The page of a step, or the one that says why there is no login."""
    try:
        return await step
    except TaoError as error:
        context.record.error = error.code
        return _failed(error)


def _ask(login: UserLogin, account: str) -> web.Response:
    person = person_of(account) or TEXTS.run_text("page_anyone")
    body = (
        f"<p>{_text('page_ask', user=person, api=login.client.api, host=login.client.host)}</p>"
        f"<p>{_text('page_warning')}</p>"
        f"<form method=post><button>{_text('page_continue')}</button></form>"
    )
    return _page(login.client.api, body)


def _failed(error: TaoError) -> web.Response:
    return _page("", f"<p>{_text('page_failed', reason=error.message)}</p>", status=400)


def _page(api: str, body: str, status: int = 200) -> web.Response:
    title = _text("page_title", api=api) if api else "taoloop"
    text = _PAGE.format(language=RUN_LANGUAGE.get(), title=title, body=body)
    return web.Response(status=status, text=text, content_type="text/html", headers=_HEADERS)


def _text(name: str, **values: object) -> str:
    return escape(TEXTS.run_text(name, **values))


def _cookie_name(state: str) -> str:
    return f"taoloop_login_{hashlib.sha256(state.encode()).hexdigest()[:16]}"
