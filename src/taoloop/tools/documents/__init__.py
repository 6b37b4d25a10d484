"""A folder of documents as tools: search for passages that an answer can cite, or the ReAct paper's pages."""

from __future__ import annotations

from taoloop.tools.documents.pages import PageFolder, page_tools, paper_tools
from taoloop.tools.documents.settings import DocumentFolder
from taoloop.tools.documents.tool import CitedPassage, document_tools, locate
from taoloop.tools.embedding import Embedder

__all__ = [
    "CitedPassage",
    "DocumentFolder",
    "Embedder",
    "PageFolder",
    "document_tools",
    "locate",
    "page_tools",
    "paper_tools",
]
