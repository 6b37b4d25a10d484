"""What the official SDKs say a request looks like: address, path, key and headers. They send nothing themselves.

An SDK's client is given a transport that only looks at the request. So the SDK decides how a key is presented, which
version of the API is asked for and, for Azure, which path a deployment has; `transport.py` carries the request.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from taoloop.errors import MissingExtra, ModelAuthError, ModelError
from taoloop.models.http.transport import HttpTarget
from taoloop.models.providers import AZURE_DEPLOYMENTS_VERSION, PROVIDERS, Api, Endpoint, shown_address

_SDK_HEADERS = re.compile(r"accept|accept-encoding|connection|content-length|host|transfer-encoding|x-stainless-.*")
"""Headers that say how a request is carried, and what the SDK is doing: it carries nothing."""

_PORTABLE_HEADERS = ("authorization", "content-type", "user-agent")
"""The headers for a provider that only speaks OpenAI's API. Others that the SDK finds in the environment
(OPENAI_ORG_ID, OPENAI_CUSTOM_HEADERS …) are meant for OpenAI."""


class _Captured(Exception):
    """The request was looked at; it goes no further."""


class _CaptureTransport:
    """A transport of httpx and httpx2 that keeps the request and sends nothing."""

    def __init__(self) -> None:
        self.request: Any = None

    def handle_request(self, request: Any) -> Any:
        """Keep the request."""
        self.request = request
        raise _Captured

    def close(self) -> None:
        """Nothing to close."""


def openai_target(endpoint: Endpoint, path: str = "/chat/completions") -> HttpTarget:
    """Where and how the OpenAI SDK asks for a chat completion, or calls another path of its API.

    Raises:
        MissingExtra: the SDK is not installed.
        ModelAuthError: no such key can be sent.
        ModelError: it cannot use the address, or the proxy.
    """
    if endpoint.url:
        return _named_target(endpoint)
    sdk = _sdk("openai")
    address = endpoint.address.rstrip("/").removesuffix(path)
    options: dict[str, Any] = {"api_key": endpoint.api_key, "base_url": address, "max_retries": 0}
    client = sdk.OpenAI
    if endpoint.provider == "azure" and not address.endswith("/v1"):
        client = sdk.AzureOpenAI
        options["api_version"] = endpoint.api_version or AZURE_DEPLOYMENTS_VERSION
    elif endpoint.provider == "azure":
        options["default_headers"] = {"api-key": endpoint.api_key}  # gateways before Azure often know only this one
        options["default_query"] = {"api-version": endpoint.api_version} if endpoint.api_version else None
    target = _target(endpoint, sdk, lambda http_client: client(**options, http_client=http_client), path)
    if endpoint.provider in ("openai", "azure"):
        return target
    return replace(target, headers={name: value for name, value in target.headers.items() if name in _PORTABLE_HEADERS})


def anthropic_target(endpoint: Endpoint) -> HttpTarget:
    """Where and how the Anthropic SDK asks for a message.

    Raises:
        MissingExtra: the SDK is not installed.
        ModelAuthError: no such key can be sent.
        ModelError: it cannot use the address, or the proxy.
    """
    sdk = _sdk("anthropic")
    address = endpoint.address.rstrip("/").removesuffix("/messages").removesuffix("/v1")
    options = {"api_key": endpoint.api_key, "base_url": address, "max_retries": 0}
    return _target(endpoint, sdk, lambda http_client: sdk.Anthropic(**options, http_client=http_client), "/v1/messages")


def _target(endpoint: Endpoint, sdk: Any, client_on: Callable[[Any], Any], path: str) -> HttpTarget:
    spec, address = f"{endpoint.provider}:{endpoint.model}", shown_address(endpoint.address)
    _require_sendable(endpoint)
    looking = _CaptureTransport()
    try:
        client = client_on(sdk.DefaultHttpxClient(transport=looking, trust_env=False))
        client.post(path, cast_to=object, body={"model": endpoint.model, "messages": []})
    except Exception as error:  # each SDK wraps ours in its own
        if looking.request is None:
            raise ModelError(
                f"{spec} cannot be called at {address}: {type(error).__name__} in the SDK.", hint="Check the address."
            ) from error
    request = looking.request
    url = str(request.url)
    headers = {name: value for name, value in request.headers.items() if not _SDK_HEADERS.fullmatch(name)}
    http = import_module(type(request).__module__.partition(".")[0])  # httpx2, or httpx with older SDKs
    tls = http.create_ssl_context if url.startswith("https:") else None
    return HttpTarget(name=spec, address=address, url=url, headers=headers, proxy=_proxy(spec, url), tls=tls)


def _named_target(endpoint: Endpoint) -> HttpTarget:
    """An address that is named whole: the key as a bearer token, and nothing else of anybody's."""
    spec = f"{endpoint.provider}:{endpoint.model}"
    _require_sendable(endpoint)
    return HttpTarget(
        name=spec,
        address=shown_address(endpoint.url),
        url=endpoint.url,
        headers={
            "authorization": f"Bearer {endpoint.api_key}",
            "content-type": "application/json",
            "user-agent": f"taoloop/{version('taoloop')}",
        },
        proxy=_proxy(spec, endpoint.url),
        tls=ssl.create_default_context if endpoint.url.startswith("https:") else None,
    )


def _require_sendable(endpoint: Endpoint) -> None:
    if not (endpoint.api_key.isascii() and endpoint.api_key.isprintable()):
        raise ModelAuthError(
            f"{endpoint.provider}:{endpoint.model} was not called: no header can hold the key in "
            f"{endpoint.key_var or endpoint.kind.key_var}.",
            hint="It has a line break or characters like “ or é: copy it again.",
        )


def load_sdk(provider: str) -> None:
    """Load the SDK of a provider now: it takes most of a second, which a server had better not take from a request.

    Raises:
        MissingExtra: the SDK is not installed.
    """
    if provider in PROVIDERS:
        _sdk(PROVIDERS[provider].api)


def _sdk(module: Api) -> Any:
    try:
        return import_module(module)  # heavy and optional
    except ImportError as error:
        name = "Anthropic" if module == "anthropic" else "OpenAI"
        raise MissingExtra(f"The {name} SDK is not installed: pip install 'taoloop[{module}]'.") from error


def _proxy(spec: str, url: str) -> str | None:
    """The proxy that the environment names for this address, as HTTP clients read it."""
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    host = parts.netloc.rpartition("@")[2]
    if not proxy or proxy_bypass(parts.hostname or "") or proxy_bypass(host):  # NO_PROXY may name a port, or none
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not proxy.lower().startswith(("http://", "https://")) or shown_address(proxy) == shown_address("?"):
        raise ModelError(
            f"{spec} cannot be called: the proxy that the environment names for it is none that can be used.",
            hint=f"Write {parts.scheme.upper()}_PROXY or ALL_PROXY like http://HOST:PORT (SOCKS is not spoken), or go "
            f"round it with NO_PROXY={parts.hostname}.",
        )
    return proxy
