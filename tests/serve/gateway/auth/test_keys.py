"""API keys: hashed at rest, found by whoever presents them, and by nobody else."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, strategies as st

from taoloop.errors import ConfigError
from taoloop.serve.gateway.auth.keys import ApiKey, KeyRing, digest_of, new_key, presented_key


def test_a_new_key_is_kept_as_its_digest_alone() -> None:
    secret, key = new_key("shop")
    assert secret.startswith("tao-")
    assert len(secret) >= 47
    assert key.digest == "sha256:" + sha256(secret.encode()).hexdigest()
    assert secret not in repr(key)
    assert key.digest not in repr(key)
    assert new_key("shop")[0] != secret


def test_a_key_is_found_by_its_secret_alone() -> None:
    secret, key = new_key("shop")
    _, other = new_key("other")
    ring = KeyRing([other, key])
    assert ring.find(secret) is key
    for wrong in (None, "", secret[:-1], secret + "x", secret.upper(), key.digest, f"Bearer {secret}"):
        assert ring.find(wrong) is None


def test_a_digest_may_be_written_in_capitals() -> None:
    secret, key = new_key("shop")
    written = replace(key, digest="sha256:" + key.digest[7:].upper())
    assert KeyRing([written]).find(secret) is written


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_whatever_is_presented_finds_nothing_and_breaks_nothing(text: str) -> None:
    assert KeyRing([]).find(text) is None
    ring = KeyRing([ApiKey(name="x", digest=digest_of(text))])
    assert (ring.find(text) is not None) == bool(text)  # nothing presented is never a key


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({}, None),
        ({"authorization": "Bearer k"}, "k"),
        ({"authorization": "bearer   k "}, "k"),
        ({"authorization": "Bearer "}, None),
        ({"authorization": "Basic k"}, None),
        ({"authorization": "k"}, None),
        ({"x-api-key": " k "}, "k"),
        ({"api-key": "k"}, "k"),
        ({"authorization": "Bearer a", "x-api-key": "b"}, "a"),
        ({"authorization": "Basic a", "x-api-key": "", "api-key": "b"}, "b"),
    ],
)
def test_a_key_is_presented_in_one_of_three_headers(headers: dict[str, str], found: str | None) -> None:
    assert presented_key(headers) == found


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", " shop"),
        ("name", "a\nb"),
        ("name", 7),
        ("digest", "tao-a-secret-by-mistake"),
        ("digest", "sha256:12"),
        ("digest", "md5:" + "0" * 64),
        ("agents", ["a"]),
        ("agents", ("",)),
        ("requests_per_minute", 0),
        ("requests_per_minute", 1.5),
        ("requests_per_minute", True),
        ("tokens_per_minute", -1),
        ("usd_per_day", 0),
        ("usd_per_day", float("inf")),
        ("usd_per_day", float("nan")),
        ("usd_per_day", "5"),
        ("may_approve", "yes"),
    ],
)
def test_a_key_that_cannot_be_kept_is_refused_with_its_field(field: str, value: Any) -> None:
    _, key = new_key("shop")
    with pytest.raises(ConfigError, match=f"The key .* has {field} = ") as raised:
        replace(key, **{field: value})
    assert "tao-a-secret-by-mistake" not in str(raised.value)


def test_a_key_with_limits_is_taken() -> None:
    replace(
        new_key("商店")[1],
        agents=("a",),
        requests_per_minute=1,
        tokens_per_minute=1,
        usd_per_day=0.5,
        may_approve=False,
    )


def test_two_keys_never_share_a_name_or_a_digest() -> None:
    _, key = new_key("shop")
    with pytest.raises(ConfigError, match="Two keys are called 'shop'"):
        KeyRing([key, new_key("shop")[1]])
    with pytest.raises(ConfigError, match="same digest"):
        KeyRing([key, replace(key, name="other")])
