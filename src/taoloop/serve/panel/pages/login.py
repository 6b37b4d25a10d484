"""Logging in and out, the person's language and theme, and the files that pages load."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.rendering import LANGUAGES, THEMES, security_headers, static_file

_YEAR_S: Final = 365 * 86_400

_DIRECT: Final = ("none", "same-origin")
"""What browsers send in `Sec-Fetch-Site` where no page of another origin had the link."""


async def home(context: PanelContext) -> web.StreamResponse:
    """`GET /`: the list of runs."""
    return context.redirect(context.path("/runs"))


async def login_page(context: PanelContext) -> web.StreamResponse:
    """`GET /login`: asks for the credential; a link with a `token` logs in, at once if the person opened it directly.

    A link in a page of another origin may hold the token of somebody else, who would then see what the person writes,
    or answers under that name (login cross-site request forgery): the person is asked first. Browsers say where a
    link was followed only to `localhost` and by HTTPS; where they do not, the person is asked, too.
    """
    credential, target = context.query("token"), context.query("next")
    if not credential:
        return context.page("login.html", next=target, failed=False)
    if context.request.headers.get("Sec-Fetch-Site") in _DIRECT:
        return await _log_in(context, credential, target)
    if (identity := await context.panel.access.identify(credential)) is None:
        return _refused(context, target)
    return context.page("login.html", next=target, failed=False, offered=identity, credential=credential)


async def log_in(context: PanelContext) -> web.StreamResponse:
    """`POST /login`: the form with the credential."""
    form = await context.form()
    return await _log_in(context, str(form.get("credential", "")).strip(), str(form.get("next", "")))


async def log_out(context: PanelContext) -> web.StreamResponse:
    """`POST /logout`: ends the session."""
    context.panel.sessions.close(context.session)
    response = context.redirect(context.path("/login"))
    response.del_cookie(context.panel.session_name, path="/")
    return response


async def set_preferences(context: PanelContext) -> web.StreamResponse:
    """`POST /preferences`: language and theme, kept by the browser."""
    form = await context.form()
    response = context.redirect(_inside(context, str(form.get("next", ""))))
    for cookie, allowed in (("language", LANGUAGES), ("theme", THEMES)):
        if (value := str(form.get(cookie, ""))) in allowed:
            _set_cookie(context, response, f"taoloop_{cookie}", value, _YEAR_S)
    return response


async def static(context: PanelContext) -> web.StreamResponse:
    """`GET /static/{name}`: a file of the panel; its address changes with its content."""
    file = static_file(context.param("name"))
    if file is None:
        raise web.HTTPNotFound
    headers = security_headers(context.nonce) | {"Cache-Control": "public, max-age=31536000, immutable"}
    return web.Response(body=file.body, content_type=file.content_type, charset="utf-8", headers=headers)


ROUTES: Final = (
    Route("GET", "/", home),
    Route("GET", "/login", login_page, role=None),
    Route("POST", "/login", log_in, role=None),
    Route("POST", "/logout", log_out),
    Route("POST", "/preferences", set_preferences),
    Route("GET", "/static/{name}", static, role=None),
)


async def _log_in(context: PanelContext, credential: str, target: str) -> web.StreamResponse:
    identity = await context.panel.access.identify(credential) if credential else None
    if identity is None:
        return _refused(context, target)
    response = context.redirect(_inside(context, target))
    _set_cookie(context, response, context.panel.session_name, context.panel.sessions.open(identity), None)
    return response


def _refused(context: PanelContext, target: str) -> web.Response:
    return context.page("login.html", status=401, next=target, failed=True)


def _set_cookie(context: PanelContext, response: web.Response, name: str, value: str, max_age: int | None) -> None:
    is_secure = context.panel.is_secure
    response.set_cookie(name, value, max_age=max_age, path="/", httponly=True, samesite="Lax", secure=is_secure)


def _inside(context: PanelContext, target: str) -> str:
    """An address to go to afterwards: of this panel alone, else the list of runs."""
    try:
        parts = urlsplit(target)
    except ValueError:  # brackets of IPv6 without an address
        return context.path("/runs")
    is_ours = not (parts.scheme or parts.netloc) and parts.path.startswith(f"{context.panel.prefix}/")
    is_plain = target.isprintable() and "\\" not in target and not target.startswith("//")
    return target if is_ours and is_plain else context.path("/runs")
