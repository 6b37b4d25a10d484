"""Values of a statement: written `:name` in it, bound by the driver in its own way, never put into the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from taoloop.errors import ToolError

_PARTS = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?P<tag>\$\w*\$).*?(?P=tag)|(?<![:\w]):(?P<name>[A-Za-z_]\w*)""",
    re.DOTALL,
)
_MYSQL_PARTS = re.compile(  # there the values are put into the text by the driver: outside of quotes, or not at all
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|(?:--(?=\s)|\#)[^\n]*|/\*.*?\*/|(?<![:\w]):(?P<name>[A-Za-z_]\w*)""",
    re.DOTALL,
)


def bound(statement: str, params: Mapping[str, Any], style: str, kind: str = "") -> tuple[str, Any]:
    """The statement and its values as a driver with this `paramstyle` of PEP 249 takes them; no values: None.

    `kind` is the database, which decides what quotes and comments are.

    Only where a name stands is found here; what a statement may do is decided by the database.

    Raises:
        ToolError: `bad_params`; a value has no place in the statement.
    """
    if not params:
        return statement, None
    used: list[str] = []
    mark = {"pyformat": "%({})s", "format": "%s", "qmark": "?", "numeric": ":{number}", "numeric_dollar": "${number}"}

    def placed(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None or name not in params:
            return match[0].replace("%", "%%") if doubled else match[0]
        used.append(name)
        return mark.get(style, ":{}").format(name, number=len(used))

    doubled = style in ("pyformat", "format")
    pieces, end = [], 0
    for match in (_MYSQL_PARTS if kind in ("mysql", "mariadb") else _PARTS).finditer(statement):
        before = statement[end : match.start()]
        pieces += [before.replace("%", "%%") if doubled else before, placed(match)]
        end = match.end()
    rest = statement[end:]
    pieces.append(rest.replace("%", "%%") if doubled else rest)
    if unused := [name for name in params if name not in used]:
        raise ToolError(
            f"The value {unused[0][:60]!r} of params has no place in the statement.",
            code="bad_params",
            hint=f"Write :{unused[0][:60]} outside of quotes where it belongs, or leave it away.",
        )
    values: Any = tuple(params[name] for name in used) if style not in ("pyformat", "named") else dict(params)
    return "".join(pieces), values
