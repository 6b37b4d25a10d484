"""A support desk over HTTP: customers send tickets, the agent answers, and refunds wait for a person in the page.

Run:  python examples/recipes/support_desk.py [--model openai:gpt-4o-mini]   and open http://127.0.0.1:8000
Needs: pip install fastapi uvicorn
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse
from pydantic import BaseModel
from support_agent import Desk, Shop, support_agent

from taoloop import Agent, ApprovalAnswer, Result, answer_approval, pending_approvals
from taoloop.errors import AlreadyAnswered, ApprovalStale, NotWaiting, RunNotFound

PAGE = Path(__file__).with_suffix(".html")


class Ticket(BaseModel):
    """What a customer sends."""

    customer: str
    text: str


class TicketReply(BaseModel):
    """What became of a ticket: `waiting` until a person has decided."""

    run_id: str
    status: str
    answer: str | None


class Question(BaseModel):
    """A call that waits for a person."""

    run_id: str
    call_id: str
    digest: str
    task: str
    tool: str
    args: dict[str, object]
    reasons: list[str]


class Decision(BaseModel):
    """The answer of a person; `digest` names exactly the call that they saw."""

    digest: str
    approved: bool
    by: str
    note: str = ""


def make_app(agent: Agent[Desk]) -> FastAPI:
    """The web application around an agent whose journal is a file."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await agent.recover()  # the tickets that a crash left in the middle, or just after a decision
        yield

    app = FastAPI(title="Support desk", lifespan=lifespan)

    def reply(result: Result) -> TicketReply:
        return TicketReply(run_id=result.run_id, status=result.status, answer=result.answer)

    @app.get("/")
    async def show_page() -> FileResponse:
        return FileResponse(PAGE)

    @app.post("/tickets")
    async def send_ticket(ticket: Ticket) -> TicketReply:
        return reply(await agent.run(ticket.text, user=ticket.customer))

    @app.get("/questions")
    async def list_questions() -> list[Question]:
        async with agent.open_journal() as journal:
            return [
                Question(
                    run_id=waiting.request.run_id,
                    call_id=waiting.request.call_id,
                    digest=waiting.request.digest,
                    task=waiting.task,
                    tool=waiting.request.tool,
                    args=dict(waiting.request.args),
                    reasons=list(waiting.request.reasons),
                )
                for waiting in await pending_approvals(journal)
            ]

    @app.post("/questions/{run_id}/{call_id}")
    async def decide(run_id: str, call_id: str, decision: Decision) -> TicketReply:
        answer = ApprovalAnswer(approved=decision.approved, by=decision.by, note=decision.note)
        try:
            async with agent.open_journal() as journal:
                await answer_approval(journal, run_id, call_id, answer, digest=decision.digest)
        except RunNotFound as error:
            raise HTTPException(404, str(error)) from error
        except (AlreadyAnswered, ApprovalStale, NotWaiting) as error:
            raise HTTPException(409, str(error)) from error
        return reply(await agent.resume(run_id))

    return app


def main() -> None:
    """Serve the desk."""
    import uvicorn  # noqa: PLC0415  # only a server needs it

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a real model, such as openai:gpt-4o-mini; default: a script")
    parser.add_argument("--db", default="support.db", help="the file that keeps all runs")
    options = parser.parse_args()
    uvicorn.run(make_app(support_agent(Shop(), model=options.model, journal=options.db)), port=8000)


if __name__ == "__main__":
    main()
