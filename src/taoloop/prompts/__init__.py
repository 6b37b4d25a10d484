"""Prompt texts as files: one folder per language, one file per text. A person can edit a copy of them."""

from taoloop.prompts.load import LANGUAGES, load_prompts, prompts_for

__all__ = ["LANGUAGES", "load_prompts", "prompts_for"]
