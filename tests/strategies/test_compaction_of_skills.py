"""A compaction leaves no doubt about the skills that a run has loaded: which text it was, and how to have it back."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.strategies.speaking import Speaking, page, save
from tests.tools.skills.folders import folder_of, needing, write_skill

from taoloop import Agent, Limits
from taoloop.core.decision import Act, Call, Decision
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Compacted
from taoloop.policy import judge
from taoloop.runtime.after.replay import replay


class LoadingFirst(Speaking):
    """Loads a skill before it does anything else, and again at a later step."""

    again = 0

    def decision(self, request: ModelRequest) -> Decision:
        if request.trace.step_count + 1 in (1, self.again):
            return Act(calls=(Call(tool="load_skill", args={"name": "pdf"}),), reason="the skill fits")
        return super().decision(request)


def test_a_summary_names_the_skill_its_digest_and_the_way_back(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "pdf", body="Step of the skill.\n" * 200, header=needing("pdf", "save"))
    model = LoadingFirst(30, summary="The pages say little.")
    agent = Agent(
        model=model,
        tools=[folder_of(tmp_path / "skills"), page, save],
        dialect="native",
        context_tokens=9_000,
        limits=Limits(max_steps=None),
    )
    result = asyncio.run(agent.run("Read the pages."))
    assert result.status == "completed"
    facts = [event.fact for event in result.trace.events if isinstance(event.fact, Compacted) and event.fact.summary]
    digest = agent.toolbox.get("load_skill").card.contents[0].digest
    assert facts
    for fact in facts:
        assert f"call_1 load_skill pdf ({digest}): its text is not here any more; load it again" in fact.summary
    assert "Step of the skill" not in facts[-1].summary
    pay = agent.toolbox.get("save").with_card(name="pay", tier="write").card
    assert "skill_tools" in judge(result.trace, Call(tool="pay", args={"name": "x"}), pay).reason_codes
    assert all(decided.same for decided in replay(result.trace))
