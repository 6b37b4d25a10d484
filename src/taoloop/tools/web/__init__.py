"""The tool `fetch`: reads a page or a resource of the web, under egress rules."""

from taoloop.tools.web.fetch import FetchSettings, fetch_tools

__all__ = ["FetchSettings", "fetch_tools"]
