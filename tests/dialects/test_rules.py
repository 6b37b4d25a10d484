"""The rules of reading, one by one: replies written for this file, by the number of their rule.

The rules are those of the drift corpus (see `test_drift.py`): what a careful person would do who has to answer for the
side effects. Each line is a dialect, a reply and what it comes to: a call, an answer, or nothing (`None`).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from taoloop.dialects import read_reply


def tool(name: str, effect: str, *required: str, **properties: Any) -> dict[str, Any]:
    rules = {key: rule if isinstance(rule, dict) else {"type": rule} for key, rule in properties.items()}
    schema = {"type": "object", "properties": rules, "required": list(required), "additionalProperties": False}
    return {"name": name, "description": "t", "effect": effect, "parameters": schema}


KIND = {"type": "string", "enum": ["hostel", "resort"]}
TOOLS = [
    tool("find_hotel", "read", "city", city="string", stars="integer", kind=KIND),
    tool("web_search", "read", "q", q="string"),
    tool("ping", "read"),
    tool("sum_up", "read", "numbers", numbers={"type": "array", "items": {"type": "number"}}),
    tool("save_note", "write", "text", text="string"),
    tool("book_room", "write", "hotel_id", "nights", hotel_id="string", nights="integer", breakfast="boolean"),
    tool("drop_table", "destructive", "table", table="string", cascade="boolean"),
]
Expected = tuple[str, dict[str, Any]] | str | None
Line = tuple[str, str, Expected]


def hotel(**more: Any) -> Expected:
    return "find_hotel", {"city": "Rome", **more}


def search(text: str) -> Expected:
    return "web_search", {"q": text}


def note(text: str) -> Expected:
    return "save_note", {"text": text}


PING: Expected = ("ping", {})
CALL = 'Thought: t\nAction: find_hotel\nAction Input: {"city": "Rome"}'
OBJECT = '{"thought": "t", "action": "find_hotel", "action_input": {"city": "Rome"}}'
FENCE = 'Thought: t\nAction:\n```json\n{"action": "find_hotel", "action_input": {"city": "Rome"}}\n```'


def native(content: str | None = None, *calls: tuple[str, str], finish_reason: str = "stop") -> str:
    functions = [{"id": "c", "type": "function", "function": {"name": name, "arguments": args}} for name, args in calls]
    message = {"role": "assistant", "content": content, "tool_calls": functions or None}
    return json.dumps({"index": 0, "finish_reason": finish_reason, "message": message}, ensure_ascii=False)


def everywhere(args: str, expected: Expected) -> list[Line]:
    """One writing of the arguments of `find_hotel` in every dialect."""
    return [
        ("text", f"Thought: t\nAction: find_hotel\nAction Input: {args}", expected),
        ("json", f'{{"thought": "t", "action": "find_hotel", "action_input": {args}}}', expected),
        ("fenced", f'Action:\n```json\n{{"action": "find_hotel", "action_input": {args}}}\n```', expected),
        ("native", native(None, ("find_hotel", args)), expected),
    ]


def any_text(text: str, expected: Expected) -> list[Line]:
    """One text in every dialect."""
    return [(dialect, text if dialect != "native" else native(text), expected) for dialect in DIALECTS]


DIALECTS = ("text", "json", "fenced", "native")

TWO: list[Line] = [
    *[
        ("text", f"{CALL}\n{told}", hotel())
        for told in (
            *(
                "Observation:",
                "Observ",
                "Obs",
                "观察：",
                "**Observation:** 3",
                "Observación: 3",
                "Observaton: 3",
                "【观察】3",
            ),
            *(
                "观察结果：3",
                "Tool Response: 3",
                "Result: 3",
                "find_hotel result: 3",
                "<observation>3",
                "- Observation: 3",
            ),
            *(
                "### Observation\n3",
                "<tool_response>3",
                "Human: thanks",
                "问题：还有吗",
                "<|im_start|>user\n3",
                "</s>\n3",
            ),
            *("Observation: 3\nThought: t\nAction: ping", "Result: 3\nThought: t\nAction: ping\nAction Input: {}"),
        )
    ],
    *[
        ("text", f"{CALL}\n{told}", None)
        for told in (
            *(
                "Observation: 3\nFinal Answer: 3",
                "观察：3\n最终答案：三",
                "【观察】3\n【最终答案】三",
                "Result: 3\nAnswer: 3",
            ),
            *(
                "<observation>3</observation>\nFinal Answer: 3",
                "Observation: 3\nAction: Finish[3]",
                "工具结果：3\n最终回答：3",
            ),
            *(
                "Observation 1: 3\nThought 2: t\nAction 2: finish\nAction Input 2: 3",
                "Tool Output: 3\n**Final Answer**: 3",
            ),
            "<|im_end|>\n<|im_start|>user\nObservation: 3<|im_end|>\n<|im_start|>assistant\nFinal Answer: 3",
            *("Observation:\nThought: t\nFinal Answer: 5", "Observation: 3\nThought: so the final answer: 3"),
        )
    ],
    ("text", f"Thought: t\nObservation: 3\n{CALL}", None),
    ("text", f"{CALL} Observation: 3 hotels", hotel()),
    ("text", f"{CALL} Observation: 3 Final Answer: 3", None),
    ("text", "Thought: so far\nResult: 5\nFinal Answer: 5", None),
    ("text", "Final Answer: 3 hotels.\nQuestion: more?\nAction: ping", "3 hotels."),
    ("text", "Final Answer: 3 hotels.\n\nUser: thanks\nAssistant: welcome", "3 hotels."),
    ("text", "Final Answer: Log in with\nUser: admin\nPassword: x", None),
    ("text", "Final Answer: Rated:\nResult: 5\nOutput: 6", "Rated:\nResult: 5\nOutput: 6"),
    ("json", f"{OBJECT}\nObservation: 3\n{OBJECT.replace('Rome', 'Milan')}", hotel()),
    ("json", f'{OBJECT}\nObservation: 3\n{{"action": "final", "action_input": "3"}}', None),
    ("json", f'{OBJECT}\n{{"observation": "3"}}', hotel()),
    ("json", f'{OBJECT}\n{{"observation": "3"}}\n{{"thought": "t", "action": "final", "action_input": "3"}}', None),
    ("json", OBJECT[:-1] + ', "observation": "3"}', hotel()),
    ("json", OBJECT[:-1] + ', "observation": null}', hotel()),
    ("json", OBJECT[:-1] + ', "observation": "3", "final_answer": "3"}', None),
    ("json", '{"observation": "3", ' + OBJECT[1:], None),
    ("json", '{"action": "find_hotel", "result": "3", "action_input": {"city": "Rome"}}', None),
    ("fenced", f"{FENCE}\nObservation: 3\n{FENCE.replace('Rome', 'Milan')}", hotel()),
    ("fenced", f"{FENCE}\nObservation: 3\nFinal Answer: 3", None),
    ("native", native("Observation: 3 hotels\nThere are 3."), None),
    ("native", native('<tool_call>{"name": "ping", "arguments": {}}</tool_call>\n<tool_response>3'), PING),
    (
        "native",
        native('<tool_call>{"name": "ping", "arguments": {}}</tool_call>\n<tool_response>3</tool_response>\n3.'),
        None,
    ),
]
THREE: list[Line] = [
    *[
        ("text", f"{CALL}\n{more}", None)
        for more in (
            *(
                "Final Answer: 3",
                "Action: ping",
                'Action Input: {"city": "Milan"}',
                '{"city": "Milan"}',
                "Wait, no, Milan.",
            ),
            *("Thought: no, Milan\nAction: ping", "Hmm, actually Milan is better.", "Please confirm before I go on."),
            *("不对，应该是米兰。", "and then ping()", '→ {"city": "Milan"}', "Thought: I should wait."),
        )
    ],
    ("text", f"{CALL}\n{CALL}", hotel()),
    ("text", f'{CALL}\nAction Input: {{"city": "Rome"}}', hotel()),
    ("text", "Action: ping and web_search\nAction Input: {}", None),
    ("text", "Action: ping, web_search\nAction Input: {}", None),
    ("text", "Final Answer: a\nFinal Answer: b", None),
    ("text", "Final Answer: a b\n\nFinal Answer: a b", "a b"),
    ("text", 'Final Answer: done\n{"action": "drop_table", "action_input": {"table": "a"}}', None),
    ("text", 'Thought: t\n```\nAction: drop_table\nAction Input: {"table": "a"}\n```\nso I ping\nAction: ping', None),
    ("json", f"[{OBJECT}, {OBJECT}]", hotel()),
    ("json", f"[{OBJECT}, {OBJECT.replace('Rome', 'Milan')}]", None),
    ("json", '{"thought": "t"}\n{"action": "ping", "action_input": {}}', PING),
    ("json", '{"action": ["ping", "web_search"], "action_input": {}}', None),
    ("json", '{"action": "ping", "tool": "web_search", "args": {"q": "a"}}', None),
    ("json", '{"action": "ping"}, "action_input": {"city": "Rome"}}', None),
    ("json", 'Not this: {"action": "drop_table", "action_input": {"table": "a"}}\n' + OBJECT, None),
    ("fenced", f"{FENCE}\nFinal Answer: 3", None),
    ("fenced", f"{FENCE}\n{FENCE}", hotel()),
    ("native", native("Final Answer: 3", ("ping", "{}")), None),
    ("native", native(None, ("web_search", '{"q": "a"}{"q": "a"}')), search("a")),
    ("native", native(None, ("web_search", '{"q": "a"}{"q": "b"}')), None),
    ("native", native(None, ("web_search", '{"q": "a"}'), ("web_search", '{"q":"a"}')), search("a")),
]
FOUR: list[Line] = [
    *[
        line
        for name in (
            *(
                "Find Hotel",
                "FIND-HOTEL",
                "findHotel",
                "`find_hotel`",
                "**find_hotel**",
                "[find_hotel]",
                "<find_hotel>",
            ),
            *(
                "find_hotel()",
                "find_hotel.",
                "find\\_hotel",
                "functions.find_hotel",
                "find_hotel<|im_end|>",
                "'find_hotel'",
            ),
            *("find_hotelfind_hotel", "find_hotel<|channel|>commentary", "“find_hotel”", "Functions.Find_Hotel()"),
        )
        for line in (
            ("text", f'Action: {name}\nAction Input: {{"city": "Rome"}}', hotel()),
            ("json", json.dumps({"thought": "t", "action": name, "action_input": {"city": "Rome"}}), hotel()),
            ("native", native(None, (name, '{"city": "Rome"}')), hotel()),
        )
    ],
    *[
        line
        for name in (
            "find_hotels",
            "hotel",
            "find",
            "find_hotel_v2",
            "the find_hotel tool",
            "book.find_hotel",
            "find_hotelping",
        )
        for line in (
            ("text", f'Action: {name}\nAction Input: {{"city": "Rome"}}', None),
            ("native", native(None, (name, '{"city": "Rome"}')), None),
        )
    ],
]
FIVE: list[Line] = [
    line
    for args, expected in (
        ('{"city": "Rome", "stars": "4"}', hotel(stars=4)),
        ('{"city": "Rome", "stars": 4.0}', hotel(stars=4)),
        ('{"city": "Rome", "kind": "Hostel"}', hotel(kind="hostel")),
        ('{"city": "Rome", "stars": null}', hotel()),
        ('{"city": "Rome", "stars": 4.5}', None),
        ('{"city": "Rome", "stars": true}', None),
        ('{"city": "Rome", "stars": NaN}', None),
        ('{"city": "Rome", "stars": "four"}', None),
        ('{"city": "Rome", "stars": "４"}', None),
        ('{"city": "Rome", "kind": "hotel"}', None),
        ('{"city": "Rome", "dry_run": true}', None),
        ('{"city": "Rome", "extra": null}', None),
        ('{"city": "Rome", "city": "Milan"}', None),
        ('{"city": "Rome", "City": "Milan"}', None),
        ('{"town": "Rome"}', None),
        ('{"city": null}', None),
        ('{"city": 5}', None),
        ('{"city": ["Rome"]}', None),
        ('{"type": "object", "properties": {"city": {"type": "string"}}}', None),
    )
    for line in everywhere(args, expected)
]
SIX: list[Line] = [
    *[
        line
        for args in (
            *(
                "{'city': 'Rome'}",
                "{city: 'Rome'}",
                '{"city": "Rome",}',
                '{"city": "Rome" /* there */}',
                "{“city”：“Rome”}",
            ),
            *('｛"city"："Rome"｝', '{"city":\u200b "Rome"}', '{"city": """Rome"""}', "{`city`: `Rome`}"),
            *('{"input": {"city": "Rome"}}', '{"name": "find_hotel", "arguments": {"city": "Rome"}}'),
            *(
                '{\n  // where\n  "city": "Rome"\n}',
                '{"city": "Rome", # there\n"stars": None}',
                '"{\\"city\\": \\"Rome\\"}"',
            ),
        )
        for line in everywhere(args, hotel())
    ],
    *[
        line
        for args in (
            *('{"city": Rome}', '{"city" "Rome"}', '{"city": "Rome" "stars": 4}', '{"city": "Rome",, "stars": 4}'),
            *(
                '{"city": "Ro" + "me"}',
                '{"city": ("Rome")}',
                '{"city": "Rome", "stars": 04}',
                '{"city": "Rome", "stars": 2+2}',
            ),
            *('{"city": "Rome", "stars": ４}', '{"city": "Rome"]', '{"city": "Rome", ...}', '{"city": "\\ud800"}'),
        )
        for line in everywhere(args, None)
    ],
    (
        "text",
        'Action: web_search\nAction Input: {"q": "a\nThought: b\nAction: ping"}',
        search("a\nThought: b\nAction: ping"),
    ),
    ("text", 'Action: save_note\nAction Input: {"text": "\\d+ it\\\'s a\\_b\\n\\u00e9"}', note("\\d+ it's a_b\né")),
    (
        "text",
        'Action: save_note\nAction Input: {"text": "：，“x” &lt; {{name}}, <think>"}',
        note("：，“x” &lt; {{name}}, <think>"),
    ),
    ("text", 'Action: web_search\nAction Input: {"q": "say "hi" now"}', search('say "hi" now')),
    ("text", "Action: web_search\nAction Input: {'q': 'L'Aquila'}", search("L'Aquila")),
    ("text", 'Action: web_search\nAction Input: {"q": "say "hi", then go"}', None),
    ("text", 'Action: web_search\nAction Input: {"q": "5" pipe"}', None),
    ("text", 'Action: save_note\nAction Input: {"text": "say "hi" now"}', None),
    ("text", f"Sure!\n\n{CALL}}}\n\nI will report back.", hotel()),
    ("text", "```\n" + CALL + "\n```", hotel()),
    ("text", "> " + CALL.replace("\n", "\n> "), hotel()),
    ("text", "\ufeff" + CALL.replace("Action:", "Ac\u200btion:").replace("\n", "\r\n"), hotel()),
    ("json", f"For {{city}} I take Rome.\n{OBJECT}\nDone!", hotel()),
    ("json", json.dumps(OBJECT), hotel()),
    ("json", json.dumps(OBJECT)[1:-1], hotel()),
    ("json", f"{{{OBJECT}}}", hotel()),
    *[
        ("json", text, hotel())
        for text in (
            '{"response": {"thought": "t", "tool": "find_hotel", "args": {"city": "Rome"}}}',
            '{"tool_calls": [{"function": {"name": "find_hotel", "arguments": "{\\"city\\": \\"Rome\\"}"}}]}',
            '{"action": {"name": "find_hotel", "arguments": {"city": "Rome"}}}',
            '{"Thought": "t", "Action": "find_hotel", "Action Input": {"city": "Rome"}}',
            '{"type": "tool_use", "id": "x", "name": "find_hotel", "input": {"city": "Rome"}}',
            '{"工具": "find_hotel", "参数": {"city": "Rome"}}',
            '{"find_hotel": {"city": "Rome"}}',
            '{"tool": "find_hotel", "city": "Rome"}',
        )
    ],
    ("json", OBJECT[:-1] + ', "dry_run": true}', None),
    ("json", f'{{"rejected_action": {OBJECT}}}', None),
    ("json", '{"thought": "t", "action": "book_room", "hotel_id": "h", "reason": "r"}', None),
]
SEVEN: list[Line] = [
    ("text", CALL[:-1], hotel()),
    ("text", CALL[:-1] + "\nObservation: 3", hotel()),
    ("text", CALL[:-2], None),
    ("text", CALL[:-1] + ",", None),
    ("text", CALL[:-1] + ', "stars": 4', None),
    ("text", CALL[:-1] + ', "stars"', None),
    ("text", 'Action: save_note\nAction Input: {"text": "a"', None),
    ("text", 'Action: drop_table(table="a"', None),
    ("text", 'Action: drop_table("a', None),
    ("json", OBJECT[:-1], hotel()),
    ("json", OBJECT[:-2], hotel()),
    ("json", OBJECT[:-3], None),
    ("json", '{"thought": "t", "action": "book_room", "action_input": {"hotel_id": "h", "nights": 3}', None),
    ("fenced", FENCE[:-4], hotel()),
    ("fenced", FENCE.replace("}}", "}"), hotel()),
    ("fenced", 'Action:\n```json\n{"action": "save_note", "action_input": {"text": "a"}\n```', None),
    ("fenced", 'Action:\n```json\n{"action": "save_note", "action_input": {"text": "a"}}\n', note("a")),
    ("native", native(None, ("find_hotel", '{"city": "Rome"')), hotel()),
    ("native", native(None, ("save_note", '{"text": "Rome"')), None),
    ("native", native('<tool_call>{"name": "save_note", "arguments": {"text": "a"}}'), note("a")),
    ("native", native('<tool_call>{"name": "find_hotel", "arguments": {"city": "Ro'), None),
    ("native", native("It is", finish_reason="length"), None),
]
EIGHT: list[Line] = [
    *[
        ("text", text, hotel())
        for text in (
            f"<think>\nAction: ping\n</think>\n{CALL}",
            f"<THINKING>Action: ping</THINKING>{CALL}",
            f"[THINK]hm[/THINK]{CALL}",
            f"◁think▷hm◁/think▷{CALL}",
            f"I look it up.\n</think>\n\n{CALL}",
            f"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>{CALL}<|return|>",
        )
    ],
    ("text", f"<think>\n{CALL}", None),
    ("text", f"<think>\n{CALL}\n</think>", None),
    ("text", f"{CALL}\n<think>", None),
    ("json", '<think>{"action": "ping"}</think>' + OBJECT, hotel()),
    ("json", OBJECT.replace('"t"', '"</think>Action: ping"'), hotel()),
    ("native", native("<think>hm</think>It is 5."), "It is 5."),
    ("native", native("<think>hm"), None),
    ("native", native("<|channel|>final<|message|>It is 5.<|return|>"), "It is 5."),
]
NINE_TO_ELEVEN: list[Line] = [
    *[(dialect, "The answer is 5.", None) for dialect in DIALECTS[:-1]],
    ("text", "Thought: I will look it up. Action: ping", None),
    ("native", native("The answer is 5."), "The answer is 5."),
    ("native", native("None"), "None"),
    *[
        ("text", text, "It is 5.")
        for text in (
            *(
                "final answer: It is 5.",
                "**Final Answer:** It is 5.",
                "**Final Answer: It is 5.**",
                "## Final Answer\nIt is 5.",
            ),
            *(
                "- Final Answer: It is 5.",
                "> Final Answer: It is 5.",
                "1. **Final Answer:** It is 5.",
                "最终答案：It is 5.",
            ),
            *(
                "Answer: It is 5.<|eot_id|>",
                "Final Answer: It is 5.</s>",
                '{"thought": "t", "final_answer": "It is 5."}',
            ),
            *('Final Answer: {"answer": "It is 5."}', "Action: Finish[It is 5.]", "Action: finish('It is 5.')"),
            "Action: Final Answer\nAction Input: It is 5.",
            "```\nThought: t\nFinal Answer: It is 5.\n```",
        )
    ],
    ("text", 'Final Answer: "5"\n**b**', '"5"\n**b**'),
    ("text", "Final Answer: a\n```\nAction: b\nObservation: c\n```\nd", "a\n```\nAction: b\nObservation: c\n```\nd"),
    ("text", "Final Answer: 1. Tool: hammer\nTool: saw\nInput: 5 V", "1. Tool: hammer\nTool: saw\nInput: 5 V"),
    ("text", "Final Answer: `</s>` ends a text, <|im_end|> a turn.", "`</s>` ends a text, <|im_end|> a turn."),
    ("text", 'Thought: "Action: drop_table" is only quoted\nAction: ping', PING),
    ("json", '{"thought": "t", "answer": 42}', "42"),
    (
        "json",
        '{"thought": "t", "action": "final", "action_input": "run {\\"action\\": \\"ping\\"}"}',
        'run {"action": "ping"}',
    ),
    ("fenced", 'Action:\n```\n{"action": "final", "action_input": "```js\\nx\\n```"}\n```', "```js\nx\n```"),
]
INVOKED = '<invoke name="find_hotel">\n<parameter name="city">Rome</parameter>\n</invoke>'
BEGIN, SEP, END = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
LEAKS = (
    '<tool_call>{"name": "find_hotel", "arguments": {"city": "Rome"}}</tool_call>',
    "<tool_call>\nfind_hotel\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>",
    "<tool_call>\n<function=find_hotel>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>",
    '<function=find_hotel>{"city": "Rome"}</function>',
    f"<function_calls>\n{INVOKED}\n</function_calls>",
    f"<minimax:tool_call>\n{INVOKED}\n</minimax:tool_call>",
    (
        '<｜DSML｜function_calls><｜DSML｜invoke name="find_hotel"><｜DSML｜parameter name="city" string="true">Rome'
        "</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>"
    ),
    '[TOOL_CALLS] [{"name": "find_hotel", "arguments": {"city": "Rome"}}]',
    '[TOOL_CALLS]find_hotel[CALL_ID]abc123[ARGS]{"city": "Rome"}</s>',
    '<|python_tag|>{"name": "find_hotel", "parameters": {"city": "Rome"}}<|eom_id|>',
    '<|python_tag|>find_hotel.call(city="Rome")<|eom_id|>',
    '{"type": "function", "name": "find_hotel", "parameters": {"city": "Rome"}}',
    '<|tool_call_start|>[find_hotel(city="Rome")]<|tool_call_end|>',
    f'{BEGIN}function{SEP}find_hotel\n```json\n{{"city": "Rome"}}\n```{END}<｜tool▁calls▁end｜>',
    f'{BEGIN}find_hotel{SEP}{{"city": "Rome"}}{END}<｜tool▁calls▁end｜>',
    (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.find_hotel:0<|tool_call_argument_begin|>"
        '{"city": "Rome"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    '<|channel|>commentary to=functions.find_hotel <|constrain|>json<|message|>{"city": "Rome"}<|call|>',
    (
        "<|channel|>analysis<|message|>Hotels.<|end|><|start|>assistant<|channel|>commentary to=functions.find_hotel "
        '<|constrain|>json<|message|>{"city": "Rome"}<|call|>'
    ),
    '```tool_code\nprint(find_hotel(city="Rome"))\n```',
    "<start_function_call>call:find_hotel{city:<escape>Rome<escape>}<end_function_call>",
    '<|tool_call|>[{"name": "find_hotel", "arguments": {"city": "Rome"}}]',
    'functools[{"name": "find_hotel", "arguments": {"city": "Rome"}}]',
    '<|action_start|><|plugin|>{"name": "find_hotel", "parameters": {"city": "Rome"}}<|action_end|>',
    '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "find_hotel", "parameters": {"city": "Rome"}}]<|END_ACTION|>',
    '<TOOLCALL>[{"name": "find_hotel", "arguments": {"city": "Rome"}}]</TOOLCALL>',
    "<seed:tool_call><function=find_hotel><parameter=city>Rome</parameter></function></seed:tool_call>",
    '<|tools_prefix|>[{"find_hotel": {"city": "Rome"}}]<|tools_suffix|>',
)
TWELVE: list[Line] = [
    *[line for leak in LEAKS for line in any_text(leak, hotel())],
    *[line for leak in LEAKS for line in any_text(f"I look for hotels.\n\n{leak}", hotel())],
    *[line for leak in LEAKS for line in any_text(leak.replace("find_hotel", "fly_to"), None)],
    *[line for leak in LEAKS[:6] for line in any_text(leak + leak.replace("Rome", "Milan"), None)],
    *[line for text in ('[find_hotel(city="Rome")]', 'find_hotel(city="Rome")') for line in any_text(text, hotel())],
    ("text", "Action: find_hotel(\n  city='Rome',\n  stars=4,\n)", hotel(stars=4)),
    ("text", 'Action: find_hotel({"city": "Rome"})', hotel()),
    ("text", 'Action: find_hotel Action Input: {"city": "Rome"}', hotel()),
    ("text", 'Action: find_hotel\n{"city": "Rome"}', hotel()),
    ("text", 'Action: find_hotel\nAction Input: city="Rome", stars=4', hotel(stars=4)),
    ("text", 'Action:\n```\nfind_hotel\n```\nAction Input:\n```json\n{"city": "Rome"}\n```', hotel()),
    *[
        ("text", f"Action: {action}", search("a b"))
        for action in (
            *(
                'web_search("a b")',
                "web_search[a b]",
                "web_search['a b']",
                "web_search: a b",
                'web_search {"q": "a b"}',
            ),
            *(
                "web_search\nAction Input: a b",
                'web_search\nAction Input: "a b"',
                "web_search\nAction Input: ```\na b\n```",
            ),
        )
    ],
    *[
        ("text", f"Action: {action}", None)
        for action in (
            *("find_hotel\nAction Input: Rome", 'find_hotel("Rome", 4)', 'find_hotel("Rome")', "find_hotel[Rome]"),
            *('web_search("a" + "b")', "web_search(q=ping())", 'web_search(q="a").text', 'web_search(q="a"), ping()'),
            *('web_search(q=f"{a}")', 'x = web_search(q="a")', "web_search\nAction Input: web_search('a')"),
            *('web_search\nAction Input: "a b', 'web_search\nAction Input: "q": "a"'),
            *("web_search\nAction Input: a Observation: b", 'web_search\nAction Input: key="a"'),
        )
    ],
    ("text", "Action: sum_up\nAction Input: [1, 2]", ("sum_up", {"numbers": [1, 2]})),
    *[
        ("text", f"Action: ping{more}", PING)
        for more in ("", "()", "\nAction Input: None", "\nAction Input:", "\nPAUSE")
    ],
    ("fenced", '```python\nfind_hotel(city="Rome")\n```', hotel()),
    ("fenced", '```python\nfind_hotel(city="Rome")\nping()\n```', None),
    ("fenced", '```python\nx = find_hotel(city="Rome")\n```', None),
    ("fenced", f"```bash\nrm -r x\n```\n{FENCE}", hotel()),
    ("native", native('Sample: {"name": "Alice", "age": 30}'), 'Sample: {"name": "Alice", "age": 30}'),
    ("native", native('Use `find_hotel(city="Rome")` for it.'), 'Use `find_hotel(city="Rome")` for it.'),
    ("native", native('So:\n{"name": "drop_table", "arguments": {"table": "a"}}\nBut ask first.'), None),
    ("native", native("Action: restart the router"), "Action: restart the router"),
    ("native", native(f"I look.\n{CALL}"), hotel()),
]
THIRTEEN: list[Line] = [
    *[line for text in ("", "  \n", "```json\n```", "<think>a</think>") for line in any_text(text, None)],
    *[
        ("text", text, None)
        for text in (
            *(
                "Thought:",
                "Action:",
                "Final Answer:",
                "Final Answer: <answer>",
                "Final Answer: ...",
                "Final Answer: None",
            ),
            *("Action: None\nAction Input: None", "Action: N/A", "Thought: t\nAction: <tool>\nAction Input: <input>"),
            *("Action: web_search\nAction Input: the input to the action", "Action: web_search\nAction Input: {query}"),
            *('Action: web_search\nAction Input: {"q": "<q>"}', 'Action: web_search\nAction Input: {"q": "{{q}}"}'),
            "Final Answer: the final answer to the original input question",
            "Action: the action to take, should be one of [ping, web_search]\nAction Input: the input to the action",
        )
    ],
    *[
        ("json", text, None)
        for text in (
            *(
                "{}",
                "[]",
                '{"thought": "t"}',
                '{"action": "", "action_input": {}}',
                '{"action": null, "action_input": null}',
            ),
            *('{"action": "final", "action_input": ""}', '{"action": "<name of one tool>", "action_input": {}}'),
        )
    ],
    *[
        ("native", text, None)
        for text in ("no json", "[]", '{"index": 0}', '{"message": {"tool_calls": [{"function": {}}]}}')
    ],
]
RULES = {
    "rule 2, invented turns": TWO,
    "rule 3, two decisions": THREE,
    "rule 4, names": FOUR,
    "rule 5, arguments": FIVE,
    "rule 6, syntax": SIX,
    "rule 7, cut replies": SEVEN,
    "rule 8, thinking": EIGHT,
    "rules 9 to 11, answers": NINE_TO_ELEVEN,
    "rule 12, notations": TWELVE,
    "rule 13, nothing there": THIRTEEN,
}


LINES = [
    pytest.param(*line, id=f"{rule}, {number}") for rule, lines in RULES.items() for number, line in enumerate(lines)
]


@pytest.mark.parametrize(("dialect", "output", "expected"), LINES)
def test_the_rules_of_reading(dialect: str, output: str, expected: Expected) -> None:
    got = read_reply(dialect, TOOLS, output, "stop")
    decided = (got.tool, got.args) if got.kind == "action" else got.answer
    assert decided == expected, got
    assert (got.kind == "reject") == (got.problem is not None)
