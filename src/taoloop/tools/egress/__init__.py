"""The one way out: every tool that speaks HTTP sends through these rules.

A request goes only where `EgressRules` let it, judged by the addresses that its host resolves to, and connects to the
very address that was judged, on every hop.
"""

from taoloop.tools.egress.addresses import Resolver
from taoloop.tools.egress.client import EgressClient, EgressResponse, http_client
from taoloop.tools.egress.rules import EgressRules

__all__ = ["EgressClient", "EgressResponse", "EgressRules", "Resolver", "http_client"]
