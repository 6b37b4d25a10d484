"""What people ask for: the words of their requests, clause by clause, in English and Chinese. Pure."""
