"""The client over real sockets: it connects to what was judged, hop by hop, and bounds what comes back."""

from __future__ import annotations

import asyncio
import gc
import gzip
import os
import ssl
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.tools.egress.site import Got, Site, page, redirect

from taoloop.errors import EgressFailed, EgressRefused
from taoloop.testing import FakeNames
from taoloop.tools.egress import EgressClient, EgressResponse, EgressRules, http_client

LOCAL = "127.0.0.0/8"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site({"/": page("hello"), "/far": redirect("http://169.254.169.254/latest/meta-data/")}) as served:
        yield served


def local(site: Site, *names: str, **options: Any) -> EgressClient:
    """A client that may reach the site, under its address and these names."""
    rules = EgressRules(allow=(f"127.0.0.1:{site.port}", *(f"{name}:{site.port}" for name in names)))
    options.setdefault("resolver", FakeNames({name: ["127.0.0.1"] for name in names}))
    return EgressClient(rules, timeout_s=10, **options)


def send(client: EgressClient, url: str, method: str = "GET", **options: Any) -> EgressResponse:
    return asyncio.run(client.send(method, url, **options))


def failure(client: EgressClient, url: str, method: str = "GET", **options: Any) -> EgressFailed:
    with pytest.raises(EgressFailed) as caught:
        send(client, url, method, **options)
    assert caught.value.message
    return caught.value


def test_a_request_goes_out_as_it_was_given(site: Site) -> None:
    client = local(site)
    url = f"{site.url}/a%2Fb/%2e%2e/c?x=%20y&z=a%2Bb#part"
    answer = send(client, url, "POST", headers={"X-Key": "k", "Host": "evil.example"}, body=b"{}")
    got = site.got[0]
    assert (got.method, got.path, got.body) == ("POST", "/a%2Fb/%2e%2e/c?x=%20y&z=a%2Bb", b"{}")
    assert got.headers["x-key"] == "k"
    assert got.headers["host"] == f"127.0.0.1:{site.port}", "the name that was judged"
    assert answer.status == 404
    assert answer.url == url.partition("#")[0]


def test_it_connects_to_the_address_that_was_judged_and_keeps_the_name(site: Site) -> None:
    names = FakeNames({"api.test": [["127.0.0.1"], ["10.0.0.1"]]})
    client = local(site, "api.test", resolver=names)

    async def twice() -> None:
        assert (await client.send("GET", site.at("api.test."))).body == b"hello"
        assert (await client.send("GET", site.at("API.test"))).body == b"hello"

    asyncio.run(twice())
    assert names.asked == ["api.test"], "once for the connection, which serves both"
    assert [got.headers["host"] for got in site.got] == [f"api.test:{site.port}"] * 2


def test_a_name_that_is_bound_anew_is_judged_anew(site: Site) -> None:
    site.routes["/"] = (200, {"Connection": "close"}, b"hello")
    names = FakeNames({"api.test": [["127.0.0.1"], ["127.0.0.1", "169.254.169.254"]]})
    client = local(site, "api.test", resolver=names)

    async def twice() -> None:
        await client.send("GET", site.at("api.test"))
        with pytest.raises(EgressRefused, match=r"169\.254\.169\.254"):
            await client.send("GET", site.at("api.test"))

    asyncio.run(twice())
    assert len(site.got) == 1


def test_the_next_address_is_tried_where_one_does_not_answer(site: Site) -> None:
    names = FakeNames({"api.test": ["127.0.0.9", "127.0.0.1"]})
    assert send(local(site, "api.test", resolver=names), site.at("api.test")).body == b"hello"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "017700000001",
        "localhost",
        "127.0.0.1.",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "0",
        "0.0.0",
        "[::]",
        "10.0.0.1",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "168.63.129.16",
        "100.100.100.200",
    ],
)
def test_no_way_of_writing_an_address_gets_around_the_rules(host: str) -> None:
    with pytest.raises(EgressRefused) as caught:  # the machine's own resolver reads them; no name is looked up afar
        send(EgressClient(timeout_s=5), f"http://{host}/")
    assert caught.value.code == "egress_refused"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "/path",
        "example.com",
        "ftp://x.test/",
        "file:///etc/passwd",
        "gopher://x.test/",
        "http://",
        "http:///x",
        "http://u:p@x.test/",
        "http://u@x.test/",
        "http://good.test\\@evil.test/",
        "http://１２７.0.0.1/",
        "http://x.test:0/",
        "http://x.test:99999/",
        "http://0177.0.0.1/",
        "http://[::1",
        "http://[fe80::1%25eth0]/",
        "http://a b/",
        "http://\n",
        "http://x\x00.test/",
        "http://a..b/",
        "http://ex%61mple.test/",
        "javascript:alert(1)",
        "data:,x",
        "http://ⓔx.test",
    ],
)
def test_what_is_no_usable_address_is_said_to_be_none(url: str) -> None:
    with pytest.raises(EgressRefused) as caught:
        send(EgressClient(resolver=FakeNames(), timeout_s=5), url)
    assert caught.value.code == "bad_url"
    assert not caught.value.retryable
    assert ":p" not in str(caught.value)


def test_every_hop_is_judged(site: Site) -> None:
    with pytest.raises(EgressRefused, match=r"169\.254\.169\.254"):
        send(local(site), site.at("127.0.0.1", "/far"), follow=True)
    with Site({"/": page("inside")}) as inside:
        site.routes["/in"] = redirect(inside.url)
        with pytest.raises(EgressRefused, match=f"port {inside.port}"):
            send(local(site), site.at("127.0.0.1", "/in"), follow=True)
        assert not inside.got
    site.routes["/name"] = redirect("http://intern.test/")
    names = FakeNames({"intern.test": ["192.168.0.1"]})
    with pytest.raises(EgressRefused, match=r"intern\.test:80"):
        send(local(site, resolver=names), site.at("127.0.0.1", "/name"), follow=True)


@pytest.mark.parametrize(
    "to", ["http://u:p@127.0.0.1/", "ftp://127.0.0.1/", "http://[", "\\\\evil.test\\x", "http://x.test:0/"]
)
def test_a_redirect_to_what_is_no_address_is_refused(site: Site, to: str) -> None:
    site.routes["/r"] = redirect(to)
    with pytest.raises(EgressRefused) as caught:
        send(local(site), site.at("127.0.0.1", "/r"), follow=True)
    assert caught.value.code == "bad_url"


def test_what_may_be_secret_does_not_go_to_another_host(site: Site) -> None:
    site.routes["/r"] = lambda _: redirect(site.at("other.test", "/there"))
    site.routes["/same"] = redirect("/here")
    client = local(site, "api.test", "other.test")
    headers = {
        "Authorization": "Bearer s",
        "Cookie": "s=1",
        "X-Api-Key": "s",
        "Accept": "text/plain",
        "User-Agent": "t",
    }
    answer = send(client, site.at("api.test", "/r"), headers=headers, follow=True)
    assert (answer.url, answer.hops) == (site.at("other.test", "/there"), 1)
    there = site.got[1].headers
    assert there["host"] == f"other.test:{site.port}"
    assert not {"authorization", "cookie", "x-api-key"} & set(there)
    assert (there["accept"], there["user-agent"]) == ("text/plain", "t")
    send(client, site.at("api.test", "/same"), headers=headers, follow=True)
    assert site.got[3].headers["x-api-key"] == "s", "the same host may have it"
    assert not any("s" in got.headers.get("cookie", "") for got in site.got[3:] if got.path == "/there")


def test_redirects_are_bounded_and_only_followed_where_asked(site: Site) -> None:
    site.routes["/loop"] = redirect("/loop", 307)
    site.routes["/post"] = redirect("/", 303)
    client = local(site, max_redirects=3)
    error = failure(client, site.at("127.0.0.1", "/loop"), follow=True)
    assert (error.code, len(site.got)) == ("too_many_redirects", 4)
    assert send(client, site.at("127.0.0.1", "/loop")).status == 307
    assert send(client, site.at("127.0.0.1", "/post"), "POST", follow=True, body=b"x").status == 303, "a write stays"
    assert send(client, site.at("127.0.0.1", "/post"), follow=True).body == b"hello"


def test_cookies_are_not_kept(site: Site) -> None:
    site.routes["/"] = (200, {"Set-Cookie": "a=b"}, b"")
    client = local(site)

    async def twice() -> None:
        await client.send("GET", site.url)
        await client.send("GET", site.url)

    asyncio.run(twice())
    assert "cookie" not in site.got[1].headers


def test_proxies_of_the_environment_are_not_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert send(local(site), site.url).body == b"hello"


def test_a_long_body_is_cut_and_a_compressed_one_is_counted_unpacked(site: Site) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    site.routes["/bomb"] = (200, {"Content-Encoding": "gzip"}, bomb)
    site.routes["/zip"] = (200, {"Content-Encoding": "gzip"}, gzip.compress(b"hello"))
    site.routes["/long"] = page("x" * 100_000)
    client = local(site)
    for path in ("/bomb", "/long"):
        answer = send(client, site.at("127.0.0.1", path), max_bytes=60_000)
        assert (len(answer.body), answer.is_cut) == (60_000, True)
    answer = send(client, site.at("127.0.0.1", "/zip"), max_bytes=5)
    assert (answer.body, answer.is_cut) == (b"hello", False)
    assert "content-encoding" not in answer.headers
    assert site.got[-1].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip, gzip", "gzip, br", "x"])
def test_an_answer_in_a_coding_that_nobody_asked_for_is_refused(site: Site, coding: str) -> None:
    site.routes["/"] = (200, {"Content-Encoding": coding}, b"x")
    assert failure(local(site), site.url).code == "http_broken"


def test_types_are_judged_before_the_body_is_read(site: Site) -> None:
    site.routes["/png"] = (200, {"Content-Type": "image/png"}, b"x")
    assert failure(local(site), site.at("127.0.0.1", "/png"), types=("text/*",)).code == "wrong_type"
    assert send(local(site), site.url, types=("image/*", "text/*")).media_type == "text/plain"


def test_the_time_of_the_whole_request_is_bounded(site: Site) -> None:
    site.routes["/hang"] = lambda _: None
    error = failure(local(site), site.at("127.0.0.1", "/hang"), timeout_s=0.2)
    assert (error.code, error.retryable, error.was_sent) == ("http_timeout", True, True)


def test_a_name_that_takes_too_long_to_find_ends_in_time_and_nothing_was_sent() -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    error = failure(EgressClient(resolver=never, timeout_s=0.05), "http://x.test/", "POST")
    assert (error.code, error.was_sent) == ("http_timeout", False)


def test_failures_say_what_they_are_and_whether_anything_was_sent(site: Site) -> None:
    site.routes["/broken"] = lambda _: b"no http\r\n\r\n"
    site.routes["/gone"] = lambda _: b""
    site.routes["/short"] = lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"
    site.routes["/bad-zip"] = (200, {"Content-Encoding": "gzip"}, b"no gzip at all")
    for path in ("/broken", "/gone", "/short", "/bad-zip"):
        error = failure(local(site), site.at("127.0.0.1", path))
        assert (error.code, error.was_sent) == ("http_broken", True), path
    error = failure(EgressClient(resolver=FakeNames()), "http://nobody.test/")
    assert (error.code, error.retryable, error.was_sent) == ("name_not_found", True, False)
    with Site() as gone:
        url = gone.url
    error = failure(EgressClient(EgressRules().allowing(url)), url)
    assert (error.code, error.retryable, error.was_sent) == ("connection_failed", True, False)
    error = failure(local(site), site.url, headers={"X": "你好"})
    assert (error.code, error.was_sent) == ("http_broken", False)
    error = failure(local(site), site.url, headers={"X": "a\r\nHost: b"})
    assert (error.code, error.was_sent) == ("http_broken", False)


@pytest.mark.parametrize(
    "header", [{"X-Key": "s3cret\n"}, {"X-Key": " s3cret"}, {"X-Key": "s3cret你"}, {"X Key": "s3cret"}]
)
def test_a_header_that_cannot_be_sent_is_named_and_its_value_is_not_told(site: Site, header: dict[str, str]) -> None:
    error = failure(local(site), site.url, headers=header)
    assert (error.code, error.was_sent) == ("http_broken", False)
    shown = "".join(traceback.format_exception(error))
    assert next(iter(header)) in error.message
    assert "s3cret" not in shown

    async def use() -> None:
        async with http_client(EgressRules().allowing(site.url)) as client:
            await client.get(site.url, headers=[(k.encode(), v.encode()) for k, v in header.items()])

    if "你" not in header.get("X-Key", ""):
        with pytest.raises(EgressFailed) as caught:
            asyncio.run(use())
        assert "s3cret" not in "".join(traceback.format_exception(caught.value))
    assert not site.got


def test_a_method_that_is_none_is_not_sent(site: Site) -> None:
    for method in ("", "G T", "GET / HTTP/1.1\r\nX:", "你"):
        assert failure(local(site), site.url, method).was_sent is False


def test_certificates_that_cannot_be_read_are_said_to_be_so() -> None:
    code = (
        "import asyncio\nfrom taoloop.tools.egress import EgressClient\n"
        "asyncio.run(EgressClient().send('GET', 'http://10.0.0.1/'))"
    )
    env = {**os.environ, "SSL_CERT_FILE": "/no/such/file"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)
    assert "EgressFailed: The certificates that this machine trusts cannot be read" in done.stderr
    assert "SSL_CERT_FILE" in done.stderr


def test_a_client_that_is_gone_takes_its_connections_along_while_the_loop_goes_on(site: Site) -> None:
    async def forget() -> None:
        client = local(site)
        await client.send("GET", site.url)
        transport, generator = client._connections[asyncio.get_running_loop()]
        closed = asyncio.Event()
        close = transport.aclose

        async def note() -> None:
            await close()
            closed.set()

        transport.aclose = note  # type: ignore[method-assign]  # to know when it ends
        del client, transport, generator
        gc.collect()  # an unclosed socket would be a warning, and that an error
        async with asyncio.timeout(10):
            await closed.wait()

    asyncio.run(forget())


def test_connections_end_with_their_loop_and_are_kept_within_it(site: Site) -> None:
    client = local(site, "api.test")  # unclosed connections would be warnings, and these errors
    for _ in range(2):
        assert send(client, site.url).body == b"hello"

    async def closed() -> None:
        await client.send("GET", site.url)
        await client.close()
        assert (await client.send("GET", site.url)).body == b"hello"
        assert len(await asyncio.gather(*(client.send("GET", site.url) for _ in range(20)))) == 20

    asyncio.run(closed())


def test_a_cancelled_request_leaves_the_client_usable(site: Site) -> None:
    arrived = threading.Event()
    site.routes["/hang"] = lambda _: arrived.set()
    client = local(site)

    async def cancelled() -> None:
        task = asyncio.create_task(client.send("GET", site.at("127.0.0.1", "/hang")))
        await asyncio.to_thread(arrived.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await client.send("GET", site.url)).body == b"hello"

    asyncio.run(cancelled())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for `api.test` alone, and its key, in one file."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415  # an extra brings it
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415  # likewise

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("api.test")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "api.test.pem"
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    path.write_bytes(made.public_bytes(pem) + private)
    return path


def secure(certificate: Path, seen: list[str | None]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _socket, name, _context: seen.append(name)
    return context


def test_tls_is_for_the_name_while_the_connection_is_to_the_address(certificate: Path) -> None:
    seen: list[str | None] = []
    with Site({"/": page("secret")}, tls=secure(certificate, seen)) as site:
        trust = {"tls": lambda: ssl.create_default_context(cafile=str(certificate))}
        client = local(site, "api.test", "other.test", **trust)
        assert send(client, site.at("api.test")).body == b"secret"
        assert seen == ["api.test"]
        error = failure(client, site.at("other.test"))
        assert (error.code, error.retryable, error.was_sent) == ("tls_failed", False, False)
        assert failure(client, site.at("127.0.0.1")).code == "tls_failed"
        assert failure(local(site, "api.test"), site.at("api.test")).code == "tls_failed", "nobody trusts it here"
        assert len(site.got) == 1


def test_encryption_is_not_given_up_on_the_way(certificate: Path, site: Site) -> None:
    with Site({"/": redirect(site.url)}, tls=secure(certificate, [])) as safe:
        rules = EgressRules(allow=(LOCAL, f"api.test:{safe.port}", f"127.0.0.1:{site.port}"))
        names, trust = FakeNames({"api.test": ["127.0.0.1"]}), ssl.create_default_context(cafile=str(certificate))
        client = EgressClient(rules, resolver=names, tls=lambda: trust)
        with pytest.raises(EgressRefused, match="without encryption"):
            send(client, safe.at("api.test"), follow=True)
    assert not site.got


def test_plain_http_at_a_tls_address_is_said(site: Site) -> None:
    assert failure(local(site), f"https://127.0.0.1:{site.port}/").code == "tls_failed"


def test_a_client_for_libraries_is_under_the_same_rules(site: Site) -> None:
    site.routes["/long"] = page("x" * 5_000)
    site.routes["/zip"] = (200, {"Content-Encoding": "gzip"}, gzip.compress(b"hello"))
    site.routes["/bomb"] = (200, {"Content-Encoding": "gzip"}, gzip.compress(bytes(5_000_000)))
    site.routes["/events"] = page("data: x\n\n" * 1_000, "text/event-stream")
    site.routes["/br"] = (200, {"Content-Encoding": "br"}, b"x")
    rules = EgressRules().allowing(site.url)

    async def use() -> None:
        async with http_client(rules, headers={"X-Key": "k"}, max_bytes=2_000) as client:
            assert (await client.get(site.url)).text == "hello"
            assert (await client.get(f"{site.url}/zip")).text == "hello"
            stream = await client.get(f"{site.url}/events", headers={"Accept": "text/event-stream"})
            assert len(stream.content) == 9_000, "a stream has no end to bound"
            for path in ("/long", "/bomb", "/events"):
                with pytest.raises(EgressFailed) as caught:
                    await client.get(f"{site.url}{path}")
                assert caught.value.code == "too_large"
            with pytest.raises(EgressFailed):
                await client.get(f"{site.url}/br")
            assert (await client.get(f"{site.url}/far")).status_code == 302, "headers would go along"
            for url in (
                "http://127.0.0.1:1/",
                "http://u:p@127.0.0.1/",
                "http://x:99999/",
                "ws://x/",
            ):
                with pytest.raises(EgressRefused):
                    await client.get(url)
            with pytest.raises(EgressRefused):  # a name of one's own choice for TLS would undo the check
                await client.get("https://10.0.0.1/", extensions={"sni_hostname": "api.test"})

    asyncio.run(use())
    assert site.got[0].headers["x-key"] == "k"


def test_what_was_got_is_kept_as_it_came(site: Site) -> None:
    def echo(got: Got) -> tuple[int, dict[str, str], bytes]:
        return 201, {"X-Two": "a", "Content-Type": "Text/Plain; charset=x"}, got.body

    site.routes["/echo"] = echo
    answer = send(local(site), site.at("127.0.0.1", "/echo"), "PUT", body="你好".encode())
    assert (answer.status, answer.body.decode(), answer.headers["x-two"]) == (201, "你好", "a")
    assert answer.media_type == "text/plain"
    assert send(local(site), site.at("127.0.0.1", "/echo"), "HEAD").body == b""


def test_a_name_that_is_not_found_in_time_ends_a_library_s_wait_too() -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    async def use() -> None:
        async with http_client(EgressRules(), timeout_s=0.05, resolver=never) as client:
            with pytest.raises(httpx2.ConnectTimeout):
                await client.get("http://x.test/")

    asyncio.run(use())


def test_without_the_http_client_the_extra_is_named() -> None:
    code = (
        "import asyncio, sys; sys.modules['httpx2'] = None\n"
        "from taoloop.tools.egress import EgressClient\n"
        "from taoloop.tools.web import fetch_tools\n"
        "print(fetch_tools().problems[0])\n"
        "asyncio.run(EgressClient().send('GET', 'http://x.test/'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'taoloop[web]'" in done.stdout
    assert "MissingExtra: httpx2" in done.stderr


def test_the_http_client_is_not_loaded_before_the_first_request() -> None:
    code = (
        "import sys, taoloop.tools.egress, taoloop.tools.web as web; web.fetch_tools()\n"
        "print([name for name in ('httpx2', 'anyio', 'resiliparse', 'ssl') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("[]", "['ssl']")
