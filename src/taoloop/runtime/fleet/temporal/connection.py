"""The connection to Temporal: where it is, who we are, and what its errors mean.

Host, port and namespace come from the engine's address; certificates and keys from the variables and the file that
Temporal's own tools read (`TEMPORAL_API_KEY`, `TEMPORAL_TLS_CLIENT_CERT_PATH`, ...). None of them is logged.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final

from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, GetSystemInfoRequest
from temporalio.client import Client
from temporalio.converter import DataConverter, DefaultFailureConverter, PayloadConverter
from temporalio.envconfig import ClientConfigProfile
from temporalio.service import RPCError, RPCStatusCode, TLSConfig, __version__ as sdk_version

from taoloop.errors import ConfigError, JournalError, TaoError

_OLDEST_SERVER: Final = (1, 28)
"""The first server that knows priorities."""

_OLDEST_SDK: Final = (1, 35)

_CONNECT_S: Final = 10.0

_PORT: Final = 7233

_REACH: Final = "Start it or correct the address; TLS is set by TEMPORAL_TLS and the certificates in TEMPORAL_TLS_..."

_RIGHTS: Final = "Set TEMPORAL_API_KEY, or TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH."


class _BareFailures(DefaultFailureConverter):
    """Failures without their stack: it names paths of the worker, and Temporal stores it in the history."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        super().to_failure(exception, payload_converter, failure)
        failure.stack_trace = ""


async def connect(address: str) -> Client:
    """A client for `temporal://HOST:PORT/NAMESPACE`, whose server and namespace have answered.

    Raises:
        ConfigError: the configuration is wrong, the version does not fit, the namespace is missing, or rights are.
        JournalError: the server cannot be reached.
    """
    _require_version("temporalio", sdk_version, _OLDEST_SDK)
    target, _, namespace = address.removeprefix("temporal://").rstrip("/").partition("/")
    if not re.search(r":\d+$", target):
        target += f":{_PORT}"
    try:
        config = ClientConfigProfile.load().to_client_connect_config()
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(f"The configuration of Temporal cannot be read: {error}", hint=_RIGHTS) from None
    tls: bool | TLSConfig = config.get("tls", False)
    try:
        async with asyncio.timeout(_CONNECT_S):
            client = await Client.connect(
                target,
                namespace=namespace,
                api_key=config.get("api_key"),
                tls=tls,
                rpc_metadata=config.get("rpc_metadata", {}),
                data_converter=DataConverter(failure_converter_class=_BareFailures),
            )
            system = await client.workflow_service.get_system_info(GetSystemInfoRequest())
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace))
    except RPCError as error:
        raise engine_error(error, f"{target}/{namespace}") from None
    except TimeoutError:
        raise JournalError(f"Temporal does not answer at {target} within {_CONNECT_S:g} s.", hint=_REACH) from None
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: what the SDK gives of its core
        secured = "on" if tls else "off"
        raise JournalError(f"Temporal cannot be reached at {target} (TLS {secured}): {error}", hint=_REACH) from None
    _require_version("Temporal Server", system.server_version, _OLDEST_SERVER)
    return client


def engine_error(error: RPCError, where: str) -> TaoError:
    """What an error of Temporal means here."""
    if is_namespace_missing(error):
        return ConfigError(
            f"Temporal has no namespace of this name: {where}.",
            hint="Make it (temporal operator namespace create --namespace NAME), or correct the address.",
        )
    if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED):
        return ConfigError(f"Temporal refuses access to {where}: {error.message}", hint=_RIGHTS)
    return JournalError(
        f"Temporal at {where} does not do what it is asked: {error.message} ({error.status.name})",
        hint="The journal has all runs; workers submit again what Temporal has missed.",
    )


def is_namespace_missing(error: RPCError) -> bool:
    """Whether an error is about the namespace, and not about a workflow in it."""
    return any(detail.Is(NamespaceNotFoundFailure.DESCRIPTOR) for detail in error.grpc_status.details)


def _require_version(what: str, version: str, oldest: tuple[int, int]) -> None:
    """Refuse what is too old; a version that is no number, as a service may have, is taken to be new."""
    match = re.match(r"v?(\d+)\.(\d+)", version)
    if match and (int(match[1]), int(match[2])) < oldest:
        raise ConfigError(
            f"The engine temporal needs {what} {oldest[0]}.{oldest[1]} or newer; this is {version}.",
            hint="Upgrade it; the package: pip install --upgrade 'taoloop[temporal]'.",
        )
