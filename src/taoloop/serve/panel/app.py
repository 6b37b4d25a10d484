"""The panel as an application: its routes, and what all of its requests have in common.

Each request passes, in this order: the name under which the server is called (DNS rebinding), the session, the role,
for actions the origin of the page and the token of the form (cross-site request forgery), then the page. Errors become
pages in the language of the person.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from taoloop.core.text import RUN_LANGUAGE
from taoloop.errors import ConfigError, JournalError, RunNotFound, TaoError
from taoloop.serve.panel.access import Session
from taoloop.serve.panel.context import PanelContext, Route, language_of
from taoloop.serve.panel.pages import (
    compare,
    costs,
    evaluations,
    fork,
    inbox,
    inbox_item,
    login,
    policy,
    resumption,
    run,
    run_actions,
    run_files,
    run_plan,
    runs,
    undo,
)
from taoloop.serve.panel.state import PanelState
from taoloop.translation import INTERFACE_LANGUAGE, mark, translate_error

_LOG = logging.getLogger("taoloop.panel")

_ROUTES: Final[tuple[Route, ...]] = (
    *login.ROUTES,
    *runs.ROUTES,
    *run.ROUTES,
    *run_files.ROUTES,
    *run_plan.ROUTES,
    *run_actions.ROUTES,
    *inbox.ROUTES,
    *inbox_item.ROUTES,
    *resumption.ROUTES,
    *compare.ROUTES,
    *fork.ROUTES,
    *policy.ROUTES,
    *undo.ROUTES,
    *costs.ROUTES,
    *evaluations.ROUTES,
)

NAVIGATION: Final = (
    ("/runs", mark("Runs")),
    ("/inbox", mark("Inbox")),
    ("/compare", mark("Compare")),
    ("/costs", mark("Costs and health")),
    ("/evals", mark("Evaluations")),
)
"""The pages in the navigation: the path of each and its name."""

_MAX_FORM_BYTES = 8 * 1024**2


class Panel:
    """The pages over one journal.

    Args:
        state: The journal, who may see it, and the settings.
    """

    def __init__(self, state: PanelState) -> None:
        self.state = state
        state.navigation = NAVIGATION
        self.app = web.Application(middlewares=[self._answer_routing_errors], client_max_size=_MAX_FORM_BYTES)
        for route in _ROUTES:
            self.app.router.add_route(route.method, route.path, self._handler(route))
        self._open: set[asyncio.Task[object]] = set()
        self.app.on_shutdown.append(self._shut_down)

    def _handler(self, route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            task = asyncio.current_task()
            assert task is not None  # noqa: S101  # the server runs handlers in tasks
            self._open.add(task)
            language = language_of(request)
            tokens = [(variable, variable.set(language)) for variable in (INTERFACE_LANGUAGE, RUN_LANGUAGE)]
            try:
                return await self._respond(route, request, language)
            finally:  # the next request of the connection has the same context, and may be another application's
                for variable, token in tokens:
                    variable.reset(token)
                self._open.discard(task)

        return handle

    async def _respond(self, route: Route, request: web.Request, language: str) -> web.StreamResponse:
        session = await self.state.sessions.find(request.cookies.get(self.state.session_name, ""))
        context = PanelContext(self.state, request, session, language)
        try:
            if (refusal := await self._refusal(route, context, session)) is not None:
                return refusal
            if session is not None and request.method == "GET" and not context.is_fragment:
                await self.state.count_inbox()
            return await route.page(context)
        except (web.HTTPException, ConnectionError, asyncio.CancelledError):
            raise
        except TaoError as error:
            return context.error(translate_error(error.message), translate_error(error.hint), _status_of(error))
        except Exception:  # noqa: BLE001  # a bug must not take its message to the browser
            _LOG.exception("the page %s failed", request.path)
            hint = context.say("The log of the server has the details.")
            return context.error(context.say("This page failed."), hint, 500)

    async def _refusal(self, route: Route, context: PanelContext, session: Session | None) -> web.Response | None:
        """Why the request is not answered; None: it is."""
        request = context.request
        if (refusal := self._wrong_host(context)) is not None:
            return refusal
        if route.role is not None and session is None:
            return self._to_login(context)
        if route.role is not None and not context.may(route.role):
            message = context.say("You are logged in as {role}; this needs {needed}.", **self._roles(context, route))
            return context.error(message, context.say("Ask whoever runs this panel."), 403)
        if request.method == "POST":
            try:
                form = await request.post()
            except (ValueError, LookupError):  # no such encoding, or not encoded or divided as the header says
                hint = context.say("Load the page again and repeat what you did; nothing was changed.")
                return context.error(context.say("This form cannot be read."), hint, 400)
            token = str(form.get("csrf", ""))
            csrf = "" if session is None else session.csrf
            if is_cross_site(request.headers) or (session is not None and not hmac.compare_digest(token, csrf)):
                hint = context.say("Load the page again and repeat what you did; nothing was changed.")
                return context.error(context.say("This form is not from your session."), hint, 403)
        return None

    def _wrong_host(self, context: PanelContext) -> web.Response | None:
        if self.state.hosts.accepts(context.request.headers.get("Host")):
            return None
        hint = context.say("Start it with --allow-host NAME.")
        return context.error(context.say("The panel is not served under this name."), hint, 421)

    @staticmethod
    def _roles(context: PanelContext, route: Route) -> dict[str, str]:
        return {"role": context.say(context.identity.role), "needed": context.say(route.role or "viewer")}

    def _to_login(self, context: PanelContext) -> web.Response:
        request = context.request
        if context.is_fragment or "text/event-stream" in request.headers.get("Accept", ""):
            response = context.error(context.say("Your session is over."), context.say("Log in again."), 401)
            response.headers["HX-Redirect"] = context.path("/login")
            return response
        target = request.path_qs if request.method == "GET" else None
        return context.redirect(context.path("/login", next=target))

    @web.middleware
    async def _answer_routing_errors(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            language = language_of(request)
            session = await self.state.sessions.find(request.cookies.get(self.state.session_name, ""))
            context = PanelContext(self.state, request, session, language)
            if (refusal := self._wrong_host(context)) is not None:
                return refusal
            messages = {
                404: context.say("There is no such page."),
                405: context.say("This page takes no such request."),
            }
            message = messages.get(error.status, error.reason)
            return context.error(message, context.say("The list of runs is a good place to start."), error.status)

    async def _shut_down(self, _app: web.Application) -> None:
        """End the streams of open pages, and stop the runs that this process drives."""
        current = asyncio.current_task()
        for task in self._open - {current}:
            task.cancel()
        await self.state.close()


def is_cross_site(headers: Mapping[str, str]) -> bool:
    """Whether a browser sends this for a page of another origin. Source: Fetch Metadata Request Headers, W3C."""
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("Origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != headers.get("Host", "").lower()
    except ValueError:  # no address at all, so not that of the panel
        return True


def _status_of(error: TaoError) -> int:
    match error:
        case RunNotFound():
            return 404
        case ConfigError():
            return 400
        case JournalError():
            return 503
        case _:
            return 409
