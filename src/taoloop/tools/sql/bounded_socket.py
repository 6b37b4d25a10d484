"""A bound on what a server may send in answer to one request, for a library that reads all by itself.

libpq keeps a row in memory before anybody can see it, and reads on while there is something to be read: one value may
have a gigabyte. So the socket of an open connection is replaced by one end of a pair of sockets; a thread copies
between the other end and the server, counts, and ends the connection where it is too much. What is encrypted stays so.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
from contextlib import suppress

_BLOCK_BYTES = 64 * 1024


class BoundedSocket:
    """Takes the place of a connected socket, known by its file descriptor, and ends with the connection.

    Args:
        descriptor: The socket; the same number is afterwards an end of the pair.
        max_bytes: How much may arrive between two requests.
    """

    def __init__(self, descriptor: int, max_bytes: int) -> None:
        self.is_cut = False
        self._max_bytes, self._arrived_bytes = max_bytes, 0
        self._server = socket.socket(fileno=os.dup(descriptor))
        near, self._client = socket.socketpair()
        with near:
            os.dup2(near.fileno(), descriptor, inheritable=False)
        os.set_blocking(descriptor, False)  # as libpq has it; both others wait
        for end in (self._server, self._client):
            end.setblocking(True)
        threading.Thread(target=self._copy, name="taoloop-sql-socket", daemon=True).start()

    @classmethod
    def is_possible(cls) -> bool:
        """Whether descriptors of sockets can be replaced here; they cannot on Windows."""
        return os.name == "posix"

    def _copy(self) -> None:
        with self._server, self._client, selectors.DefaultSelector() as selector, suppress(OSError):
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._client, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if not self._forward(key.fileobj is self._client):
                        return

    def _forward(self, is_request: bool) -> bool:
        """Copy what is there to be read; False: the connection is over."""
        source, target = (self._client, self._server) if is_request else (self._server, self._client)
        block = source.recv(_BLOCK_BYTES)
        self._arrived_bytes = 0 if is_request else self._arrived_bytes + len(block)
        self.is_cut = self._arrived_bytes > self._max_bytes
        if block and not self.is_cut:
            target.sendall(block)
        return bool(block) and not self.is_cut
