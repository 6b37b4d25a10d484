"""The import paths that earlier releases documented."""

from __future__ import annotations

from importlib import import_module, util

import pytest

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
