"""A server of the SDK that carries out calls as tasks, by the extension of 2026-07-28. Its argument is a log file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import MCPServer

LOG = Path(sys.argv[1])
FORM = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}


class TaskParams(types.RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


def log(text: str) -> None:
    with LOG.open("a") as file:
        file.write(text + "\n")


class Tasks(Extension):
    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self) -> None:
        self.polls = 0
        self.size: Any = None
        self.name = ""

    async def intercept_tool_call(self, params: Any, _ctx: Any, _call_next: Any) -> Any:
        log(f"task of {params.name}")
        self.polls, self.size, self.name = 0, None, params.name
        return {"resultType": "task", **self.state("working")}

    def state(self, status: str) -> dict[str, Any]:
        at = "2026-01-01T00:00:00Z"
        times = {"createdAt": at, "lastUpdatedAt": at, "ttlMs": None, "pollIntervalMs": 20}
        return {"taskId": "t1", "status": status, "statusMessage": f"poll {self.polls}", **times}

    def methods(self) -> Sequence[MethodBinding]:
        names = {"tasks/get": self.get, "tasks/update": self.update, "tasks/cancel": self.cancel}
        return [MethodBinding(name, TaskParams, handler) for name, handler in names.items()]

    async def get(self, _ctx: Any, _params: TaskParams) -> Any:
        self.polls += 1
        log("get")
        if self.name == "endless":
            return self.state("working")
        if self.name == "broken" and self.polls > 1:
            return {**self.state("failed"), "error": {"code": -32000, "message": "the press is jammed"}}
        if self.name == "asks" and self.size is None:
            form = types.ElicitRequestFormParams(message="How large?", requested_schema=FORM)
            request = types.ElicitRequest(params=form).model_dump(by_alias=True, mode="json", exclude_none=True)
            return {**self.state("input_required"), "inputRequests": {"size": request}}
        if self.polls > 2:
            text = {"type": "text", "text": f"printed {self.size}"}
            return {**self.state("completed"), "result": {"resultType": "complete", "content": [text]}}
        return self.state("working")

    async def update(self, _ctx: Any, params: TaskParams) -> Any:
        answer = (params.input_responses or {})["size"]
        log(f"answer {answer}")
        self.size = answer.get("content", {}).get("size")
        return {}

    async def cancel(self, _ctx: Any, _params: TaskParams) -> Any:
        log("cancel")
        return {}


SERVER = MCPServer("press", extensions=[Tasks()])
for name in ("quick", "asks", "endless", "broken"):
    SERVER.tool(name=name)(lambda: "never called")

if __name__ == "__main__":
    SERVER.run()
