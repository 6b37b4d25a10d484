"""A bound on what arrives over a socket that somebody else reads."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from taoloop.tools.sql.bounded_socket import BoundedSocket

if not BoundedSocket.is_possible():
    pytest.skip("sockets cannot be replaced here", allow_module_level=True)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client and its server."""
    client, server = socket.socketpair()
    with client, server:
        server.settimeout(10)
        yield client, server


def received(client: socket.socket, count: int) -> bytes:
    client.settimeout(10)
    data = b""
    while len(data) < count and (block := client.recv(count)):
        data += block
    return data


def test_both_directions_pass_and_each_request_begins_anew(ends: tuple[socket.socket, socket.socket]) -> None:
    client, server = ends
    bounded = BoundedSocket(client.fileno(), 1_000)
    assert not os.get_blocking(client.fileno())
    for _ in range(5):
        client.settimeout(10)
        client.sendall(b"question")
        assert server.recv(100) == b"question"
        server.sendall(b"a" * 900)
        assert received(client, 900) == b"a" * 900
    assert not bounded.is_cut
    server.close()
    assert received(client, 1) == b""
    assert not bounded.is_cut


def test_what_is_too_much_ends_the_connection(ends: tuple[socket.socket, socket.socket]) -> None:
    client, server = ends
    bounded = BoundedSocket(client.fileno(), 100_000)
    with pytest.raises(OSError):  # noqa: PT011  # a broken pipe or a reset
        server.sendall(b"a" * 10_000_000)
    assert len(received(client, 1_000_000)) <= 100_000
    assert bounded.is_cut


def test_the_end_of_the_client_ends_the_connection_to_the_server(ends: tuple[socket.socket, socket.socket]) -> None:
    client, server = ends
    BoundedSocket(client.fileno(), 1_000)
    client.sendall(b"bye")
    client.close()
    assert server.recv(100) == b"bye"
    assert server.recv(100) == b""
