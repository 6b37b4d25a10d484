"""A folder of documents as tools: full-text search for passages that an answer can cite."""

from __future__ import annotations

from taoloop.tools.documents.settings import DocumentFolder
from taoloop.tools.documents.tool import CitedPassage, document_tools, locate
from taoloop.tools.embedding import Embedder

__all__ = ["CitedPassage", "DocumentFolder", "Embedder", "document_tools", "locate"]
