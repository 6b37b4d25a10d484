"""`a2a-sdk`, the official client of A2A for Python, against the gateway; prints what it got as one JSON object.

Runs in the environment of the clients, which has no taoloop.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any
from uuid import uuid4

import httpx  # type: ignore[import-not-found]  # as all below, only in the environment of the clients
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory  # type: ignore[import-not-found]
from a2a.types import a2a_pb2 as types  # type: ignore[import-not-found]
from google.protobuf.json_format import MessageToDict

BASE = os.environ["GATEWAY_URL"].removesuffix("/v1")
HEADERS = {"Authorization": f"Bearer {os.environ['GATEWAY_KEY']}"}


def message(text: str, **ids: str) -> types.SendMessageRequest:
    part = types.Part(text=text)
    return types.SendMessageRequest(
        message=types.Message(message_id=str(uuid4()), role=types.ROLE_USER, parts=[part], **ids)
    )


async def answers(client: Any, text: str, **ids: str) -> list[dict[str, Any]]:
    return [MessageToDict(event) async for event in client.send_message(message(text, **ids))]


def text_of(task: dict[str, Any]) -> str:
    return "".join(part["text"] for artifact in task["artifacts"] for part in artifact["parts"])


async def client_for(http: httpx.AsyncClient, agent: str, version: str, *, streaming: bool) -> Any:
    card = await A2ACardResolver(http, f"{BASE}/a2a/{agent}").get_agent_card()
    kept = [interface for interface in card.supported_interfaces if interface.protocol_version == version]
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(kept)
    return ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)


async def scenario(version: str) -> dict[str, Any]:
    got: dict[str, Any] = {}
    async with httpx.AsyncClient(headers=HEADERS, timeout=30) as http:
        client = await client_for(http, "assistant", version, streaming=False)
        task = (await answers(client, "I am Ann. Double 4."))[-1]["task"]
        got["sent"] = [task["status"]["state"], text_of(task)]
        task = (await answers(client, "What is my name?", context_id=task["contextId"]))[-1]["task"]
        got["next"] = text_of(task)
        found = MessageToDict(await client.get_task(types.GetTaskRequest(id=task["id"])))
        got["found"] = [found["status"]["state"], text_of(found)]

        client = await client_for(http, "assistant", version, streaming=True)
        events = await answers(client, "Double 4.")
        pieces = [event["artifactUpdate"] for event in events if "artifactUpdate" in event]
        got["streamed"] = "".join(
            part["text"] for piece in pieces for part in piece["artifact"]["parts"] if "text" in part
        )
        got["ended"] = [next(iter(events[0])), events[-1]["statusUpdate"]["status"]["state"]]

        clerk = await client_for(http, "clerk", version, streaming=False)
        task = (await answers(clerk, "Write the file."))[-1]["task"]
        got["waits"] = task["status"]["state"]
        follower = await client_for(http, "clerk", version, streaming=True)
        request = types.SubscribeToTaskRequest(id=task["id"])
        followed = [MessageToDict(event) async for event in follower.subscribe(request)]
        got["followed"] = followed[-1]["statusUpdate"]["status"]["state"]
        ids = {"task_id": task["id"], "context_id": task["contextId"]}
        task = (await answers(clerk, "no: not now", **ids))[-1]["task"]
        got["refused"] = [task["status"]["state"], text_of(task)]
        task = (await answers(clerk, "Write the file."))[-1]["task"]
        canceled = MessageToDict(await clerk.cancel_task(types.CancelTaskRequest(id=task["id"])))
        got["canceled"] = canceled["status"]["state"]
        try:
            await client.get_task(types.GetTaskRequest(id="20270101-000000-00000000"))
        except Exception as error:  # noqa: BLE001  # whatever the client makes of it
            got["unknown"] = type(error).__name__
    return got


print(json.dumps(asyncio.run(scenario(sys.argv[1]))))  # noqa: T201  # what the test reads
