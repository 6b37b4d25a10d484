"""Push notifications of A2A: who gets the states of a task, and where a client cannot send this server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

from tests.serve.gateway.a2a.test_route import call, keyed, said, send, state, two
from tests.serve.gateway.clients import post, send_note
from tests.serve.gateway.conftest import Running, agent, config_of, gateway, until, upstream

from taoloop.serve.gateway.a2a.push_delivery import PushDelivery
from taoloop.serve.gateway.config.model import GatewayConfig
from taoloop.serve.gateway.quotas import Quotas
from taoloop.testing import FakeClock, HttpDouble
from taoloop.tools.egress import EgressRules

SLOW_S = 3_600.0
"""A pause in which the server itself looks at nothing."""


def rules_of(double: HttpDouble) -> EgressRules:
    return EgressRules(allow=(f"127.0.0.1:{double.port}",))


def pushing(config: GatewayConfig, double: HttpDouble) -> GatewayConfig:
    return replace(config, a2a_push=rules_of(double))


def deliver(running: Running) -> int:
    delivery = PushDelivery(lambda: running.process.gateway.snapshot)
    return asyncio.run_coroutine_threadsafe(delivery.deliver(), running.loop).result(20)


def grown(running: Running, task_id: str) -> None:
    running.process.gateway.snapshot.accounts.push_configs.mark([task_id])


def test_a_task_pushes_what_it_waits_for_and_its_end_with_the_token_of_its_client() -> None:
    with HttpDouble([(200, {}), (204, {})]) as double, upstream(two) as server:
        config = pushing(config_of(agent(server, tools=[send_note]), protocols=("a2a",)), double)
        with gateway(config, poll_s=0.02) as running:
            card = post(running, b"", path="/.well-known/agent-card.json", method="GET")[1]
            assert card["capabilities"]["pushNotifications"] is True
            authentication = {"scheme": "Bearer", "credentials": "c1"}
            asked = {"url": f"{double.url}/push", "token": "t1", "authentication": authentication}
            configuration = {"configuration": {"taskPushNotificationConfig": asked}}
            task = call(running, "SendMessage", {**said("Send a note that says hello."), **configuration})["task"]
            until(lambda: double.requests)
            pushed = json.loads(double.bodies[0])["task"]
            assert (pushed["id"], state(pushed)) == (task["id"], "TASK_STATE_INPUT_REQUIRED")
            assert double.headers[0]["x-a2a-notification-token"] == "t1"
            assert double.headers[0]["authorization"] == "Bearer c1"
            assert state(send(running, "no: not now", "m2", taskId=task["id"])) == "TASK_STATE_INPUT_REQUIRED"
            until(lambda: len(double.requests) == 2)
            assert json.loads(double.bodies[1])["task"]["status"]["message"] != pushed["status"]["message"]


def test_a_push_that_fails_is_tried_again_and_an_old_state_is_not_pushed() -> None:
    clock = FakeClock()
    with HttpDouble([(500, {}), (200, {})]) as double, upstream("Done.", "Done.") as server:
        config = pushing(config_of(agent(server), protocols=("a2a",)), double)
        with gateway(config, poll_s=SLOW_S, quotas=Quotas(config.limits, clock=clock)) as running:
            asked = {"url": f"{double.url}/push", "id": "mine"}
            params = {**said("Go."), "configuration": {"pushNotificationConfig": asked}}
            task = call(running, "message/send", {**params, "message": {**params["message"], "role": "user"}})
            assert deliver(running) == 1
            assert (deliver(running), len(double.requests)) == (0, 1)  # it waits before it tries again
            clock.advance(5)
            assert (deliver(running), len(double.requests)) == (1, 2)
            assert state(json.loads(double.bodies[1])) == "completed"  # of version 0.3: the task itself
            grown(running, task["id"])
            assert (deliver(running), len(double.requests)) == (1, 2)  # nothing is new

            set_now = {"taskId": task["id"], "url": f"{double.url}/late", "id": "late"}
            assert call(running, "CreateTaskPushNotificationConfig", set_now)["taskId"] == task["id"]
            assert (deliver(running), len(double.requests)) == (1, 2)  # its client can see that state


def test_configurations_are_listed_and_deleted_by_their_client_alone() -> None:
    ann, ann_key = keyed("ann")
    bob, bob_key = keyed("bob")
    with HttpDouble([]) as double, upstream("Done.", "Done.") as server:
        config = config_of(agent(server), keys=(ann_key, bob_key), protocols=("a2a",))
        with gateway(pushing(config, double), poll_s=SLOW_S) as running:
            task_id = send(running, "Go.", headers=ann)["id"]

            def ask(method: str, headers: dict[str, str] = ann, **params: Any) -> Any:
                return call(running, f"{method}TaskPushNotificationConfig", {"taskId": task_id, **params}, **headers)

            made = ask("Create", url=f"{double.url}/a", id="a", authentication={"scheme": "Bearer", "credentials": "x"})
            assert made == {"taskId": task_id, "id": "a", "url": f"{double.url}/a"}  # without the credentials
            assert ask("Get", id="a") == made
            assert ask("Get", bob, id="a")["code"] == -32001
            assert ask("Create", bob, url=f"{double.url}/b")["code"] == -32001
            old = {"id": task_id, "pushNotificationConfigId": "a"}
            assert call(running, "tasks/pushNotificationConfig/get", old, **ann)["pushNotificationConfig"]["id"] == "a"
            for url in ("http://10.0.0.1:8080/", "file:///etc/passwd", "http://a:b@c/"):
                assert ask("Create", url=url)["code"] == -32602
            assert call(running, "DeleteTaskPushNotificationConfig", {"taskId": task_id, "id": "a"}, **ann) == {}
            assert ask("Get", id="a")["code"] == -32001
            asked = {"url": "http://169.254.169.254/latest"}  # an address is checked when something is sent
            send_params = {**said("Go.", "m2"), "configuration": {"taskPushNotificationConfig": asked}}
            later = call(running, "SendMessage", send_params, **ann)["task"]
            assert deliver(running) == 1
            grown(running, later["id"])
            assert deliver(running) == 1
            [kept] = call(running, "ListTaskPushNotificationConfigs", {"taskId": later["id"]}, **ann)["configs"]
            assert kept["url"] == asked["url"]
            assert double.requests == []


def test_without_allowed_addresses_the_server_has_no_push_notifications() -> None:
    with upstream("Done.") as server, gateway(config_of(agent(server), protocols=("a2a",))) as running:
        card = post(running, b"", path="/.well-known/agent-card.json", method="GET")[1]
        assert card["capabilities"]["pushNotifications"] is False
        configuration = {"configuration": {"taskPushNotificationConfig": {"url": "https://client.example/"}}}
        assert call(running, "SendMessage", {**said("Go."), **configuration})["code"] == -32003
        assert call(running, "ListTaskPushNotificationConfigs", {"taskId": "x"})["code"] == -32003
        assert running.traces() == []
