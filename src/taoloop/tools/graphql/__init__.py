"""Any GraphQL API as tools: `graphql_tools(GraphqlSource(endpoint=…, documents=[…]))`."""

from taoloop.tools.graphql.load import graphql_tools
from taoloop.tools.graphql.settings import GraphqlSource

__all__ = ["GraphqlSource", "graphql_tools"]
