"""The conversations that clients name, in the gateway's database."""

from __future__ import annotations

from pathlib import Path

from taoloop.serve.gateway.shared.conversations import KEEP_S, Conversations
from taoloop.serve.gateway.shared.database import GatewayDatabase
from taoloop.testing import FakeClock


def test_a_conversation_is_of_one_key_and_one_agent_and_ends() -> None:
    clock = FakeClock(1_000_000.0)
    conversations = Conversations(GatewayDatabase(), clock)
    conversations.enter("ann", "a", "t1", "run-1")
    conversations.enter("ann", "a", "t1", "run-2")
    assert conversations.last_run("ann", "a", "t1") == "run-2"
    for owner, agent, name in (("bob", "a", "t1"), ("ann", "b", "t1"), ("ann", "a", "t2")):
        assert conversations.last_run(owner, agent, name) is None
    conversations.enter_question("ann", "run-2", "code")
    assert conversations.shown_question("ann", "run-2") == "code"
    assert conversations.shown_question("bob", "run-2") == ""
    clock.advance(KEEP_S + 1)
    assert conversations.last_run("ann", "a", "t1") is None
    assert conversations.shown_question("ann", "run-2") == ""


def test_a_name_is_kept_as_its_digest_alone(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    database = GatewayDatabase(path)
    Conversations(database, FakeClock(1.0)).enter("ann", "a", "a-secret-thread", "run-1")
    assert "a-secret-thread" not in str(database.rows("SELECT * FROM conversation"))
    database.close()
