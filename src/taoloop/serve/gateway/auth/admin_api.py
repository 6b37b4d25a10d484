"""`/v1/admin`: administrators manage the keys of clients, and see what was done to them.

It is served where the configuration names admin keys. Those open nothing else, and no other key opens this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from pydantic import ConfigDict

from taoloop.core.policy import TaskAuthority
from taoloop.errors import ConfigError
from taoloop.serve.gateway.auth.keys import presented_key, require_active
from taoloop.serve.gateway.errors import ApiError, invalid
from taoloop.serve.gateway.request_context import RequestContext
from taoloop.serve.gateway.request_schema import ApiModel, parse_body
from taoloop.serve.gateway.shared.managed_keys import Admin, ManagedKey
from taoloop.serve.panel.access import Role

_MAX_ACTS = 1_000


class KeyChangeWire(ApiModel):
    """Settings of a key; only those that are there are changed, and null removes a limit or the expiry.

    Unknown fields are refused: a limit with a typing error would be none.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    agents: list[str] | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    usd_per_day: float | None = None
    may_approve: bool = True
    task_authority: TaskAuthority = "values"
    panel: Role | None = None
    expires: str | None = None
    blocked: bool = False

    def settings(self) -> dict[str, Any]:
        """The settings that the body names, as those of a key."""
        values = self.model_dump(include=self.model_fields_set)
        if "agents" in values:
            values["agents"] = tuple(values["agents"] or ())
        if "expires" in values:
            values["expires"] = values["expires"] or ""
        return values


class NewKeyWire(KeyChangeWire):
    """A new key: its name, and its settings."""

    name: str


Handler = Callable[[RequestContext, Admin], Awaitable[web.Response]]


def for_admins(handler: Handler) -> Callable[[RequestContext], Awaitable[web.Response]]:
    """The handler, for requests with an admin key alone."""

    async def handle(context: RequestContext) -> web.Response:
        return await handler(context, _admin_of(context))

    return handle


def _admin_of(context: RequestContext) -> Admin:
    """Who sends the request.

    Raises:
        ApiError: there is no admin API here, or the request has no active admin key.
    """
    if not context.config.admin_keys:
        message = "There is no admin API here: the configuration names no admin keys (`auth.admin_keys`)."
        raise ApiError(status=404, message=message, code="unknown_url")
    key = context.snapshot.admin_keys.find(presented_key(context.request.headers))
    if key is None:
        message = "The request has no admin key. Send `Authorization: Bearer KEY` with one of `auth.admin_keys`."
        raise ApiError(status=401, message=message, code="invalid_admin_key")
    require_active(key, context.now())
    context.record.key = key.name
    return Admin(name=key.name, request_id=context.record.request_id)


async def create_key(context: RequestContext, admin: Admin) -> web.Response:
    """`POST /v1/admin/keys`: a new key; the only answer that contains it.

    Raises:
        ApiError: a setting is invalid, or the name is taken.
    """
    body = parse_body(NewKeyWire, await context.receive_body())
    settings = body.settings()
    _require_agents(context, settings)
    if any(key.name == body.name for key in context.config.keys):
        raise _conflict(f"A key of the configuration file is called {body.name!r}.")
    try:
        secret = context.managed_keys.create(settings, admin)
    except ConfigError as error:
        if context.managed_keys.was_used(body.name):
            raise _conflict(f"{error.message} {error.hint}") from None
        raise invalid(f"{error.message} {error.hint}".strip()) from None
    managed = _found(context.managed_keys.entry(body.name), body.name)
    return context.json_response({**_key_part(managed, context.now()), "key": secret}, status=201)


async def list_keys(context: RequestContext, _: Admin) -> web.Response:
    """`GET /v1/admin/keys`: all managed keys."""
    data = [_key_part(managed, context.now()) for managed in context.managed_keys.entries()]
    return context.json_response({"object": "list", "data": data})


async def get_key(context: RequestContext, _: Admin) -> web.Response:
    """`GET /v1/admin/keys/{name}`: one key.

    Raises:
        ApiError: there is none of this name.
    """
    name = context.request.match_info["name"]
    return context.json_response(_key_part(_found(context.managed_keys.entry(name), name), context.now()))


async def change_key(context: RequestContext, admin: Admin) -> web.Response:
    """`PATCH /v1/admin/keys/{name}`: block, unblock, expire, or other settings.

    Raises:
        ApiError: there is none of this name, or a setting is invalid.
    """
    name = context.request.match_info["name"]
    changes = parse_body(KeyChangeWire, await context.receive_body()).settings()
    if not changes:
        raise invalid("The body names no setting to change.")
    _require_agents(context, changes)
    try:
        managed = context.managed_keys.change(name, changes, admin)
    except ConfigError as error:
        raise invalid(f"{error.message} {error.hint}".strip()) from None
    return context.json_response(_key_part(_found(managed, name), context.now()))


async def rotate_key(context: RequestContext, admin: Admin) -> web.Response:
    """`POST /v1/admin/keys/{name}/rotate`: another secret in place of the old one, which is refused from now on.

    Raises:
        ApiError: there is none of this name.
    """
    name = context.request.match_info["name"]
    secret = context.managed_keys.rotate(name, admin)
    managed = _found(context.managed_keys.entry(name), name)
    return context.json_response({**_key_part(managed, context.now()), "key": secret})


async def delete_key(context: RequestContext, admin: Admin) -> web.Response:
    """`DELETE /v1/admin/keys/{name}`: the key is refused for ever.

    Raises:
        ApiError: there is none of this name.
    """
    name = context.request.match_info["name"]
    if not context.managed_keys.delete(name, admin):
        raise _unknown_key(name)
    return context.json_response({"object": "key.deleted", "name": name, "deleted": True})


async def list_acts(context: RequestContext, _: Admin) -> web.Response:
    """`GET /v1/admin/audit`: what administrators did, the newest first; `before` and `limit` page through it.

    Raises:
        ApiError: `before` or `limit` is not a number in its range.
    """
    limit, before = (_number(context, name) for name in ("limit", "before"))
    acts = context.managed_keys.acts(before=before, limit=min(limit or 100, _MAX_ACTS))
    data = [{"object": "admin_act", **asdict(act), "at": _time(act.at)} for act in acts]
    return context.json_response({"object": "list", "data": data})


def _number(context: RequestContext, name: str) -> int | None:
    text = context.request.query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text[:18]) > 0 and len(text) < 18):  # of 2**62
        raise invalid(f"`{name}` is not a whole number above 0.", name)
    return int(text)


def _require_agents(context: RequestContext, settings: Mapping[str, Any]) -> None:
    for index, name in enumerate(settings.get("agents", ())):
        if name not in context.config.agents:
            known = ", ".join(context.config.agents)
            raise invalid(f"No agent is called {name[:200]!r}. Known: {known}.", f"agents[{index}]")


def _found(managed: ManagedKey | None, name: str) -> ManagedKey:
    if managed is None:
        raise _unknown_key(name)
    return managed


def _unknown_key(name: str) -> ApiError:
    message = f"No managed key is called {name[:200]!r}. Keys of the configuration file are changed there."
    return ApiError(status=404, message=message, code="key_not_found")


def _conflict(message: str) -> ApiError:
    return ApiError(status=409, message=message, param="name", code="key_exists")


def _key_part(managed: ManagedKey, now: float) -> dict[str, Any]:
    """A key without its secret."""
    settings = {name: value for name, value in asdict(managed.key).items() if name != "digest"}
    return {
        "object": "key",
        **settings,
        "expires": managed.key.expires or None,
        "state": managed.key.state_at(now),
        "created_at": _time(managed.created_at),
        "rotated_at": _time(managed.rotated_at),
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


ADMIN_ROUTES = [
    ("POST", "/v1/admin/keys", for_admins(create_key)),
    ("GET", "/v1/admin/keys", for_admins(list_keys)),
    ("GET", "/v1/admin/keys/{name}", for_admins(get_key)),
    ("PATCH", "/v1/admin/keys/{name}", for_admins(change_key)),
    ("DELETE", "/v1/admin/keys/{name}", for_admins(delete_key)),
    ("POST", "/v1/admin/keys/{name}/rotate", for_admins(rotate_key)),
    ("GET", "/v1/admin/audit", for_admins(list_acts)),
]
"""Method, path and handler of every route."""
