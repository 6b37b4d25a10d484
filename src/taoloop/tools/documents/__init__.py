"""A folder of documents as tools: found by full-text search, in passages that an answer can cite."""

from __future__ import annotations

from taoloop.tools.documents.embedding import Embedder
from taoloop.tools.documents.settings import DocumentFolder
from taoloop.tools.documents.tool import document_tools

__all__ = ["DocumentFolder", "Embedder", "document_tools"]
