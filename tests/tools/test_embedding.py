"""Embedding models of others: their vectors, their errors, and rankings that are merged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from taoloop.errors import ConfigError, ToolError
from taoloop.testing import FakeEmbedder
from taoloop.tools.embedding import check_embedder, cosine, embed_texts, reciprocal_rank_fusion


@dataclass
class Fixed:
    vectors: Any
    name: str = "fixed"

    def embed(self, texts: Sequence[str]) -> Any:  # noqa: ARG002  # the protocol's
        if isinstance(self.vectors, Exception):
            raise self.vectors
        return self.vectors


def test_vectors_get_length_one() -> None:
    first, second = embed_texts(Fixed([[3.0, 4.0], [0.0, 0.0]]), ["a", "b"])
    assert list(first) == pytest.approx([0.6, 0.8])
    assert list(second) == [0.0, 0.0]
    assert cosine(first, first) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0]], "1 vectors for 2 texts"),
        ([[1.0], [1.0, 2.0]], "different lengths"),
        ([[], []], "empty"),
        ([[math.nan], [1.0]], "not finite"),
        (OSError("no route"), "OSError: no route"),
        (None, "TypeError"),
    ],
)
def test_what_a_model_does_wrong_is_one_error(vectors: Any, message: str) -> None:
    with pytest.raises(ToolError, match=message) as caught:
        embed_texts(Fixed(vectors), ["a", "b"])
    assert (caught.value.code, caught.value.retryable) == ("embedding_failed", True)


@pytest.mark.parametrize("model", ["a-model", FakeEmbedder, Fixed(None, name=""), Fixed(None, name="\ud800")])
def test_what_is_no_model_is_refused(model: Any) -> None:
    with pytest.raises(ConfigError, match="Folder has embedder") as caught:
        check_embedder("Folder", model)
    assert "method `embed`" in caught.value.hint


def test_two_orders_are_joined_by_rank_alone() -> None:
    assert list(reciprocal_rank_fusion([[1, 2, 3], [2, 4]])) == [2, 1, 4, 3]
    assert list(reciprocal_rank_fusion([[2], [1]])) == [2, 1]
    assert reciprocal_rank_fusion([]) == {}
