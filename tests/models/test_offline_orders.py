"""When the offline model may act: orders, not questions about doing; corrections from marked values only; refusals."""

from __future__ import annotations

import pytest
from tests.models import test_offline_shop as shop
from tests.models.test_offline_run import World
from tests.models.test_offline_world import calculator, get_weather, lookup

from taoloop.errors import ToolError
from taoloop.tools.function import tool

EFFECTS = (shop.remove_document, shop.wipe_document, shop.mail_out, shop.transfer_money, shop.fetch_document)


@pytest.mark.parametrize(
    "task",
    [
        "Should I delete report.txt?",
        "Can I delete report.txt?",
        "May I erase report.txt",
        "Is it safe to delete report.txt?",
        "Would it be wise to remove report.txt and then delete notes.txt?",
        "How do I delete report.txt?",
        "Who deleted report.txt?",
        "Was report.txt deleted?",
        "I deleted report.txt yesterday.",
        "If it rains, delete report.txt",
        "Do we need to send 50 to Bob?",
        "要不要删除 report.txt?",
        "能不能删除 report.txt",
        "我是否应该删除 report.txt?",
        "我可以删除 report.txt 吗",
        "谁删除了 report.txt?",
        "怎么删除 report.txt",
        "如果下雨,就删除 report.txt",
        "应该给 Bob 转账 50 吗?",
        "Tell me whether I should delete report.txt",
        "I think we should delete report.txt",
        "Someone should delete report.txt",
        "Delete everything",
        "Never delete report.txt",
        "Lösche report.txt",
        "有人建议删除 report.txt",
        "帮我看看要不要删除 report.txt",
        "删除所有东西",
        "别删除 report.txt",
    ],
)
def test_a_question_about_doing_is_no_order(task: str) -> None:
    assert World(task, EFFECTS).steps == []


@pytest.mark.parametrize(
    ("task", "tools"),
    [
        ("Delete report.txt", (shop.remove_document,)),
        ("Please delete report.txt.", (shop.remove_document,)),
        ("Can you delete report.txt?", (shop.remove_document,)),
        ("I want you to delete report.txt", (shop.remove_document,)),
        ("Could you please erase report.txt", (shop.wipe_document,)),
        ("删除 report.txt", (shop.remove_document,)),
        ("请帮我把 report.txt 删掉", (shop.remove_document,)),
        ("能不能帮我删除 report.txt", (shop.remove_document,)),
        ("我要删除 report.txt", (shop.remove_document,)),
    ],
)
def test_an_order_is_carried_out(task: str, tools: tuple[object, ...]) -> None:
    world = World(task, (*tools, shop.fetch_document))  # type: ignore[arg-type]
    assert [args for _, args in world.steps] == [{"path": "report.txt"}]
    assert world.names != ["fetch_document"]


@pytest.mark.parametrize("task", ["Read nofile.txt", "读取 nofile.txt"])
def test_the_prose_of_an_error_is_no_source_of_values(task: str) -> None:
    world = World(task, [shop.fetch_document, shop.list_documents])
    assert world.steps == [("fetch_document", {"path": "nofile.txt"})]
    assert "no such file" in world.answer


@pytest.mark.parametrize("task", ["Delete repord.txt", "删除 repord.txt"])
def test_what_an_error_suggests_is_never_deleted_in_its_place(task: str) -> None:
    assert World(task, [shop.remove_document]).steps == [("remove_document", {"path": "repord.txt"})]


@pytest.mark.parametrize("task", ["time in Asia/Tokyoo", "Asia/Tokyoo 现在几点"])
def test_after_a_second_failure_it_reports(task: str) -> None:
    world = World(task, [shop.fix_zone])
    assert len(world.steps) == 2
    assert "Unknown zone" in world.answer


@pytest.mark.parametrize(
    ("hint", "taken"),
    [
        ("Known cities: Smallville, Metropolis.", "Smallville"),
        ("Did you mean 'Smallville'?", "Smallville"),
        ('{"known": ["Metropolis", "Smallville"]}', "Smallville"),
        ("可用的城市:Metropolis、Smallville。", "Smallville"),
        ("Small villages are not known to this service, for example.", None),
        ("Use list_smallvile first.", None),
    ],
)
def test_a_correction_takes_what_the_error_marks_as_a_value(hint: str, taken: str | None) -> None:
    @tool(tier="read")
    def town_weather(city: str) -> str:
        """Weather of a city."""
        if city != "Smallville":
            raise ToolError(f"Unknown city {city!r}.", hint=hint)
        return "sunny"

    @tool(tier="read")
    def list_smallvile() -> str:
        """List the houses."""
        return ""

    world = World("weather in Smallvile", [town_weather, list_smallvile])
    assert [args["city"] for _, args in world.steps] == (["Smallvile", taken] if taken else ["Smallvile"])


@pytest.mark.parametrize("task", ["Read one part of the text", "Show me the earlier output", "读取前面的长输出"])
def test_a_tool_for_an_earlier_output_waits_for_one(task: str) -> None:
    assert World(task, [shop.page_output, calculator]).steps == []


def test_a_cut_output_can_be_read_on() -> None:
    @tool(tier="read")
    def long_story(path: str) -> str:
        """Read a story."""
        return f"{path} " * 100

    world = World(
        "Read story.txt, then read the next part of the earlier long output", [long_story, shop.page_output], shown=50
    )
    assert world.names == ["long_story", "page_output"]
    assert world.steps[1][1]["artifact"].startswith("obs_call_1")


@pytest.mark.parametrize(
    "task",
    [
        "Translate 'good morning' to French",
        "Translate the sentence 'see you' into German",
        "Summarize the plot of Hamlet",
        "Encrypt the word 'secret'",
        "Restore a.txt",
        "Book a table for two at Luigi's",
        "把“早上好”翻译成法语",
        "总结一下《三体》的情节",
        "给“secret”加密",
        "预订两个人的餐桌",
    ],
)
def test_the_main_verb_must_be_on_the_card(task: str) -> None:
    world = World(task, [shop.internet_search, calculator, get_weather, lookup, shop.exchange, shop.unit_converter])
    assert world.steps == []


@pytest.mark.parametrize("task", ["Who wrote Hamlet?", "Search the internet for Hamlet", "谁写了红楼梦"])
def test_a_question_may_still_be_searched_for(task: str) -> None:
    assert World(task, [shop.internet_search, calculator]).names == ["internet_search"]
