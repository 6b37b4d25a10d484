"""The tool `web_search`: one tool over several search services."""

from taoloop.tools.web_search.settings import WebSearchSettings
from taoloop.tools.web_search.tool import web_search_tools

__all__ = ["WebSearchSettings", "web_search_tools"]
