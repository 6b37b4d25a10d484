"""Commands for runs that workers drive."""
