"""The attacks on the gateway, and the proof that their verdicts can fail: a weak server on which they succeed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from checks.gateway.arguments import ARGUMENTS
from checks.gateway.disclosure import DISCLOSURE, secrets
from checks.gateway.forged import FORGED
from checks.gateway.keys import KEYS
from checks.gateway.origins import ORIGINS_AND_HOSTS
from checks.gateway.outside import call
from checks.gateway.resources import RESOURCES
from checks.gateway.scene import Category, Scene, scene, tao, weak

CATEGORIES: list[Category[Any]] = [ARGUMENTS, FORGED, KEYS, ORIGINS_AND_HOSTS, DISCLOSURE, RESOURCES]
IS_FULL = os.environ.get("GATEWAY_FORM") == "full"


def chosen(category: Category[Any]) -> list[tuple[str, Any]]:
    return [(name, row) for name, row in category.attacks if IS_FULL or not name.endswith("(full)")]


ROWS = [
    pytest.param(category, row, id=f"{category.name}: {name}".encode("ascii", "replace").decode())
    for category in CATEGORIES
    for name, row in chosen(category)
]


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("gateway"), tao) as made:
        yield made


@pytest.mark.parametrize(("category", "row"), ROWS)
def test_attack(gateways: Scene, category: Category[Any], row: Any) -> None:
    assert not category.run(gateways, row)


@pytest.fixture(scope="module")
def weak_gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("weak"), weak) as made:
        yield made


PROOFS = [
    pytest.param(category, name, id=f"{category.name}: {name}") for category in CATEGORIES for name in category.proof
]


@pytest.mark.parametrize(("category", "name"), PROOFS)
def test_an_attack_succeeds_on_a_weak_server(weak_gateways: Scene, category: Category[Any], name: str) -> None:
    assert category.run(weak_gateways, dict(category.attacks)[name])


def test_an_ordinary_request_goes_through(gateways: Scene) -> None:
    """Without this, a gateway that answers nothing would pass."""
    order = {"name": "tea", "reference": "ordinary"}
    assert "'tea'" in gateways.keyed.chat(call("get_product", {"name": "tea"})).text.replace('\\"', "'")
    assert gateways.keyed.chat(call("order_product", order)).status == 200
    assert gateways.shop.orders[-1] == {"path": "/orders", **order}
    page = gateways.keyed.chat(call("fetch", {"url": f"{gateways.shop.server.url}/products/tea"}), "surfer").text
    assert "stock" in page
    assert gateways.open.is_well


def test_no_secret_is_in_a_log(gateways: Scene) -> None:
    for log in (gateways.keyed.log, gateways.open.log):
        text = log.read_text(encoding="utf-8", errors="replace")
        names = ("the model's key", "the shop's key", "alpha's key", "beta's key")
        assert [name for name in names if secrets(gateways)[name] in text] == []
