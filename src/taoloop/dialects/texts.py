"""The texts of this package in English and Chinese, and the errors of the parsers, which carry such a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from taoloop.core.decision import Problem, excerpt
from taoloop.core.text import TextCatalog

TEXTS = TextCatalog(
    en={
        # the reply as a whole
        "empty": "The reply is empty.",
        "empty_reply": "(empty reply)",
        "truncated": "The reply was cut ({finish_reason!r}); none of it was used. Answer shorter.",
        "open_thinking": "The thinking block was never closed, so there is no decision.",
        "not_text": "The reply contains characters that are not text.",
        "no_decision": "The reply has neither an action nor a final answer: {text!r}.",
        "too_many_parts": "The reply has more than {count:,} parts; give one decision.",
        "usable": " Usable before it: {parts}.",
        "thought_and": "{first} and {second}",
        "thought_part": "the thought",
        "call_part": "the call of {tool!r}",
        "answer_part": "the final answer",
        "action_part": "the action {action!r}",
        # the outcome of a call
        "status_ok": "ok",
        "status_failed": "failed",
        "status_in_doubt": "in doubt",
        "failure_message": "message: {text}",
        "failure_retryable": "retryable: true",
        "failure_final": "retryable: false",
        "failure_hint": "hint: {text}",
        "failure_output": "output: {text}",
        # the card of a tool
        "card_use_when": "Use when: {text}",
        "card_avoid_when": "Do not use when: {text}",
        "card_errors": "Errors: {text}",
        "card_examples": "Examples: {text}",
        "card_separator": "; ",
        "card_retryable": " (retryable)",
        "card_advice": ": {text}",
        "card_note": " ({text})",
        # the kind of answer that a reader of observations is asked for
        "expected_text": "a text",
        "expected_number": "a number",
        "expected_date": 'a date as a text such as "2026-01-31"',
        "expected_email": "one e-mail address as a text",
        "expected_yes_no": "true for yes, false for no",
        "expected_choice": "one of these texts, word for word: {choices}",
        # more than one decision
        "two_actions": "Two different actions in one reply, {first!r} and {second!r}; nothing was run. "
        "Give exactly one decision.",
        "two_answers": "Two different final answers in one reply. Give exactly one decision.",
        "action_and_answer": "An action and a final answer in one reply, before the observation was seen; "
        "nothing was run. Give exactly one decision.",
        "labels_in_block": "Labels in a code block, and others behind it.",
        "text_beside_call": "The text beside the tool call holds another decision; nothing was run.",
        "refusal_beside": "The reply holds a refusal beside something else.",
        # what only the runtime may write
        "invented_result": "You wrote the result {text!r} yourself; only the runtime writes observations.",
        "invented_turn": "The reply continues with an observation or a turn that you wrote yourself. "
        "Only the runtime writes observations: stop after the action.",
        "answer_on_invention": "You wrote the observation yourself and then a final answer on it; nothing was run. "
        "Stop after the action and wait for the real observation.",
        "foreign_words": "Somebody else speaks before the call of {tool!r}{quoted}; nothing was run. "
        "Give only the thought and the action.",
        "quoted_words": " ({words!r})",
        # text in a place where none belongs
        "text_after_decision": "{text!r} follows the decision without a label of its own.",
        "text_after_action": "The line {text!r} follows the action {tool!r} without a label.",
        "label_in_input": "The input of {tool!r} has a label inside it: {text!r}.",
        "unclear_turn": "It is not clear whether {text!r} belongs to the answer.",
        "unknown_part": "The reply has a part of the kind {kind!r}; nothing was run.",
        "unknown_keys": "The JSON object has keys that do not belong there: {keys}. "
        "Give the thought, the action and its input, or the final answer.",
        # actions and their input
        "no_tool_named": "The action {action!r} names no tool.",
        "no_tool_name": "This is not a tool name: {name!r}.",
        "unclear_keys": "It is not clear which keys are arguments of {tool!r}.",
        "input_without_action": "An input without an action: {text!r}.",
        "no_input": "The action {tool!r} has no input; it needs {parameters}.",
        "empty_input": "The action {action!r} has an empty input.",
        "input_several_readings": "The input of {tool!r} has more than one reading: {text!r}.",
        "input_not_closed": "The input of {tool!r} is not closed.",
        "input_is_call": "The input of {tool!r} is another call: {text!r}.",
        "program": "A program is not a tool call; nothing was run.",
        "placeholder": "The call of {tool!r} has the placeholder {text!r} where a value must be.",
        "call_in_text": "The call of {tool!r} is written in the text; use the tool call of the API.",
        "leaked_call_incomplete": "The reply begins a tool call that names no tool, or is not complete.",
        "leaked_call_unusable": "The call in the text cannot be used: {error}.",
        # arguments that are not JSON
        "object_not_json": "The JSON object is not valid JSON: {error}.",
        "input_not_json": "The input of {tool!r} is not valid JSON: {error}.",
        "arguments_in_text": "The arguments in {text!r} cannot be read: {error}.",
        "arguments_incomplete": "The arguments of {tool!r} are not complete, or their quotes are not escaped; "
        "nothing was run.",
        "input_no_object": "The input {text!r} of {tool!r} is not a JSON object.",
        # final answers
        "empty_answer": "The final answer is empty. Give the answer, or say what is missing.",
        "placeholder_answer": "The final answer is only {text!r}. Give the answer, or say what is missing.",
        "open_code_block": "The code block in the final answer is never closed.",
        "answer_unreadable": "The final answer cannot be read: {error}.",
        # why a text is not JSON
        "json_truncated": "it stops in the middle",
        "json_syntax": "{error} at character {position}",
        "json_text_follows": "text follows the value at character {position}",
        "json_too_deep": "it is nested deeper than {levels} levels",
        "json_unstorable": "it holds a value that cannot be kept ({error})",
        "json_duplicate_key": "the key {key!r} appears twice with different values",
        "json_number_too_large": "the number {number} is too large",
        "json_bare_quotes": "a string holds quotes that are not escaped",
        "json_half_surrogate": "it holds half of a surrogate pair",
        "json_escape": "{escape!r} is not an escape of JSON",
        "json_at": "{fault} at character {position}",
        "json_no_colon": "a colon is missing",
        "json_no_comma": "a comma or a bracket is missing",
        "json_no_key": "a key is missing",
        "json_cut_value": "the value may be cut",
        "json_no_value": "a value is missing",
        "json_word": "{word} is not a JSON value",
        "call_no_end": "its end, or the names of its arguments, are missing",
    },
    zh={
        "empty": "回复为空。",
        "empty_reply": "（空回复）",
        "truncated": "回复被截断（{finish_reason}），其中的内容均未采用。请缩短回复。",
        "open_thinking": "思考块没有结束标记，因此没有得到任何决定。",
        "not_text": "回复中含有无法作为文本的字符。",
        "no_decision": "回复中既没有行动，也没有最终答案：{text!r}。",
        "too_many_parts": "回复超过 {count:,} 个部分，请只给出一个决定。",
        "usable": "此前可用的部分：{parts}。",
        "thought_and": "{first}和{second}",
        "thought_part": "思考",
        "call_part": "对“{tool}”的调用",
        "answer_part": "最终答案",
        "action_part": "行动“{action}”",
        "status_ok": "成功",
        "status_failed": "失败",
        "status_in_doubt": "结果未知",
        "failure_message": "说明：{text}",
        "failure_retryable": "可重试：是",
        "failure_final": "可重试：否",
        "failure_hint": "建议：{text}",
        "failure_output": "输出：{text}",
        "card_use_when": "适用场景：{text}",
        "card_avoid_when": "不适用场景：{text}",
        "card_errors": "可能的错误：{text}",
        "card_examples": "示例：{text}",
        "card_separator": "；",
        "card_retryable": "（可重试）",
        "card_advice": "：{text}",
        "card_note": "（{text}）",
        "expected_text": "一段文本",
        "expected_number": "一个数字",
        "expected_date": '一个日期文本，例如 "2026-01-31"',
        "expected_email": "一个电子邮件地址（文本）",
        "expected_yes_no": "是为 true，否为 false",
        "expected_choice": "下列文本之一，逐字照抄：{choices}",
        "two_actions": "一次回复中有两个不同的行动：“{first}”和“{second}”，均未执行。请只给出一个决定。",
        "two_answers": "一次回复中有两个不同的最终答案。请只给出一个决定。",
        "action_and_answer": "一次回复中同时有行动和最终答案，而此时还没有观察结果；未执行任何操作。请只给出一个决定。",
        "labels_in_block": "代码块内有标签，代码块之后又有其他标签。",
        "text_beside_call": "工具调用之外的文本中还有另一个决定；未执行任何操作。",
        "refusal_beside": "回复中除了拒绝之外还有其他内容。",
        "invented_result": "{text!r} 是你自己编写的结果；观察结果只能由运行环境写入。",
        "invented_turn": "回复中出现了你自己编写的观察结果或对话轮次。观察结果只能由运行环境写入：写完行动后请停止。",
        "answer_on_invention": "你自己编写了观察结果，并据此给出最终答案；未执行任何操作。"
        "写完行动后请停止，等待真正的观察结果。",
        "foreign_words": "在对“{tool}”的调用之前出现了他人的话{quoted}；未执行任何操作。请只给出思考和行动。",
        "quoted_words": "（{words!r}）",
        "text_after_decision": "决定之后还有不该出现的内容 {text!r}。",
        "text_after_action": "行动“{tool}”之后有不带标签的一行 {text!r}。",
        "label_in_input": "“{tool}”的输入中含有标签：{text!r}。",
        "unclear_turn": "无法确定 {text!r} 是否属于答案。",
        "unknown_part": "回复中有类型为“{kind}”的部分；未执行任何操作。",
        "unknown_keys": "JSON 对象中有不该出现的键：{keys}。请给出思考、行动及其输入，或给出最终答案。",
        "no_tool_named": "行动 {action!r} 没有指定工具。",
        "no_tool_name": "这不是工具名：{name!r}。",
        "unclear_keys": "无法确定哪些键是“{tool}”的参数。",
        "input_without_action": "有输入但没有行动：{text!r}。",
        "no_input": "行动“{tool}”没有输入，它需要 {parameters}。",
        "empty_input": "行动 {action!r} 的输入为空。",
        "input_several_readings": "“{tool}”的输入有不止一种理解：{text!r}。",
        "input_not_closed": "“{tool}”的输入没有闭合。",
        "input_is_call": "“{tool}”的输入是另一个调用：{text!r}。",
        "program": "程序代码不是工具调用；未执行任何操作。",
        "placeholder": "对“{tool}”的调用中，应填值的位置仍是占位符 {text!r}。",
        "call_in_text": "对“{tool}”的调用写在了文本里；请使用 API 的工具调用功能。",
        "leaked_call_incomplete": "回复开始了一个工具调用，但没有指定工具，或调用不完整。",
        "leaked_call_unusable": "文本中的调用无法使用：{error}。",
        "object_not_json": "该对象不是合法的 JSON：{error}。",
        "input_not_json": "“{tool}”的输入不是合法的 JSON：{error}。",
        "arguments_in_text": "{text!r} 中的参数无法解析：{error}。",
        "arguments_incomplete": "“{tool}”的参数不完整，或其中的引号没有转义；未执行任何操作。",
        "input_no_object": "“{tool}”的输入 {text!r} 不是 JSON 对象。",
        "empty_answer": "最终答案为空。请给出答案，或说明缺少什么。",
        "placeholder_answer": "最终答案只有 {text!r}。请给出答案，或说明缺少什么。",
        "open_code_block": "最终答案中的代码块没有闭合。",
        "answer_unreadable": "最终答案无法解析：{error}。",
        "json_truncated": "内容中途中断",
        "json_syntax": "第 {position} 个字符处有语法错误",
        "json_text_follows": "值之后还有其他文本（第 {position} 个字符处）",
        "json_too_deep": "嵌套超过 {levels} 层",
        "json_unstorable": "含有无法保存的值（{error}）",
        "json_duplicate_key": "键“{key}”出现了两次且值不同",
        "json_number_too_large": "数字 {number} 过大",
        "json_bare_quotes": "字符串中有未转义的引号",
        "json_half_surrogate": "含有不完整的代理对",
        "json_escape": "{escape!r} 不是 JSON 的转义序列",
        "json_at": "第 {position} 个字符处{fault}",
        "json_no_colon": "缺少冒号",
        "json_no_comma": "缺少逗号或括号",
        "json_no_key": "缺少键",
        "json_cut_value": "的值可能被截断",
        "json_no_value": "缺少值",
        "json_word": "出现了 {word}，它不是 JSON 值",
        "call_no_end": "缺少结尾，或参数没有写明名称",
    },
)
"""`TEXTS.text(language, name, **values)`. What begins with `json_` or `call_` completes another text."""


@dataclass(frozen=True, slots=True)
class LocalizedText:
    """A text of the catalogue with its values, written out once the language is known."""

    name: str
    """The name of the text in `taoloop.dialects.texts`."""
    values: Mapping[str, object] = field(default_factory=dict)
    """What is filled in; a value may be such a text itself. `usable` is added at the end, if there is one."""

    def render(self, language: str) -> str:
        """The text in a language; in English where the language is not known."""
        values = {
            name: value.render(language) if isinstance(value, LocalizedText) else value
            for name, value in self.values.items()
        }
        return TEXTS.text(language, self.name, **values) + str(values.get("usable", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyProblem(Problem):
    """A problem that a parser of this package found; its `message` is the English one."""

    text: LocalizedText = field(compare=False, repr=False)
    """What `message` was rendered from."""


def problem_message(problem: Problem, language: str) -> str:
    """The message of a problem in the language of the run, where it has one; else as it is."""
    if language != "en" and isinstance(problem, ReplyProblem):
        return problem.text.render(language)
    return problem.message


class ReplyParseError(Exception):
    """A reply cannot be read as one decision. Internal to the parsers: `Dialect.read` returns the `problem`.

    Args:
        code: The stable code of the problem, one of those that `Problem` lists.
        name: The name of the message in the catalogue.
        part: The unusable part of the reply, which the problem quotes.
        values: What is filled into the message.
    """

    def __init__(self, code: str, name: str, part: str = "", /, **values: object) -> None:
        self.code, self.part = code, part
        self.text = LocalizedText(name, values)
        super().__init__(code, name)

    def __str__(self) -> str:
        return self.text.render("en")

    @property
    def problem(self) -> ReplyProblem:
        """The error as what `Dialect.read` returns."""
        return ReplyProblem(code=self.code, message=self.text.render("en"), excerpt=excerpt(self.part), text=self.text)
