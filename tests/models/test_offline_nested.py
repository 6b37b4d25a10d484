"""Questions in two parts: comparisons, and questions whose answer another question needs."""

from __future__ import annotations

import pytest
from tests.models import test_offline_shop as shop
from tests.models.test_offline_run import World
from tests.models.test_offline_world import calculator, distance

from taoloop.tools.tool import Tool

TOOLS: tuple[Tool, ...] = (
    shop.city_weather, shop.population_of, shop.capital_city, shop.clock, shop.age_of, shop.salary_of, shop.manager_of,
    shop.factorial, shop.check_prime, shop.order_details, distance, shop.internet_search,
)  # fmt: skip


@pytest.mark.parametrize(
    ("task", "names", "says"),
    [
        ("How much warmer is Paris than Berlin?", ["city_weather"] * 2, "4"),
        ("How much colder is Oslo than Paris?", ["city_weather"] * 2, "16"),
        ("What is the temperature difference between Paris and Berlin?", ["city_weather"] * 2, "4"),
        ("time difference between Tokyo and Paris", ["clock"] * 2, "8"),
        ("How many more people live in Tokyo than in Paris?", ["population_of"] * 2, "26"),
        ("How much older is Alice than Bob?", ["age_of"] * 2, "6"),
        ("difference between the salary of Bob and Alice", ["salary_of"] * 2, "20"),
        ("巴黎比柏林热多少度?", ["city_weather"] * 2, "4"),
        ("东京和巴黎的时差是多少", ["clock"] * 2, "8"),
        ("东京的人口比巴黎多多少", ["population_of"] * 2, "26"),
        ("Alice 比 Bob 大几岁", ["age_of"] * 2, "6"),
    ],
)
def test_a_difference_is_worked_out_from_two_observations(task: str, names: list[str], says: str) -> None:
    world = World(task, (*TOOLS, calculator))
    assert world.names == [*names, "calculator"]
    assert says in world.answer.split("→")[0]


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ("Is it warmer in Berlin or Paris?", "Paris"),
        ("Which city is colder, Berlin or Paris?", "Berlin"),
        ("Is Paris warmer than Berlin?", "Yes"),
        ("Is Paris colder than Berlin?", "No"),
        ("柏林和巴黎哪个更热?", "巴黎"),
        ("巴黎比柏林热吗", "是"),
    ],
)
def test_a_comparison_names_both_values(task: str, says: str) -> None:
    world = World(task, TOOLS)
    assert world.names == ["city_weather"] * 2
    assert world.answer.startswith(says)
    assert "25" in world.answer
    assert "21" in world.answer


@pytest.mark.parametrize("task", ["How much warmer is Paris than Berlin?", "巴黎比柏林热多少度"])
def test_without_a_calculator_both_values_are_given(task: str) -> None:
    world = World(task, TOOLS)
    assert world.names == ["city_weather"] * 2
    assert "25" in world.answer
    assert "21" in world.answer


@pytest.mark.parametrize(
    "task", ["How much warmer is Paris than Berlin?", "Is it warmer in Berlin or Paris?", "巴黎和柏林哪个更热"]
)
def test_what_no_tool_can_compare_is_refused(task: str) -> None:
    assert World(task, [distance, shop.population_of, calculator]).steps == []


@pytest.mark.parametrize(
    ("task", "steps"),
    [
        (
            "What's the weather in the capital of France?",
            [("capital_city", {"country": "France"}), ("city_weather", {"city": "Paris"})],
        ),
        ("法国首都的天气怎么样", [("capital_city", {"country": "法国"}), ("city_weather", {"city": "巴黎"})]),
        ("法国的首都的人口是多少", [("capital_city", {"country": "法国"}), ("population_of", {"city": "巴黎"})]),
        ("Is the factorial of 4 prime?", [("factorial", {"n": 4}), ("check_prime", {"number": 24})]),
        ("4 的阶乘是质数吗", [("factorial", {"n": 4}), ("check_prime", {"number": 24})]),
        ("What is the salary of Alice's manager?", [("manager_of", {"name": "Alice"}), ("salary_of", {"name": "Bob"})]),
        ("Alice 的经理的工资是多少", [("manager_of", {"name": "Alice"}), ("salary_of", {"name": "Bob"})]),
        (
            "total of order A-1001 in EUR",
            [
                ("order_details", {"order_id": "A-1001"}),
                ("exchange", {"amount": 80, "source": "USD", "target": "EUR"}),
            ],
        ),
        (
            "订单 A-1001 的总额是多少欧元",
            [
                ("order_details", {"order_id": "A-1001"}),
                ("exchange", {"amount": 80, "source": "USD", "target": "EUR"}),
            ],
        ),
    ],
)
def test_the_inner_question_comes_first(task: str, steps: list[tuple[str, dict[str, object]]]) -> None:
    world = World(task, (*TOOLS[:-1], shop.exchange))
    assert world.steps == steps


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("What's the weather in Oslo and the population of Oslo?", ["city_weather", "population_of"]),
        ("the factorial of 3 plus 2", ["factorial", "calculator"]),
        ("3 的阶乘加 2", ["factorial", "calculator"]),
        ("population of the capital of Japan times 2", ["capital_city", "population_of", "calculator"]),
        ("日本首都的人口乘以 2", ["capital_city", "population_of", "calculator"]),
    ],
)
def test_no_part_is_dropped(task: str, names: list[str]) -> None:
    assert World(task, (*TOOLS[:-1], calculator)).names == names


@pytest.mark.parametrize(
    ("task", "part"),
    [
        ("weather in the capital of France", "the capital of France"),
        ("What is the population of the twin city of Oslo?", "the twin city of Oslo"),
        ("法国首都的天气", "法国首都"),
        ("Is the factorial of 4 prime?", "the factorial of 4"),
    ],
)
def test_a_part_that_no_tool_answers_is_named_and_not_dropped(task: str, part: str) -> None:
    world = World(task, [shop.city_weather, shop.population_of, shop.check_prime])
    assert world.steps == []
    assert part in world.answer


@pytest.mark.parametrize("task", ["total of order A-1001 in EUR", "订单 A-1001 的总额是多少欧元"])
def test_a_conversion_that_no_tool_does_is_told(task: str) -> None:
    world = World(task, [shop.order_details, calculator])
    assert world.names in ([], ["order_details"])
    assert "EUR" in world.answer or "欧元" in world.answer


@pytest.mark.parametrize(
    ("task", "expression"),
    [("250 USD in CNY", "250 * 7"), ("Convert 250 USD to CNY", "250 * 7"), ("250 美元是多少人民币", "250 * 7")],
)
def test_an_amount_is_multiplied_by_a_rate(task: str, expression: str) -> None:
    world = World(task, [shop.exchange_rate, calculator])
    assert world.steps == [
        ("exchange_rate", {"base": "USD", "quote": "CNY"}),
        ("calculator", {"expression": expression}),
    ]
    assert "1750" in world.answer


@pytest.mark.parametrize("task", ["250 USD in CNY", "250 美元是多少人民币"])
def test_a_rate_alone_is_not_given_as_the_amount(task: str) -> None:
    world = World(task, [shop.exchange_rate])
    assert world.names == ["exchange_rate"]
    assert "250" in world.answer
    assert "no tool here does this arithmetic" in world.answer or "没有能做这种运算的工具" in world.answer


@pytest.mark.parametrize(
    "task", ["convert 5 lb to kg", "How many kg are 5 lb?", "5 磅是多少公斤", "convert 5 miles to km"]
)
def test_a_conversion_in_the_other_direction_is_refused(task: str) -> None:
    assert World(task, [shop.kg_to_lb]).steps == []


@pytest.mark.parametrize("task", ["convert 5 kg to lb", "How many pounds are 5 kg?", "5 公斤等于多少磅"])
def test_a_conversion_in_the_tools_own_direction_is_done(task: str) -> None:
    assert World(task, [shop.kg_to_lb]).steps == [("kg_to_lb", {"kg": 5})]
