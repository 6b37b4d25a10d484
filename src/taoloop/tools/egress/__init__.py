"""Egress control: every tool that speaks HTTP sends its requests through these rules.

A request only goes where `EgressRules` allow it, by the addresses to which its host resolves, and it connects to the
very address that was checked, on every hop.
"""

from taoloop.tools.egress.client import EgressClient, http_client
from taoloop.tools.egress.response import EgressResponse
from taoloop.tools.egress.rules import EgressRules, Resolver

__all__ = ["EgressClient", "EgressResponse", "EgressRules", "Resolver", "http_client"]
