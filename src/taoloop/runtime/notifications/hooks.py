"""Where notices go: a webhook that is signed as the Standard Webhooks specification says, and a command."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from taoloop.errors import ConfigError, EgressFailed, EgressRefused
from taoloop.runtime.notifications.notice import Notice
from taoloop.tools.egress import EgressClient, EgressRules, Resolver
from taoloop.tools.egress.client import load_transport
from taoloop.tools.egress.rules import resolve_host
from taoloop.tools.openapi.settings import is_http_url
from taoloop.tools.settings_check import Seconds, Texts, check_fields

if TYPE_CHECKING:
    import ssl

SECRET_PREFIX = "whsec_"  # noqa: S105  # a mark, no secret
"""How a secret of a webhook begins; the rest is base64."""

_SECRET_BYTES = range(24, 65)
_MOST_ANSWER_BYTES = 64 * 1024
_MOST_ERROR_CHARS = 300
_OK, _REDIRECT = 200, 300
_GONE = 410
_WAITS = frozenset((429, 503))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationSettings:
    """Where notices of what waits for a person go; without `url` and `command` nowhere."""

    url: str = ""
    """The address of a webhook. It may be of this machine or of a private network, for the operator wrote it; the
    metadata service of a cloud is refused. Redirects are not followed."""

    secret: str = field(default="", repr=False)
    """With what the webhook's messages are signed: `whsec_` and 24 to 64 bytes in base64. Several, with spaces between
    them, sign each message so often, so that a receiver can change from one to the next."""

    command: Texts = ()
    """A program and its arguments, started for each notice without a shell, with the message on its standard input. It
    has the environment of this process."""

    timeout_s: Seconds = 15.0
    """How long one attempt may take: a request, or the command."""

    def __post_init__(self) -> None:
        """Refuse what could not be sent.

        Raises:
            ConfigError: names the field, and what it must be.
        """
        check_fields(self, "The hook")
        if self.url and not is_http_url(self.url):
            raise ConfigError("url: this is not an address.", hint="Write it like https://hooks.example/tao.")
        if self.url and not self.secret:
            raise ConfigError(
                "secret: a webhook needs one, so that its receiver can tell its messages from others.",
                hint="Make one: echo whsec_$(openssl rand -base64 32)",
            )
        if self.secret:
            signing_keys(self.secret)
        if self.url:
            EgressRules().allowing(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryResult:
    """What came of one attempt to deliver a notice."""

    problem: str = ""
    """Why it was not delivered; "": it was."""

    retry_after_s: float = 0.0
    """How long the receiver asks to wait."""

    is_final: bool = False
    """Whether the receiver wants no more of them."""


class Hook(Protocol):
    """Where notices go."""

    name: str
    """For messages; without anything secret."""

    key: str
    """Tells it from other hooks, in every process: what was delivered is kept by it."""

    timeout_s: float
    """How long an attempt may take, in seconds."""

    async def send(self, notice: Notice, now: float) -> DeliveryResult:
        """Try once to deliver a notice, at the time `now` (seconds since the epoch); never raises."""
        ...


def hooks_of(settings: NotificationSettings | None) -> list[Hook]:
    """The hooks that settings name."""
    if settings is None:
        return []
    hooks: list[Hook] = []
    if settings.url:
        hooks.append(Webhook(settings.url, settings.secret, timeout_s=settings.timeout_s))
    if settings.command:
        hooks.append(CommandHook(settings.command, timeout_s=settings.timeout_s))
    return hooks


def signing_keys(secret: str) -> list[bytes]:
    """The keys in a secret of a webhook, or in several with spaces between them.

    Raises:
        ConfigError: one of them is none.
    """
    keys = []
    for part in secret.split():
        try:
            key = base64.b64decode(part.removeprefix(SECRET_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if not part.startswith(SECRET_PREFIX) or len(key) not in _SECRET_BYTES:
            raise ConfigError(
                "secret: it is not whsec_ and 24 to 64 bytes in base64.",
                hint="Make one: echo whsec_$(openssl rand -base64 32)",
            )
        keys.append(key)
    return keys


def signature(keys: Sequence[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`: `v1,` and HMAC-SHA256 of `id.timestamp.body` in base64, for each key."""
    content = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    digests = (hmac.new(key, content, hashlib.sha256).digest() for key in keys)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


class Webhook:
    """Posts notices to an address, signed as https://www.standardwebhooks.com says.

    Args:
        url: The address.
        secret: As `NotificationSettings.secret`.
        timeout_s: How long a request may take, in seconds.
        resolver: Resolves the host; by default that of this machine.
        tls: Creates the TLS context; by default with the certificates that this machine trusts.

    Raises:
        ConfigError: the address or the secret is none.
        MissingExtra: the HTTP client is not installed.
    """

    def __init__(
        self,
        url: str,
        secret: str,
        *,
        timeout_s: float = 15.0,
        resolver: Resolver = resolve_host,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._url, self._keys, self.timeout_s = url, signing_keys(secret), timeout_s
        load_transport()  # what is missing is said now, and not at the first notice
        rules = EgressRules(only_allowed=True).allowing(url)
        self.name = f"webhook {rules.allow[0]}"  # the path may be a secret
        self.key = _key_of("webhook", url)
        self._client = EgressClient(
            rules, timeout_s=timeout_s, max_bytes=_MOST_ANSWER_BYTES, resolver=resolver, tls=tls
        )

    async def send(self, notice: Notice, now: float) -> DeliveryResult:
        """Post it once. Anything but a status of 200 to 299 is a failure, redirects too."""
        body, timestamp = notice.body(), int(now)
        headers = {
            "content-type": "application/json",
            "webhook-id": notice.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(self._keys, notice.id, timestamp, body),
        }
        try:
            response = await self._client.send("POST", self._url, headers=headers, body=body)
        except (EgressFailed, EgressRefused) as error:
            return DeliveryResult(problem=error.message)
        if _OK <= response.status < _REDIRECT:
            return DeliveryResult()
        wait = response.headers.get("retry-after", "") if response.status in _WAITS else ""
        return DeliveryResult(
            problem=f"status {response.status}",
            retry_after_s=float(wait) if wait.isascii() and wait.isdecimal() else 0.0,
            is_final=response.status == _GONE,
        )


class CommandHook:
    """Starts a program for each notice, without a shell, with the message on its standard input.

    Args:
        argv: The program and its arguments.
        timeout_s: After how many seconds it is killed, with all that it has started.

    Raises:
        ConfigError: it names no program.
    """

    def __init__(self, argv: Sequence[str], *, timeout_s: float = 15.0) -> None:
        if not argv:
            raise ConfigError("The command of the notifications is empty.", hint="Name a program.")
        self._argv, self.timeout_s = tuple(argv), timeout_s
        self.name = f"command {self._argv[0]}"
        self.key = _key_of("command", *self._argv)

    async def send(self, notice: Notice, now: float) -> DeliveryResult:  # noqa: ARG002  # as of a hook
        """Run it once. Anything but the exit code 0 is a failure."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # its own group, to be ended with all that it starts
            )
        except (OSError, ValueError) as error:
            return DeliveryResult(problem=str(getattr(error, "strerror", None) or error))
        try:
            async with asyncio.timeout(self.timeout_s):
                _, errors = await process.communicate(notice.body() + b"\n")
        except TimeoutError:
            return DeliveryResult(problem=f"no end within {self.timeout_s:g} s")
        finally:
            if process.returncode is None:
                _kill(process)
                await process.wait()
        if process.returncode == 0:
            return DeliveryResult()
        last = errors.decode(errors="replace").strip()[-_MOST_ERROR_CHARS:]
        return DeliveryResult(problem=f"exit code {process.returncode}{f': {last}' if last else ''}")


def _kill(process: asyncio.subprocess.Process) -> None:
    """End a program with all that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _key_of(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
