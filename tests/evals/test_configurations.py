"""Configurations and their names."""

from __future__ import annotations

import pytest

from taoloop.errors import ConfigError
from taoloop.evals.configurations import Configuration, configurations_of
from taoloop.evals.suite import Suite


def suite_with(**fields: object) -> Suite:
    return Suite(name="sums", cases=tuple, **fields)  # type: ignore[arg-type]


def test_a_single_configuration_has_the_name_of_its_agent() -> None:
    assert configurations_of(suite_with(model="offline"), {}) == (Configuration(name="agent", model="offline"),)
    (own,) = configurations_of(suite_with(agent="/a/shop.yaml"), {})
    assert (own.name, own.settings) == ("shop", {"agent": "/a/shop.yaml"})


def test_names_say_what_differs_and_nothing_else() -> None:
    suite = suite_with(model="offline", compare={"strategies": ("react", "reflect"), "seeds": (1, 2)})

    assert [each.name for each in configurations_of(suite, {})] == [
        "react / seed 1",
        "react / seed 2",
        "reflect / seed 1",
        "reflect / seed 2",
    ]
    assert [each.name for each in configurations_of(suite, {"seeds": (7,), "strategies": ("react",)})] == ["agent"]
    alike = configurations_of(suite_with(), {"agents": ("a/shop.yaml", "b/shop.yaml"), "policies": ("p.yaml",)})
    assert [each.name for each in alike] == ["a/shop.yaml", "b/shop.yaml"]


def test_agents_that_are_chosen_have_their_own_model() -> None:
    suite = suite_with(agent="a.yaml", model="oracle")

    assert [each.model for each in configurations_of(suite, {})] == ["oracle"]
    assert [each.model for each in configurations_of(suite, {"agents": ("b.yaml",)})] == [None]
    assert [each.model for each in configurations_of(suite, {"agents": ("b.yaml",), "models": ("m",)})] == ["m"]


def test_nothing_is_compared_with_itself() -> None:
    with pytest.raises(ConfigError, match="'react' appears twice among the strategies"):
        configurations_of(suite_with(), {"strategies": ("react", "react")})
