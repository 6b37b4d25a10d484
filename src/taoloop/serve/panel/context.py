"""What a page gets: the request, who sent it, the journal, and the ways to answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from aiohttp import web
from markupsafe import Markup
from multidict import MultiDictProxy

from taoloop.journals.base import Journal
from taoloop.journals.queries import JournalQueries, queries_of
from taoloop.serve.panel.access import Identity, Role, Session
from taoloop.serve.panel.rendering import LANGUAGES, THEMES, new_nonce, render, security_headers, static_file, translate
from taoloop.serve.panel.state import PanelState

LANGUAGE_SETTING: Final = "taoloop_language"
THEME_SETTING: Final = "taoloop_theme"

Page = Callable[["PanelContext"], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Route:
    """A page or an action of the panel."""

    method: str
    """`GET` or `POST`."""
    path: str
    """The path below the panel, as aiohttp writes it: `/runs/{run_id}`."""
    page: Page
    """What answers it."""
    role: Role | None = "viewer"
    """What a person must at least be; None: nobody has to be logged in."""


class PanelContext:
    """One request to the panel.

    Args:
        panel: What all requests share.
        request: The request; its form was read and its token checked if it is a POST.
        session: Who sent it; None on pages for everyone.
        language: `en` or `zh`.
    """

    def __init__(self, panel: PanelState, request: web.Request, session: Session | None, language: str) -> None:
        self.panel, self.request, self._session, self.language = panel, request, session, language
        self.nonce = new_nonce()

    @property
    def journal(self) -> Journal:
        """Where the runs are."""
        return self.panel.journal

    @property
    def queries(self) -> JournalQueries:
        """The questions to the journal."""
        return queries_of(self.panel.journal)

    @property
    def session(self) -> Session:
        """The session of the person, on a page that needs one."""
        if self._session is None:
            raise web.HTTPUnauthorized
        return self._session

    @property
    def identity(self) -> Identity:
        """The person."""
        return self.session.identity

    @property
    def is_fragment(self) -> bool:
        """Whether htmx asks for a part of a page, and not a browser for the whole of it."""
        return self.request.headers.get("HX-Request") == "true" and self.request.headers.get("HX-Boosted") != "true"

    def may(self, role: Role) -> bool:
        """Whether the person may do what this role may."""
        return self._session is not None and self._session.identity.may(role)

    def say(self, text: str, /, **values: object) -> str:
        """A text in the language of the person."""
        return translate(text, self.language, **values)

    def param(self, name: str) -> str:
        """A part of the path: the name in braces of the route."""
        return self.request.match_info[name]

    def query(self, name: str, default: str = "") -> str:
        """A value of the address."""
        return self.request.query.get(name, default)

    async def form(self) -> MultiDictProxy[Any]:
        """The fields of the form that was sent."""
        return await self.request.post()

    def without_path(self, text: str) -> str:
        """A text of ours for this person: where the database is, only those who may run commands on it are told."""
        path = getattr(self.journal, "path", None)
        return text if path is None or self.may("approver") else text.replace(str(path), path.name)

    # Addresses

    def path(self, path: str, /, **query: object) -> str:
        """An address of the panel, wherever it is mounted; values that are None or empty are left out."""
        fields = {name: value for name, value in query.items() if value not in (None, "", (), [])}
        return f"{self.panel.prefix}{path}{f'?{urlencode(fields, doseq=True)}' if fields else ''}"

    def run_path(self, run_id: str, tail: str = "", /, **query: object) -> str:
        """The address of a run, or of something below it."""
        return self.path(f"/runs/{quote(run_id, safe='')}{tail}", **query)

    def here(self, **changes: object) -> str:
        """The address of this page with other values in its query; None takes one away."""
        fields: dict[str, Any] = {name: self.request.query.getall(name) for name in self.request.query}
        return self.path(self.request.path.removeprefix(self.panel.prefix), **{**fields, **changes})

    # Answers

    def page(self, template: str, /, status: int = 200, **values: Any) -> web.Response:
        """A whole page."""
        return self._html(template, status, values)

    def fragment(self, template: str, /, status: int = 200, **values: Any) -> web.Response:
        """A part of a page, for htmx."""
        return self._html(template, status, values)

    def redirect(self, path: str) -> web.Response:
        """To another page of the panel, after an action (`path` is complete, as from `self.path`)."""
        return web.Response(status=303, headers={**security_headers(self.nonce), "Location": path})

    def text(self, body: str, content_type: str = "text/plain", filename: str | None = None) -> web.Response:
        """A file; with `filename` the browser stores it."""
        headers = security_headers(self.nonce)
        if filename is not None:
            headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(filename, safe='')}"
        return web.Response(text=body, content_type=content_type, charset="utf-8", headers=headers)

    def bytes(self, body: bytes, content_type: str, filename: str | None = None) -> web.Response:
        """An image or a file of a run: in a sandbox, and with `filename` only to be stored."""
        headers = security_headers(self.nonce)
        headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
        if filename is not None:
            headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(filename, safe='')}"
        return web.Response(body=body, content_type=content_type, headers=headers)

    def error(self, message: str, hint: str = "", status: int = 400) -> web.Response:
        """The page that says what is wrong and what to do; as a part of a page if htmx asks."""
        template = "error_part.html" if self.is_fragment else "error.html"
        texts = {"message": self.without_path(message), "hint": self.without_path(hint)}
        return self._html(template, status, texts)

    def _html(self, template: str, status: int, values: dict[str, Any]) -> web.Response:
        names = {
            "context": self,
            "identity": None if self._session is None else self._session.identity,
            "may": self.may,
            "url": self.path,
            "run_url": self.run_path,
            "here": self.here,
            "static": self._static,
            "csrf_field": self._csrf_field,
            "hx": Markup('hx-nonce="{}"').format(self.nonce),
            "nonce": self.nonce,
            "theme": theme_of(self.request),
            "pages": self.panel.navigation,
        }
        text = render(template, self.language, names | values)
        headers = security_headers(self.nonce)
        return web.Response(status=status, text=text, content_type="text/html", charset="utf-8", headers=headers)

    def _static(self, name: str) -> str:
        file = static_file(name)
        return self.path(f"/static/{name}", v=None if file is None else file.version)

    def _csrf_field(self) -> Markup:
        token = "" if self._session is None else self._session.csrf
        return Markup('<input type="hidden" name="csrf" value="{}">').format(token)


def language_of(request: web.Request) -> str:
    """The language that the person chose, or that of the browser."""
    chosen = request.cookies.get(LANGUAGE_SETTING, "")
    if chosen in LANGUAGES:
        return chosen
    return "zh" if request.headers.get("Accept-Language", "").lower().startswith("zh") else "en"


def theme_of(request: web.Request) -> str:
    """Light, dark, or as the device is."""
    theme = request.cookies.get(THEME_SETTING, "")
    return theme if theme in THEMES else THEMES[0]
