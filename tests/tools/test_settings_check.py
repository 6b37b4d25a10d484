"""Settings of tools are held to their annotations, whoever makes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.growth import assert_linear

from taoloop.errors import ConfigError
from taoloop.tools.settings_check import Count, Seconds, Texts, check_fields, expand_home, without_credentials


@dataclass(frozen=True, kw_only=True)
class Settings:
    password: str = field(default="hush-hush", repr=False)
    names: Texts = ()
    most: Count = 3
    wait_s: Seconds = 1.5

    def __post_init__(self) -> None:
        check_fields(self, "The kettle")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("names", "one"), ("names", [1]), ("names", ("",)), ("most", 0), ("most", 1.5), ("most", True), ("most", "3"),
        ("most", 2**62 + 1), ("wait_s", 0), ("wait_s", float("nan")), ("wait_s", float("inf")), ("wait_s", "soon"),
    ],
)  # fmt: skip
def test_a_field_that_does_not_fit_is_named_with_its_value(name: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(**{name: value})
    assert caught.value.message == f"The kettle has {name} = {value!r}."
    assert caught.value.hint


def test_what_fits_stays_as_it_is_and_a_list_becomes_a_tuple() -> None:
    names: Any = ["a", "b"]
    settings = Settings(names=names, wait_s=2)
    assert settings.names == ("a", "b")
    assert repr(settings.wait_s) == "2"


def test_a_field_that_is_not_shown_is_not_shown_by_its_error() -> None:
    password: Any = b"hush-hush"
    with pytest.raises(ConfigError, match="The kettle has password") as caught:
        Settings(password=password)
    assert "hush" not in str(caught.value)


def test_the_home_folder_of_nobody_is_refused() -> None:
    with pytest.raises(ConfigError, match="names the home folder of a user"):
        expand_home("~nobody-here/a.yaml")
    assert expand_home("a/~b").name == "~b"


@pytest.mark.parametrize("text", ["[", "a@", "//", "user:word"])
def test_addresses_are_looked_for_in_linear_time(text: str) -> None:
    assert_linear(lambda times: without_credentials(text * times), 200_000)
