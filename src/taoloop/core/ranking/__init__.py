"""Ranking texts by the words of a query: BM25 over weighted fields, stems, and other words for the same thing. Pure."""
