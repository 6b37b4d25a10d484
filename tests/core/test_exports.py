"""What `taoloop.core` exports: every name is there, and none is imported before it is used."""

from __future__ import annotations

import taoloop.core


def test_every_exported_name_is_found_under_its_own_name() -> None:
    for name in taoloop.core.__all__:
        value = getattr(taoloop.core, name)
        assert not isinstance(value, type) or value.__name__ == name
    assert set(taoloop.core.__all__) <= set(dir(taoloop.core))


def test_a_name_that_is_not_exported_is_an_attribute_error() -> None:
    assert not hasattr(taoloop.core, "no_such_name")
