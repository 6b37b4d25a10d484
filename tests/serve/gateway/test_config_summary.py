"""What `--check` prints: everything that was understood, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taoloop.serve.gateway.config.config_summary import config_summary
from taoloop.serve.gateway.config.gateway_file import load_config

CONFIGS = Path(__file__).parents[2] / "data" / "higress" / "configs"
EVERY = sorted(CONFIGS.glob("*.yaml"))


@pytest.mark.parametrize("path", EVERY, ids=[path.stem for path in EVERY])
def test_no_key_of_a_file_is_shown(path: Path) -> None:
    config = load_config(path, env={})
    text = config_summary(config)
    assert config.secrets
    for secret in config.secrets.values():
        assert secret not in text


def test_an_ai_agent_file_is_told_with_its_model_its_tools_and_where_they_go() -> None:
    text = config_summary(load_config(CONFIGS / "04_orders_post.yaml", env={}, resolve={"orders.dns": "127.0.0.1:7"}))
    for line in (
        "04_orders_post.yaml: an ai-agent file",
        "listens on: 127.0.0.1:8080",
        "keys: none; the server only starts on an address of this machine",
        "agent 04_orders_post",
        "  model: demo-chat at https://llm.example.com/v1/chat/completions",
        "  dialect: fenced, language: en, policy: supervised",
        "  limits: maxIterations 5, maxExecutionTime 60000, maxTokens 1200",
        "    search_orders (read) POST http://127.0.0.1:7/v1/orders/search",
        "    get_order (read) GET http://127.0.0.1:7/v1/orders/{order_id}",
        "    create_refund (destructive, asks each time) POST http://127.0.0.1:7/v1/refunds",
        "answered by 04_orders_post",
        "warnings: none",
    ):
        assert line in text
    assert "read_observation" not in text


def test_the_short_form_answers_and_warnings_are_told() -> None:
    text = config_summary(load_config(CONFIGS / "06_flat_form.yaml", env={}, resolve={"x": "h:1"}))
    assert "an ai-agent file in its short form" in text
    assert "  06_flat_form.yaml: x: no model and no OpenAPI tool is at this host" in text
    assert "JSON: WeatherAnswer" in config_summary(load_config(CONFIGS / "01_weather.yaml", env={}))
    assert "JSON: any JSON object" in config_summary(load_config(CONFIGS / "05_key_in_query.yaml", env={}))


def test_the_own_form_is_told_with_its_keys_by_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    api = {"openapi": "3.1.0", "info": {}, "servers": [{"url": "/v1"}], "paths": {"/a": {"get": {"operationId": "a"}}}}
    (tmp_path / "api.json").write_text(json.dumps(api))
    path = tmp_path / "gate.yaml"
    path.write_text(
        """
agents:
  talk:
    description: Talks, and says ${KEY} never
    model: openai:gpt-4o | offline
    fallback: offline
    output_schema: {type: object}
    tools: [calculator, {openapi: api.json}, {openapi: {document: missing.json, name: m}}]
  quiet: {model: offline, language: zh}
keys:
  - {name: web, key: "${KEY}", agents: [talk], requests_per_minute: 6, may_approve: false}
  - {name: ops, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
server: {db: runs.db}
default: quiet
"""
    )
    env = {"KEY": "tao-0123456789", "OPENAI_API_KEY": "sk-0123456789abcdef"}
    text = config_summary(load_config(path, env=env))
    assert caplog.messages == []
    for line in (
        "gate.yaml: the gateway's own form",
        f"runs are kept in: {tmp_path / 'runs.db'}",
        "  web: talk, requests_per_minute 6, may not approve",
        "  ops: every agent, no limits",
        "agent talk: Talks",
        "  model: openai:gpt-4o at https://api.openai.com/v1",
        "  else: offline",
        "  answers fit a JSON Schema",
        "    calculator (read)",
        "    a (read) GET /a, which is on no known server",
        "agent quiet",
        "language: zh",
        "  tools: none",
        "answered by quiet",
        f"  agent talk: gate.yaml:8: agents.talk.tools[2].openapi: {tmp_path / 'missing.json'}: ",
    ):
        assert line in text, line
    assert "tao-0123456789" not in text
    assert "sk-0123456789abcdef" not in text


def test_it_is_chinese_where_that_is_asked_for() -> None:
    path = CONFIGS / "04_orders_post.yaml"
    text = config_summary(load_config(path, env={}, resolve={"orders.dns": "127.0.0.1:7"}), "zh")
    for line in (
        "04_orders_post.yaml: ai-agent 文件",
        "监听地址：127.0.0.1:8080",
        "密钥：无，服务器只能在本机地址上启动",
        "  模型：demo-chat，地址 https://llm.example.com/v1/chat/completions",
        "  输出方言：fenced，语言：en，策略模式：supervised",
        "  限制：maxIterations 5, maxExecutionTime 60000, maxTokens 1200",
        "    create_refund (destructive，每次都需人工审批) POST http://127.0.0.1:7/v1/refunds",
        "由 04_orders_post 回答。",
        "警告：无",
    ):
        assert line in text, text
