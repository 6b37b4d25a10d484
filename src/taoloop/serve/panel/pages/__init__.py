"""The pages of the panel: each module has the routes of one subject."""
