"""Skills in the file of a gateway: offered by its agents, pinned, and what is wrong with them said by the check."""

from __future__ import annotations

from pathlib import Path

import yaml
from tests.tools.skills.folders import folder_of, write_skill

from taoloop.serve.gateway.config.config_summary import config_summary
from taoloop.serve.gateway.config.gateway_file import load_config
from taoloop.tools.skills import approve_skills


def test_a_gateway_offers_skills_by_its_pins_and_reports_those_that_are_off(tmp_path: Path) -> None:
    root = tmp_path / "skills"
    write_skill(root, "pdf")
    write_skill(root, "mail")
    approve_skills(folder_of(root))
    (root / "mail" / "new.md").write_text("x")
    entry = {"skills": {"path": "skills", "pins": "pins"}}
    file = tmp_path / "gate.yaml"
    file.write_text(yaml.safe_dump({"agents": {"clerk": {"model": "offline", "tools": [entry, "calculator"]}}}))
    config = load_config(file, env={})
    card = config.agents["clerk"].agent.toolbox.get("load_skill").card
    assert [(content.name, content.trusted) for content in card.contents] == [("pdf", True)]
    assert "mail: it changed: A new.md; it is off." in config_summary(config, "en")
    assert "mail: 已变更：A new.md；已停用" in config_summary(config, "zh")
