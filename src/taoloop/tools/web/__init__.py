"""The tool `fetch`: reads a page or a resource of the web, under egress rules."""

from taoloop.tools.web.fetch import fetch_tools
from taoloop.tools.web.settings import FetchSettings

__all__ = ["FetchSettings", "fetch_tools"]
