"""The tree of errors: complete in its module's docstring, and every error survives pickling."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

from taoloop import errors
from taoloop.errors import AgentFileError, ApprovalStale, NotWaiting, TaoError
from taoloop.runtime.approvals import inbox


def test_the_tree_of_the_module_has_every_class_below_its_parent() -> None:
    lines = [line for line in (errors.__doc__ or "").splitlines() if re.match(r"TaoError$|[│├][│├└ ─]*\w+ |└── ", line)]
    path: list[str] = []
    drawn: dict[str, str] = {}
    for line in lines:
        match = re.search(r"\w+", line)
        assert match is not None
        depth = match.start() // 4
        path[depth:] = [match.group()]
        drawn[match.group()] = path[depth - 1] if depth else "Exception"
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, TaoError)]
    assert drawn == {cls.__name__: cls.__bases__[0].__name__ for cls in classes}


@pytest.mark.parametrize(
    "error",
    [NotWaiting("no", hint="look"), ApprovalStale("late"), AgentFileError("bad", path="a.yaml", line=3, field="x")],
)
def test_every_error_survives_pickling(error: TaoError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    assert type(copy) is type(error)
    assert (vars(copy), str(copy)) == (vars(error), str(error))


def test_errors_of_approvals_can_still_be_imported_from_the_inbox() -> None:
    assert vars(inbox)["NotWaiting"] is NotWaiting
    assert vars(inbox)["ApprovalStale"] is ApprovalStale
