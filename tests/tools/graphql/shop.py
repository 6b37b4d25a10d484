"""A GraphQL API on this machine that executes what it is sent, with graphql-core, over HTTP."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from graphql import ExecutionResult, GraphQLError, GraphQLSchema, build_schema, graphql_sync
from tests.tools.egress.site import Got, Reply, Site

SDL = '''
"""An instant."""
scalar DateTime
scalar Upload
enum Status { OPEN SHIPPED LOST }
input Range { from: DateTime, to: DateTime }
"""Which orders are meant."""
input OrderFilter { status: [Status!], placed: Range, any: [OrderFilter!], minimum: Float = 0.5 }
input ItemInput { sku: ID!, count: Int! = 1 }
type Customer { id: ID!, name: String!, orders(first: Int): [Order!]!, friend: Customer, address: Address, best: Order }
type Address { street: String, city: String }
type Item { sku: ID!, count: Int!, price: Float }
type PageInfo { hasNextPage: Boolean!, endCursor: String }
type OrderEdge { cursor: String!, node: Order! }
type OrderConnection { nodes: [Order!]!, edges: [OrderEdge!]!, pageInfo: PageInfo!, totalCount: Int! }
type Order {
  id: ID!
  status: Status!
  placed: DateTime
  note: String
  items: [Item!]!
  customer: Customer!
  history(since: DateTime!): [String!]
  old: String @deprecated(reason: "Use note.")
  secretMargin: Float
}
union Found = Order | Customer
type Query {
  "Find one order by its id."
  order(id: ID!): Order
  "List orders, the newest first."
  orders(filter: OrderFilter, first: Int! = 10, after: String): OrderConnection!
  search(text: String!): [Found!]!
  version: String!
  legacy: String @deprecated(reason: "Use version.")
}
type Mutation {
  "Place an order."
  placeOrder(items: [ItemInput!]!, note: String): Order
  cancelOrder(id: ID!): Boolean
  attach(id: ID!, file: Upload!): Boolean
}
type Subscription { changed: Order }
'''


@dataclass
class Shop(Site):
    """`executed` holds what was sent: text, operation and variables."""

    schema: GraphQLSchema = field(default_factory=lambda: build_schema(SDL))
    executed: list[dict[str, Any]] = field(default_factory=list)
    answer: Any = None

    def __post_init__(self) -> None:
        self.routes["/graphql"] = self._execute
        self.resolvers: dict[str, Any] = {
            "version": "7",
            "order": lambda _info, **args: None if args["id"] == "0" else self.order(args["id"]),
            "orders": self._orders,
            "search": lambda _info, **_args: [self.order("1"), self.customer()],
            "placeOrder": lambda _info, items, note=None: {**self.order("9"), "note": note, "items": items},
            "cancelOrder": self._cancel,
        }

    def order(self, number: str) -> dict[str, Any]:
        items = [{"sku": "a", "count": 2, "price": 1.5}]
        return {"__typename": "Order", "id": number, "status": "OPEN", "note": None, "items": items} | {
            "placed": "2026-01-02T03:04:05Z",
            "customer": self.customer,
        }

    def customer(self, _info: Any = None) -> dict[str, Any]:
        return {"__typename": "Customer", "id": "c1", "name": "Ann", "address": {"city": "Bern"}}

    def _orders(self, _info: Any, first: int, **_args: Any) -> Any:
        nodes = [self.order(str(number)) for number in range(1, first + 1)]
        return {"nodes": nodes, "pageInfo": {"hasNextPage": True, "endCursor": "x"}, "totalCount": 99}

    def _cancel(self, _info: Any, **_args: Any) -> bool:
        raise GraphQLError("It was shipped.", extensions={"code": "ALREADY_SHIPPED"})

    def _execute(self, got: Got) -> Reply:
        body = json.loads(got.body)
        self.executed.append(body)
        if self.answer is not None:
            return _json(self.answer(got) if callable(self.answer) else self.answer)
        result: ExecutionResult = graphql_sync(
            self.schema,
            body["query"],
            root_value=self.resolvers,
            variable_values=body.get("variables"),
            operation_name=body.get("operationName"),
        )
        return _json(result.formatted)


def _json(value: Any) -> Reply:
    return 200, {"Content-Type": "application/graphql-response+json"}, json.dumps(value).encode()
