"""A run as a page of HTML or Markdown."""
