"""The import paths that earlier releases documented."""

from __future__ import annotations

from importlib import import_module, util

import pytest

from taoloop.core import ToolCard
from taoloop.moved_modules import MOVED_MODULES, RENAMED


@pytest.mark.parametrize("old_path", MOVED_MODULES)
def test_a_module_that_moved_is_found_under_its_old_path(old_path: str) -> None:
    module = import_module(old_path)
    assert module.__doc__ == f"Moved to `{MOVED_MODULES[old_path]}`."


@pytest.mark.parametrize("old_path", RENAMED)
def test_names_that_changed_are_found_under_their_old_names(old_path: str) -> None:
    moved, target = import_module(old_path), import_module(MOVED_MODULES[old_path])
    for old_name, new_name in RENAMED[old_path].items():
        assert getattr(moved, old_name) is getattr(target, new_name)


def test_a_path_that_never_existed_is_not_found() -> None:
    assert util.find_spec("taoloop.runtime.nonsense") is None


def test_an_old_path_that_hides_a_public_function_can_be_called_as_that_function() -> None:
    lint = import_module("taoloop.core.lint")
    card = ToolCard(name="send_mail", purpose="Sends a mail.")
    assert lint(card) == lint.lint(card) != ()  # type: ignore[operator]  # a module in name only
