"""Parsers of untrusted files: HTML, PDF, and text in unknown encodings. They run in a child process.

Such files come from anywhere, and the libraries that parse them are large: a page of 30 KB can make any conforming
HTML parser take 1 GB of memory, or minutes. `IsolatedParser` limits time, memory and output, so no file can harm the
process that reads it. This package imports nothing else of taoloop, so that the child starts quickly.
"""
