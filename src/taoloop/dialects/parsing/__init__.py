"""From the text of a reply to one decision."""
