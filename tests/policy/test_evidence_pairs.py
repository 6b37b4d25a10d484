"""Answers that a reasonable person would say their observation supports, and answers that it does not support."""

from __future__ import annotations

import pytest

from taoloop import Agent, tool
from taoloop.core.decision import EvidenceGap
from taoloop.models import ScriptedModel

OBSERVED = {
    "stock": "INV-2041: 37 pieces, shelf B4, price 1234.5 EUR, updated 2024-05-12",
    "weather": '{"city": "Zürich", "temperature_c": 23.47, "humidity": 0.346, "wind_kmh": 12, "time": "14:30"}',
    "people": '{"country": "Japan", "population": 124516650, "capital": "Tokyo", "founded": "May 3, 1947"}',
    "sales": "2023: 120 units, 2024: 150 units; returns 6 units; margin 35%",
    "orders": '[{"id": "SO-7", "to": "Ada Lovelace"}, {"id": "SO-9", "to": "GRACE HOPPER"}]',
    "page": "The Eiffel Tower is a lattice tower in Paris. It was “the tallest structure” until 1930.",
    "munich": "München ist die Hauptstadt von Bayern und hat 1.512.491 Einwohner.",
    "tower": '{"名称": "上海中心大厦", "高度": "632米", "层数": 128, "建成": "2016年3月12日", "投资": "148亿元"}',
    "report": "公司去年营业收入为一万二千元，同比增长百分之三十五，共有员工三十七人，上海分公司五人。",
    "status": '{"status": "shipped", "carrier": "DHL", "parcels": 2}',
    "words": "There are thirty-seven pieces and two boxes; the World Health Organization checked them.",
    "size": "file a.bin, 1200000 bytes, read in 1500 ms, 1.5 km of tape",
    "parts": '{"year": 2024, "month": 5, "day": 12, "amount": "-5.20"}',
}

SUPPORTED = [
    # numbers as they are written
    ("stock", "There are 37 pieces of INV-2041."),
    ("stock", "The price is 1,234.50 EUR."),
    ("stock", "The price is €1,234.5."),
    ("stock", "Der Preis ist 1.234,50 EUR."),
    ("stock", "It costs 1 234,5 euros."),
    ("people", "Japan has 124,516,650 people."),
    ("people", "Japan has 124516650 people."),
    ("weather", "The humidity is 34.6%."),
    ("weather", "The humidity is 34.6 percent."),
    ("sales", "The margin is 0.35."),
    ("parts", "It fell by 5.2 today."),
    # rounded
    ("weather", "It is 23.5 degrees."),
    ("weather", "It is 23.5 °C with 35% humidity."),
    ("weather", "It is about 23 degrees."),
    ("people", "Japan has about 125 million people."),
    ("people", "Japan has 124.5 million people."),
    ("people", "Japan has over 120 million people."),
    ("people", "Japan has nearly 130 million people."),
    ("stock", "There are about 40 pieces."),
    # units and words
    ("weather", "The wind blows at 12 kilometres per hour."),
    ("size", "The file has 1.2 MB."),
    ("size", "Reading took 1.5 s."),
    ("size", "There are 1500 m of tape."),
    ("words", "There are 37 pieces."),
    ("words", "There are thirty-seven pieces."),
    ("words", "The WHO checked them."),
    ("stock", "There are thirty-seven pieces."),
    # dates and times
    ("stock", "It was updated on May 12, 2024."),
    ("stock", "It was updated on 12 May 2024."),
    ("stock", "It was updated on the 12th of May."),
    ("stock", "It was updated in May 2024."),
    ("stock", "It was updated on 12.05.2024."),
    ("people", "Its constitution dates from 1947-05-03."),
    ("parts", "It was on May 12, 2024."),
    ("weather", "At 14:30 the wind had 12 km/h."),
    ("weather", "At 2:30 pm the wind had 12 km/h."),
    # names
    ("weather", "Today in Zurich it is 23.47 degrees."),
    ("weather", "Today in ZÜRICH it is 23.47 degrees."),
    ("orders", "The second one, SO-9, goes to Grace Hopper."),
    ("orders", "The first one goes to Lovelace, Ada."),
    ("orders", "There are 2 orders, SO-7 and SO-9."),
    ("people", "The Japanese capital is Tokyo."),
    ("page", "It stands in Paris, and the Eiffel Tower was “the tallest structure” until 1930."),
    ("page", "It was ‘The Tallest Structure’ until 1930."),
    ("munich", "The capital is Munich with 1,512,491 inhabitants."),
    ("munich", "The capital of Bavaria is Munich."),
    # counts
    ("status", "The order was shipped in 2 parcels by DHL."),
    ("sales", "There were 6 returns, in 2024."),
    # computed from the numbers of the sentence
    ("sales", "Sales rose from 120 to 150, by 30 units."),
    ("sales", "Sales rose from 120 to 150 units, which is 25%."),
    ("sales", "120 and 150 units make 270."),
    ("sales", "Of 150 units 6 came back, so 4% did."),
    ("stock", "37 pieces at 1234.5 EUR are worth 45,676.50 EUR."),
    # Chinese
    ("tower", "上海中心大厦高632米，共128层。"),
    ("tower", "“上海中心大厦”于2016年3月12日建成。"),
    ("tower", "该楼于2016年3月建成，投资148亿元。"),
    ("tower", "投资约150亿元。"),
    ("tower", "投资14,800,000,000元。"),
    ("tower", "The Shanghai Tower is 632 metres high."),
    ("tower", "It was completed on March 12, 2016."),
    ("report", "营业收入为12000元，增长35%。"),
    ("report", "营业收入为1.2万元，员工37人。"),
    ("report", "公司有三十七名员工。"),
    ("report", "Revenue was 12,000 and grew by 35%."),
    ("people", "日本人口约1.25亿。"),
    ("people", "日本首都是东京，人口为124,516,650。"),
    ("stock", "该零件有三十七件，更新于2024年5月12日。"),
    ("stock", "库存３７件，价格１２３４．５欧元。"),
    ("status", "状态为“已发货”，共2个包裹。"),
    ("sales", "销量从120增至150，增长了百分之二十五。"),
    ("weather", "湿度约为三成五，气温23.5度。"),
    ("weather", "气温为23度左右。"),
]

UNSUPPORTED = [
    ("stock", "There are 42 pieces of INV-2041.", "42"),
    ("stock", "There are 7 pieces of INV-2041.", "7"),
    ("stock", "There are 37 pieces of INV-2042.", "INV-2042"),
    ("stock", "There are forty-two pieces.", "42"),
    ("stock", "The price is 1,243.50 EUR.", "1,243.50"),
    ("stock", "The price is 1235.6 EUR.", "1235.6"),
    ("stock", "There are about 60 pieces.", "60"),
    ("stock", "There are over 40 pieces.", "40"),
    ("stock", "It was updated on June 12, 2024.", "June 12, 2024"),
    ("stock", "It was updated on May 13, 2024.", "May 13, 2024"),
    ("stock", "It was updated on May 12, 2023.", "May 12, 2023"),
    ("stock", "It was updated in May 2023.", "May 2023"),
    ("stock", "It is on the shelf called “C7”.", "C7"),
    ("weather", "It is 23.9 degrees.", "23.9"),
    ("weather", "It is 25 degrees.", "25"),
    ("weather", "The humidity is 36%.", "36"),
    ("weather", "Today in Geneva it is 23.47 degrees.", "Geneva"),
    ("people", "Japan has 214,516,650 people.", "214,516,650"),
    ("people", "Japan has about 150 million people.", "150"),
    ("people", "Japan has 127 million people.", "127"),
    ("people", "The capital is Kyoto.", "Kyoto"),
    ("orders", "The second one goes to Alan Turing.", "Alan Turing"),
    ("page", "It was “the highest structure” until 1930.", "the highest structure"),
    ("page", "It was the tallest until 1931.", "1931"),
    ("sales", "Sales rose from 120 to 150, by 45 units.", "45"),
    ("sales", "Sales rose from 120 to 150 units, which is 28%.", "28"),
    ("sales", "Both years make 270 units.", "270"),
    ("status", "The order was shipped in 4 parcels by DHL.", "4"),
    ("status", "The order was shipped by FedEx.", "FedEx"),
    ("words", "There are 38 pieces.", "38"),
    ("size", "The file has 1.4 MB.", "1.4"),
    ("tower", "上海中心大厦高623米。", "623"),
    ("tower", "该楼于2016年4月12日建成。", "2016年4月12日"),
    ("tower", "投资158亿元。", "158"),
    ("tower", "“环球金融中心”高632米。", "环球金融中心"),
    ("report", "营业收入为1.3万元。", "1.3"),
    ("report", "公司有四十二名员工。", "42"),
    ("report", "增长53%。", "53"),
    ("people", "日本人口约1.5亿。", "1.5"),
    ("stock", "库存为38件。", "38"),
]


@tool(tier="read")
def look_up(name: str) -> str:
    """Look a record up."""
    return OBSERVED[name]


def gaps_of(name: str, answer: str) -> tuple[EvidenceGap, ...]:
    """The gaps of an answer that cites the record."""
    call = {"tool_calls": [{"name": "look_up", "args": {"name": name}}]}
    agent = Agent(model=ScriptedModel([call, f"{answer} [obs:call_1]"]), tools=[look_up], evidence="warn")
    return agent.run_sync("Look it up.").evidence


@pytest.mark.parametrize(("name", "answer"), SUPPORTED)
def test_an_answer_that_the_observation_supports_is_not_held_back(name: str, answer: str) -> None:
    assert gaps_of(name, answer) == ()


@pytest.mark.parametrize(("name", "answer", "value"), UNSUPPORTED)
def test_an_answer_that_it_does_not_support_is_found(name: str, answer: str, value: str) -> None:
    gaps = gaps_of(name, answer)
    assert [gap.code for gap in gaps] == ["not_contained"]
    assert gaps[0].value == value
