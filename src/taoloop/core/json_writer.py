"""Writing small JSON values fast: the loop writes several in every step."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def json_writer(encoder: json.JSONEncoder) -> Callable[[Any], str]:
    """What `encoder.encode` does, but with its C part made once: that costs more than a small value itself."""
    try:
        write = json.encoder.c_make_encoder(  # type: ignore[attr-defined]  # undocumented
            None,
            encoder.default,
            json.encoder.encode_basestring,
            encoder.indent,
            encoder.key_separator,
            encoder.item_separator,
            encoder.sort_keys,
            encoder.skipkeys,
            encoder.allow_nan,
        )
    except (AttributeError, TypeError):  # a Python without it, or with another one
        return encoder.encode
    return lambda value: "".join(write(value, 0))
