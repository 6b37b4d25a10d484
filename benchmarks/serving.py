"""A raw HTTP server in a process of its own, so that a benchmark counts the CPU of its clients alone.

A benchmark gives the code of a class `Server(Requests)` with a method `answer(body)`; the rest is the same for all.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_BEFORE = """
import asyncio, json, time

def whole(body):
    head = b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n"
    return head % len(body) + body


class Requests(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.buffer = transport, b""

    def data_received(self, data):
        self.buffer += data
        head = self.buffer.find(b"\\r\\n\\r\\n")
        if head < 0:
            return
        fields = self.buffer[:head].lower()
        at = fields.find(b"content-length:")
        length = int(fields[at + 15 :].split(b"\\r\\n")[0]) if at >= 0 else 0
        if len(self.buffer) >= head + 4 + length:
            body, self.buffer = self.buffer[head + 4 : head + 4 + length], self.buffer[head + 4 + length :]
            self.answer(body)
"""
_AFTER = """
async def main():
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


@contextmanager
def serving(code: str) -> Iterator[int]:
    """The port of a server of this code, which ends with the block."""
    whole = f"{_BEFORE}{code}{_AFTER}"
    with subprocess.Popen([sys.executable, "-c", whole], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield int(server.stdout.readline())
        finally:
            server.kill()
