"""A folder of documents as tools: full-text search for passages that an answer can cite."""

from __future__ import annotations

from taoloop.tools.documents.citations import CitedPassage, locate
from taoloop.tools.documents.embedding import Embedder
from taoloop.tools.documents.settings import DocumentFolder
from taoloop.tools.documents.tool import document_tools

__all__ = ["CitedPassage", "DocumentFolder", "Embedder", "document_tools", "locate"]
