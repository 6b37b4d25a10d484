"""Host names for tests: a resolver that knows what it is told, so that nothing depends on a network."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence


class FakeNames:
    """Gives the addresses of hosts from a mapping; an address is its own, and what is unknown is not found.

    Where a host has several lists of addresses, each question takes the next one and the last one stays: that is how a
    name is rebound. `asked` holds every host that was asked for.
    """

    def __init__(self, names: Mapping[str, Sequence[str] | Sequence[Sequence[str]]] | None = None) -> None:
        self._answers = {
            host: [[address] if isinstance(address, str) else list(address) for address in addresses]
            if any(not isinstance(address, str) for address in addresses)
            else [[str(address) for address in addresses]]
            for host, addresses in (names or {}).items()
        }
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:  # noqa: ARG002  # as for `Resolver`
        """The addresses of a host.

        Raises:
            OSError: nobody has told of it.
        """
        self.asked.append(host)
        answers = self._answers.get(host)
        if answers is not None:
            return answers.pop(0) if len(answers) > 1 else answers[0]
        for family in (socket.AF_INET, socket.AF_INET6):
            try:
                socket.inet_pton(family, host)
            except OSError:
                continue
            return [host]
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
