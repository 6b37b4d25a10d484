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
    "log": "2024-05-12T08:15:00Z ERROR db: connection refused (code 111), retry 3/5 in 2.5s",
    "bank": '{"balance": -1204.07, "currency": "USD", "owner": {"first": "Mary-Jane", "last": "O\'Neil"}}',
    "search": "1. Python 3.12 released — October 2, 2023\n2. Guido van Rossum joins Microsoft (Nov 12, 2020)",
    "fr": "La tour Eiffel est une tour de fer à Paris, haute de 330 mètres, pour l'Exposition universelle de 1889.",
    "zhnews": "据新华社北京5月12日电，国家统计局公布，一季度国内生产总值296299亿元，同比增长5.3%。",
    "calc": "result=0.333333333333",
    "time": "2024-05-12 23:05 Asia/Shanghai",
    "rows": "id,name,qty\n1,Tea,5\n2,Coffee,12\n3,Sugar,7",
    "files": "a.txt\nb.txt\nc.txt",
    "html": "<li>iPhone 15 Pro – $999</li><li>Galaxy S24 – $799.99</li>",
    "score": '{"f1": 0.9134, "precision": 0.92, "recall": 0.9069, "n": 1000}',
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
    # records of other kinds
    ("log", "The database refused the connection (code 111) on May 12, 2024 at 08:15 UTC."),
    ("log", "It failed with “connection refused”, and retried 3 of 5 times after 2.5 seconds."),
    ("bank", "The balance is -$1,204.07."),
    ("bank", "Mary-Jane O'Neil is overdrawn by $1,204.07."),
    ("bank", "Mary-Jane O’Neil owes 1,204 dollars."),
    ("search", "Python 3.12 was released on 2 October 2023."),
    ("search", "Guido van Rossum joined Microsoft in November 2020."),
    ("search", "The latest version is Python 3.12, released in Oct. 2023."),
    ("fr", "The Eiffel Tower in Paris is 330 m high and was built for the World Exhibition of 1889."),
    ("fr", "埃菲尔铁塔高330米，建于1889年。"),
    ("zhnews", "一季度GDP为296299亿元，增长5.3%。"),
    ("zhnews", "China's GDP was 29.6 trillion yuan in the first quarter, up 5.3%."),
    ("zhnews", "一季度国内生产总值约29.6万亿元。"),
    ("zhnews", "国家统计局5月12日公布了数据。"),
    ("calc", "The result is 0.333."),
    ("calc", "The result is 33.3%."),
    ("calc", "The result is about 1/3."),
    ("calc", "It is roughly 0.33."),
    ("calc", "It is 33%."),
    ("time", "In Shanghai it is 23:05 on Sunday, May 12, 2024."),
    ("time", "It is 11:05 PM in Shanghai."),
    ("time", "上海现在是2024年5月12日23点05分。"),
    ("time", "上海现在是晚上11点05分。"),
    ("time", "现在是二〇二四年五月十二日。"),
    ("rows", "There are 3 products: Tea (5), Coffee (12) and Sugar (7)."),
    ("rows", "The total quantity is 24 (5 + 12 + 7)."),
    ("rows", "Coffee has the highest quantity, 12."),
    ("rows", "| Product | Qty |\n|---|---|\n| Tea | 5 |\n| Coffee | 12 |"),
    ("rows", "- **Tea**: 5\n- **Coffee**: 12\n- **Sugar**: 7"),
    ("files", "There are 3 files: a.txt, b.txt and c.txt."),
    ("files", "The folder has three files."),
    ("files", "共有3个文件：a.txt、b.txt和c.txt。"),
    ("html", "The iPhone 15 Pro costs $999, and the Galaxy S24 costs $799.99."),
    ("html", "The Galaxy S24 costs about $800."),
    ("html", "The difference between $999 and $799.99 is $199.01."),
    ("score", "The F1 score is 91.3%, with a precision of 92% and a recall of 90.7%."),
    ("score", "F1 is 0.91."),
    ("score", "F1 was 0.913 on 1,000 samples."),
    ("score", "F1 was 0.913 on 1k samples."),
    ("stock", "According to the inventory system, INV-2041 has 37 pieces (as of 2024-05-12)."),
    ("stock", "**INV-2041** – 37 pieces – shelf B4"),
    ("stock", "INV-2041 有 37 件，位于 B4 货架，单价 1234.5 欧元。"),
    ("people", "Japan's population is 124.5M."),
    ("people", "日本有1亿2451万6650人。"),
    ("people", "日本人口约一亿两千万。"),
    ("munich", "Bavaria's capital Munich has around 1.5 million inhabitants."),
    ("report", "员工共37人，其中上海5人，其余32人。"),
    ("sales", "Sales grew by a quarter, from 120 to 150."),
    ("sales", "Returns were 6 of 150, i.e. 4 %."),
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
    ("weather", "In Zürich, Switzerland it is 23.47 °C.", "Switzerland"),
    ("calc", "It is 1/4.", "1/4"),
    ("people", "日本有1亿2541万6650人。", "125416650"),
    ("zhnews", "国内生产总值约29.6亿元。", "29.6"),
    ("rows", "Coffee has a quantity of 21.", "21"),
    ("html", "The Galaxy S24 costs $999.99.", "999.99"),
    ("html", "The iPhone 15 Pro costs €1,099.", "1,099"),
    ("score", "The recall is 0.96.", "0.96"),
    ("log", "It failed with “connection reset”.", "connection reset"),
    ("fr", "It is 330 metres high, built for the exhibition of 1898.", "1898"),
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
