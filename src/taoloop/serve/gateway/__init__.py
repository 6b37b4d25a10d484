"""The gateway: agents behind an endpoint that any OpenAI client speaks to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.serve.gateway.config.config_summary import config_summary as config_summary
    from taoloop.serve.gateway.config.gateway_file import load_config as load_config
    from taoloop.serve.gateway.config.model import GatewayConfig as GatewayConfig
    from taoloop.serve.gateway.server import GatewayServer as GatewayServer

__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.serve.gateway.config.config_summary": "config_summary",
        "taoloop.serve.gateway.config.gateway_file": "load_config",
        "taoloop.serve.gateway.config.model": "GatewayConfig",
        "taoloop.serve.gateway.server": "GatewayServer",
    },
)
