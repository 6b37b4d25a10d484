"""Any REST API with an OpenAPI or Swagger document as tools: `openapi_tools(OpenapiSource(document=…))`."""

from taoloop.tools.openapi.document import document_findings
from taoloop.tools.openapi.load import openapi_tools
from taoloop.tools.openapi.settings import OpenapiSource

__all__ = ["OpenapiSource", "document_findings", "openapi_tools"]
