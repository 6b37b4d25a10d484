"""What the tools of a GraphQL API report to the model in a run."""

from __future__ import annotations

from taoloop.tools.texts import ToolTexts

TEXTS = ToolTexts(
    {
        "graphql_error": "{operation!r} failed: {errors}",
        "no_graphql": "The endpoint sent no answer of GraphQL ({media_type}).",
        "partial": "Part of this failed; what is null there is not known to be empty.",
    },
)
