"""What tools report to the model of a run: arguments and results that do not fit, and the built-in tools' errors."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from taoloop.core.text import RUN_LANGUAGE, TextCatalog
from taoloop.errors import ToolError


class ToolTexts(TextCatalog):
    """A catalogue of errors: beside the text `NAME` the text `NAME_hint` says what to do next, where there is one."""

    def error(
        self,
        name: str,
        code: str = "",
        /,
        *,
        error_type: type[ToolError] = ToolError,
        retryable: bool | None = None,
        hint: str | None = None,
        **values: object,
    ) -> ToolError:
        """The error with the text `name`, in the language of the current run.

        Args:
            name: The text; its hint has the same values.
            code: The code of the error; empty: that of `error_type`.
            error_type: The class of the error.
            retryable: Whether the same call may succeed later; None: as `error_type` has it.
            hint: What to do next; None: the text `NAME_hint`.
            values: What is filled in.
        """
        if hint is None:
            hint = self.run_text(f"{name}_hint", **values) if f"{name}_hint" in self else ""
        return error_type(self.run_text(name, **values), code=code, retryable=retryable, hint=hint)


class CardTexts:
    """Texts of one card that are made from a catalogue: in English, with their Chinese form beside them.

    A value that is a function of the language is called with it.
    """

    def __init__(self, texts: TextCatalog) -> None:
        self._texts = texts
        self.chinese: dict[str, str] = {}

    def __call__(self, name: str, /, **values: Any) -> str:
        """The text `name` in English."""
        english, chinese = (
            self._texts.text(
                language, name, **{key: value(language) if callable(value) else value for key, value in values.items()}
            )
            for language in ("en", "zh")
        )
        self.chinese[english] = chinese
        return english


@cache
def builtin_card_texts() -> Mapping[str, str]:
    """The Chinese form of the texts on the cards of the built-in tools, by their English form."""
    from importlib.resources import files  # noqa: PLC0415  # heavy, and only the built-in tools need it

    texts: dict[str, str] = json.loads(files("taoloop.tools.builtin").joinpath("chinese.json").read_text("utf-8"))
    return texts


def schema_problem(keyword: str, value: object, message: str) -> str:
    """What a value that a JSON Schema refuses is to be, in the language of the run.

    Args:
        keyword: The keyword of the schema that refuses it.
        value: What the schema has for the keyword.
        message: The validator's own words, which an English run shows.
    """
    if RUN_LANGUAGE.get() != "zh":
        return message
    shown = "、".join(map(str, value)) if isinstance(value, list) else str(value)
    return _SCHEMA_ZH.get(keyword, "不符合 Schema 的 {keyword} 要求").format(value=shown[:200], keyword=keyword)


def argument_problem(kind: str, context: Mapping[str, Any], message: str) -> str:
    """What is wrong with an argument, in the language of the run.

    Args:
        kind: The type of pydantic's error.
        context: The values of the error.
        message: pydantic's own words, which an English run shows.
    """
    if RUN_LANGUAGE.get() != "zh":
        return message[:1].lower() + message[1:]
    text = next((text for start, text in _PYDANTIC_ZH.items() if kind.startswith(start)), "不符合要求（{kind}）")
    expected = str(context.get("expected", "")).replace(", ", "、").replace(" or ", "、")
    return text.format_map({"kind": kind, **context, "expected": expected})


def system_reason(error: OSError) -> str:
    """Why the system refused something: in its own words, or for a usual error in those of a Chinese run."""
    name = errno.errorcode.get(error.errno or 0, "")
    if RUN_LANGUAGE.get() == "zh" and name in TEXTS:
        return TEXTS.run_text(name)
    return error.strerror or str(error)


_SCHEMA_ZH = {
    "type": "应为 {value} 类型",
    "enum": "应为其中之一：{value}",
    "const": "应为 {value}",
    "required": "缺少 {value!r}",
    "additionalProperties": "未知的参数 {value!r}",
    "minLength": "至少要有 {value} 个字符",
    "maxLength": "最多 {value} 个字符",
    "minItems": "至少要有 {value} 项",
    "maxItems": "最多 {value} 项",
    "minimum": "不能小于 {value}",
    "maximum": "不能大于 {value}",
    "exclusiveMinimum": "必须大于 {value}",
    "exclusiveMaximum": "必须小于 {value}",
    "multipleOf": "应为 {value} 的倍数",
    "pattern": "不匹配正则表达式 {value}",
    "format": "不是有效的 {value}",
    "uniqueItems": "有重复的项",
    "anyOf": "不符合任何一种允许的形式",
    "oneOfNotValid": "不符合任何一种允许的形式",
}
_PYDANTIC_ZH = {
    "string_too_short": "至少要有 {min_length} 个字符",
    "string_too_long": "最多 {max_length} 个字符",
    "string_pattern": "不匹配正则表达式 {pattern}",
    "string": "应为文本",
    "int": "应为整数",
    "float": "应为数字",
    "bool": "应为 true 或 false",
    "list": "应为列表",
    "dict": "应为对象",
    "typed_dict": "应为对象",
    "model": "应为对象",
    "literal": "应为其中之一：{expected}",
    "enum": "应为其中之一：{expected}",
    "greater_than_equal": "不能小于 {ge}",
    "greater_than": "必须大于 {gt}",
    "less_than_equal": "不能大于 {le}",
    "less_than": "必须小于 {lt}",
    "too_short": "至少要有 {min_length} 项",
    "too_long": "最多 {max_length} 项",
    "none": "应为 null",
    "date": "应为日期或时间",
    "time": "应为时间",
}

TEXTS = ToolTexts(
    en={
        # arguments and results of any tool
        "arguments": "The arguments of {tool!r} do not fit: {problems}.",
        "arguments_object": "The arguments of {tool!r} must be a JSON object, not {kind}.",
        "arguments_not_json": "The arguments of {tool!r} are not JSON: {reason}.",
        "arguments_large": "The arguments of {tool!r} are {size:,} bytes; it takes at most {limit:,}.",
        "arguments_large_hint": "Send less, or in parts.",
        "expected": "Expected: {form}",
        "optional": " (optional)",
        "or": " or ",
        "str": "a text",
        "list": "a list",
        "bool": "a boolean",
        "int": "a number",
        "float": "a number",
        "NoneType": "null",
        "missing": "{name!r} is missing",
        "unknown": "{name!r} is not a known argument",
        "problem": "{name!r}: {problem}",
        "whole": "the whole",
        "separator": "; ",
        "more": "and more",
        "more_of": "and {count} more",
        "result": "{tool!r} ran, but its result does not fit what it declares: {problems}.",
        "result_generator": "{tool!r} returned {kind!r}, which gives its values one by one; none was taken.",
        "result_generator_hint": "The tool itself must be changed to return a list; the same call will not do better.",
        "result_not_json": "{tool!r} ran, but its result of the type {kind!r} cannot be written as JSON: {reason}.",
        "carried_out": "The call was carried out; do not repeat it only because of this.",
        "no_thread": "The call was not started: {reason}.",
        # find_tool, describe_tool, call_tool
        "no_tool_found": "No tool fits. There are: {names}{more}.",
        "more_names": " and {count} more",
        "no_such_tool": "There is no tool called {name!r}.",
        "near": "Near: {names}.",
        "not_so": "{name!r} cannot be called so.",
        "not_so_hint": "Give `name` and `args` of one tool.",
        "no_such_argument": "{argument!r} leads nowhere at {step!r}.",
        "no_such_argument_hint": "There is: {names}.",
        "nothing": "nothing",
        # calculator
        "form_hint": "Use numbers, + - * / ** and parentheses only, such as (2 + 3) * 4.",
        "in_parts_hint": "Compute it in parts.",
        "empty_expression": "The expression is empty.",
        "long_expression": "The expression has {size:,} characters; at most {limit:,} are taken.",
        "deep_expression": "The expression is nested too deeply.",
        "no_expression": "{text!r} is not an arithmetic expression: {reason}.",
        "not_allowed": "The expression contains {part}, which is not allowed.",
        "constant": "the constant {value}",
        "constant_hint": "Only numbers are taken; True, False and None are none.",
        "call": "a function call",
        "call_hint": "Write the arithmetic itself; a square root is x ** 0.5.",
        "name": "a name",
        "name_hint": "Put in the value of the name.",
        "comma": "a comma",
        "comma_hint": "Write 1000, not 1,000, and one expression at a time.",
        "caret": "'^'",
        "caret_hint": "Write ** for a power.",
        "remainder": "a remainder ('%')",
        "quotient": "a whole quotient ('//')",
        "quotient_hint": "Divide with / instead.",
        "bits": "a bit operation",
        "logic": "a comparison or logic",
        "text": "a text",
        "word": "a word",
        "syntax": "a {kind}",
        "division_by_zero": "Division by zero: {first} {operator} {second} has no value.",
        "division_by_zero_hint": "Change the divisor.",
        "short_number": "{start}…({size} characters)",
        "complex_result": "The result is a complex number, which this calculator does not give.",
        "complex_result_hint": "A negative number has no real root; change the expression.",
        "large_result": "{part} is too large: integers may have {bits:,} bits, other numbers must stay below 1.8e308.",
        "large_result_hint": "Use smaller numbers or exponents.",
        "product": "The product",
        "power": "The power",
        "value": "A result",
        # time_now
        "unknown_zone": "There is no IANA time zone {zone}.",
        "unknown_zone_hint": "Use an IANA name such as Asia/Shanghai or Europe/Paris.",
        "did_you_mean": "Did you mean {names}?",
        # lookup
        "missing_key": "There is no key {key} in the table.",
        "near_keys": "Near keys: {names}.",
        "no_near_key": "No key resembles it.",
        "long_key": "{start!r}… ({size:,} characters)",
        "table_line": "Line {line}: {problem}.",
        "table_deep": "It is nested too deeply.",
        "table_alias": "YAML aliases (*name) are not taken.",
        "table_scalar": "It has no keys: its top is a plain value.",
        "table_hint": "It must be a JSON or YAML mapping.",
        # observations
        "no_reader": "There is nobody to read: this tool works inside a run only.",
        "unknown_artifact": "There is no artifact {name!r} in this run.",
        "unknown_artifact_hint": "Use the name that the cut observation gave.",
        "out_of_range": "The text ends before position {start:,}: it has {size:,} characters.",
        "out_of_range_hint": "Start at a smaller position.",
        "page": "[characters {start:,} to {end:,} of {size:,}; {after}]",
        "next_page": "next: start={end}",
        "last_page": "this is the end",
        "match": "at {start:,}: {context}",
        "matches": "[{count:,} matches of {text!r} from {start:,} of {size:,} characters{note}]",
        "matches_cut": ", the first {count} shown",
        "not_json": "This output is not JSON.",
        "not_json_hint": "Leave the pointer away.",
        "bad_pointer": "{reason}",
        # files
        "wrote": "Wrote {size:,} bytes to {path}; {previous}.",
        "previous_kept": "the previous version ({size:,} bytes) is kept as backup {backup}",
        "no_previous": "there was no previous version",
        "restored": "Restored {path}: the previous version is back.",
        "removed": "Restored {path}: it did not exist before and is gone.",
        "path_refused": "The path {path} is refused: {reason}.",
        "path_refused_hint": "Give a path inside the workspace, such as notes/a.txt.",
        "path_empty": "it is empty",
        "path_nul": "it contains a NUL character",
        "path_absolute": "it is not relative to the workspace",
        "path_backslash": "it contains a backslash",
        "path_backslash_hint": "Write '/' between folder and file.",
        "path_encoding": "it is not valid text",
        "path_long": "it is too long",
        "path_long_hint": "A name may have 255 bytes, a path 1,024.",
        "path_parent": "'..' could leave the workspace",
        "path_deep": "it is more than {limit} folders deep",
        "path_reserved": "'{name}' belongs to the runtime",
        "path_database": "database files are not opened as files",
        "path_root": "it names the workspace itself",
        "path_control": "a new name must not contain line breaks or control characters",
        "no_workspace": "This run has no workspace, so there are no files to work on.",
        "no_workspace_hint": "The user can give one, for example with --workspace DIR.",
        "file_large": "The file {path!r} has {size:,} bytes; at most {limit:,} are read.",
        "file_large_hint": "Find the part that matters with search_files.",
        "file_not_text": "The file {path!r} is not UTF-8 text.",
        "file_not_text_hint": "Only text files are read.",
        "content_not_text": "The content is not valid text (lone surrogates).",
        "content_large": "The content has {size:,} bytes; at most {limit:,} are written.",
        "content_large_hint": "Write it as several files.",
        "no_backup": "There is no backup {backup!r} of {path!r}.",
        "changed_since": "{path!r} was changed after the write that {backup!r} belongs to; it was not restored.",
        "changed_since_hint": "Read the file and write what it should contain.",
        "key_reused": "The key {key!r} belongs to another change, of {path!r}.",
        "bad_record": "The record of the backup {name!r} cannot be read.",
        "backup_large": "The file has {size:,} bytes; what is larger than {limit:,} cannot be kept, "
        "so it is not overwritten.",
        "backup_large_hint": "Write to another name.",
        "bad_pattern": "The pattern is empty or too complicated.",
        "bad_pattern_hint": "Use a pattern such as *.txt or **/*.py.",
        "bad_text": "The text to search is empty or has several lines.",
        "file_failed": "{path!r} cannot be used: {reason}.",
        "near_names": "Near names: {names}.",
        "ENOENT": "there is no such file or folder",
        "ENOENT_hint": "List the files with list_files.",
        "ENOTDIR": "a part of it is a file, not a folder",
        "ENOTDIR_hint": "List the files with list_files.",
        "EISDIR": "it is a folder",
        "EISDIR_hint": "Give the path of a file.",
        "ENXIO": "it is not a regular file",
        "ENXIO_hint": "Only regular files are opened.",
        "ELOOP": "it leads through a symbolic link",
        "ELOOP_hint": "Use the real path inside the workspace.",
        "EXDEV": "it leads out of the workspace",
        "EXDEV_hint": "Use a path inside the workspace.",
        "EMLINK": "the file has hard links",
        "EMLINK_hint": "Copy the file to another name.",
        "EACCES": "the system denies access",
        "EACCES_hint": "Use another place.",
        "EROFS": "the file system is read-only",
        "EROFS_hint": "Use another place.",
        "ENOSPC": "no space is left on the device",
        "ENOSPC_hint": "Stop writing and tell the user.",
        "EDQUOT": "the disk quota is used up",
        "EDQUOT_hint": "Stop writing and tell the user.",
        "EFBIG": "the file would be larger than the system permits",
        "EFBIG_hint": "Write less.",
        # run_python and run_command
        "run_python": "Run one Python 3 program in a sandbox.",
        "run_command": "Run one shell script with the machine's programs in a sandbox.",
        "sandbox_card": "{does} {network} and can change {folder}. At most {limits.wall_s:g} s, {megabytes:,} MB of "
        "memory, {limits.processes} processes; nothing runs on after the call, and there is no input.",
        "network": "It has the machine's network",
        "no_network": "It has no network",
        "empty_folder": "only an empty folder that is gone afterwards",
        "workspace_folder": "the files of the workspace, which is its current folder",
        "limit_time": "time: it was ended after {limits.wall_s:g} s",
        "limit_cpu": "cpu: it was ended after {limits.cpu_s:g} s of processor time",
        "limit_memory": "memory: it was ended because it used more than {limits.memory_bytes:,} bytes",
        "limit_processes": "processes: it was ended because it had more than {limits.processes} processes and threads",
        "limit_output": "output: it was ended because it printed more than {limits.flow_bytes:,} bytes",
        "limit_disk": "disk: it was ended because it wrote more than {limits.disk_bytes:,} bytes "
        "or {limits.files:,} files",
        "limit_file_size": "file_size: it was ended because a file became larger than {limits.file_bytes:,} bytes",
        "left_out": "[… {count:,} bytes left out …]",
        "no_sandbox": "There is no sandbox on this machine: {reason}",
        "no_sandbox_hint": "Install bubblewrap 0.8 or newer (Debian, Ubuntu: apt install bubblewrap; Fedora: "
        "dnf install bubblewrap) on a Linux that permits user namespaces.",
        "sentence": "{text}.",
        "needs_linux": "commands run only inside bubblewrap, which needs Linux",
        "no_bubblewrap": "bubblewrap is not installed (there is no {program} in PATH)",
        "true_failed": "`true` in the sandbox did not succeed: {reason}",
        "sandbox_failed": "The sandbox failed: {reason}.",
        "sandbox_failed_hint": "Tell the user; `tao doctor` says what the sandbox needs.",
        "no_word": "bubblewrap ended without a word",
        "not_killed": "its processes were killed and do not end",
        "not_started": "{program} cannot be started: {reason}",
        "script_surrogates": "The program is no valid text (lone surrogates).",
        "script_empty": "The program is empty.",
        "script_nul": "The program contains a NUL character.",
        "script_long": "The program is too long.",
        "script_hint": "Send one whole program.",
        "reserved_failed": "{name!r} cannot be made: {reason}.",
        "reserved_no_folder": "{name!r} in the workspace is no folder.",
        "reserved_no_folder_hint": "Tell the user.",
        # remember and recall
        "no_memory": "This run has no memory, so nothing can be kept beyond it.",
        "no_memory_hint": "The user can give one, for example with --memory FILE.",
        "kept": "kept as note {number}",
        "memory_full": "{path} holds {count:,} notes; it takes no more.",
        "memory_unusable": "{path}: the notes cannot be used: {reason}.",
        "no_fts5": "This Python's SQLite has no full-text search (FTS5); another build has it.",
        "memory_newer": "{path} was written by a newer taoloop; it was not touched.",
        "memory_other": "{path} is another kind of database.",
        "memory_other_hint": "Name a new file.",
    },
    zh={
        "arguments": "{tool!r} 的参数不符合要求：{problems}。",
        "arguments_object": "{tool!r} 的参数应为 JSON 对象，而不是{kind}。",
        "arguments_not_json": "{tool!r} 的参数不是 JSON：{reason}。",
        "arguments_large": "{tool!r} 的参数有 {size:,} 字节，最多允许 {limit:,} 字节。",
        "arguments_large_hint": "请减少内容，或分几次发送。",
        "expected": "应为：{form}",
        "optional": "（可选）",
        "or": " 或 ",
        "str": "文本",
        "list": "列表",
        "bool": "布尔值",
        "int": "数字",
        "float": "数字",
        "NoneType": " null",
        "missing": "缺少 {name!r}",
        "unknown": "未知的参数 {name!r}",
        "problem": "{name!r}：{problem}",
        "whole": "整个值",
        "separator": "；",
        "more": "还有其他问题",
        "more_of": "另有 {count} 处",
        "result": "{tool!r} 已执行，但结果不符合其声明：{problems}。",
        "result_generator": "{tool!r} 返回了 {kind!r}，它逐个产生值；没有读取任何值。",
        "result_generator_hint": "必须修改工具本身，使其返回列表；重复调用没有用。",
        "result_not_json": "{tool!r} 已执行，但类型为 {kind!r} 的结果无法写成 JSON：{reason}。",
        "carried_out": "调用已经执行；不要仅因为这个问题而重复调用。",
        "no_thread": "调用没有开始：{reason}。",
        "no_tool_found": "没有合适的工具。可用的工具：{names}{more}。",
        "more_names": " 等，另有 {count} 个",
        "no_such_tool": "没有名为 {name!r} 的工具。",
        "near": "相近的名称：{names}。",
        "not_so": "不能这样调用 {name!r}。",
        "not_so_hint": "请给出一个工具的 `name` 和 `args`。",
        "no_such_argument": "{argument!r} 在 {step!r} 处无效。",
        "no_such_argument_hint": "此处有：{names}。",
        "nothing": "无",
        "form_hint": "只能使用数字、+ - * / ** 和括号，例如 (2 + 3) * 4。",
        "in_parts_hint": "请分步计算。",
        "empty_expression": "表达式为空。",
        "long_expression": "表达式有 {size:,} 个字符，最多允许 {limit:,} 个。",
        "deep_expression": "表达式嵌套过深。",
        "no_expression": "{text!r} 不是算术表达式：{reason}。",
        "not_allowed": "表达式中含有{part}，不允许使用。",
        "constant": "常量 {value}",
        "constant_hint": "只接受数字；True、False 和 None 不是数字。",
        "call": "函数调用",
        "call_hint": "请直接写算式；平方根写作 x ** 0.5。",
        "name": "变量名",
        "name_hint": "请填入该变量的值。",
        "comma": "逗号",
        "comma_hint": "请写 1000，不要写 1,000；一次只写一个表达式。",
        "caret": " '^'",
        "caret_hint": "乘方请写 **。",
        "remainder": "取余（'%'）",
        "quotient": "整除（'//'）",
        "quotient_hint": "请改用 / 相除。",
        "bits": "位运算",
        "logic": "比较或逻辑运算",
        "text": "文本",
        "word": "单词",
        "syntax": "语法成分 {kind}",
        "division_by_zero": "除数为零：{first} {operator} {second} 没有值。",
        "division_by_zero_hint": "请更换除数。",
        "short_number": "{start}…（共 {size} 个字符）",
        "complex_result": "结果是复数，本计算器不支持。",
        "complex_result_hint": "负数没有实数根；请修改表达式。",
        "large_result": "{part}过大：整数最多 {bits:,} 位（bit），其他数必须小于 1.8e308。",
        "large_result_hint": "请使用更小的数或指数。",
        "product": "乘积",
        "power": "乘方",
        "value": "结果",
        "unknown_zone": "没有名为 {zone} 的 IANA 时区。",
        "unknown_zone_hint": "请使用 IANA 时区名，例如 Asia/Shanghai 或 Europe/Paris。",
        "did_you_mean": "是不是 {names}？",
        "missing_key": "表中没有键 {key}。",
        "near_keys": "相近的键：{names}。",
        "no_near_key": "没有相近的键。",
        "long_key": "{start!r}…（共 {size:,} 个字符）",
        "table_line": "第 {line} 行：{problem}。",
        "table_deep": "嵌套过深。",
        "table_alias": "不支持 YAML 别名（*name）。",
        "table_scalar": "没有键：最上层是单个值。",
        "table_hint": "必须是 JSON 或 YAML 的映射。",
        "no_reader": "没有读取模型：此工具只能在运行中使用。",
        "unknown_artifact": "本次运行没有名为 {name!r} 的完整输出（artifact）。",
        "unknown_artifact_hint": "请使用被截短的观察结果给出的名称。",
        "out_of_range": "文本在位置 {start:,} 之前已结束：共 {size:,} 个字符。",
        "out_of_range_hint": "请从更小的位置开始。",
        "page": "[第 {start:,} 到 {end:,} 个字符，共 {size:,} 个；{after}]",
        "next_page": "下一页：start={end}",
        "last_page": "已到末尾",
        "match": "位置 {start:,}：{context}",
        "matches": "[{text!r} 共 {count:,} 处匹配，从位置 {start:,} 起，全文 {size:,} 个字符{note}]",
        "matches_cut": "，显示前 {count} 处",
        "not_json": "该输出不是 JSON。",
        "not_json_hint": "请省略指针。",
        "bad_pointer": "该 JSON 中没有指针 {pointer!r} 所指的位置。",
        "wrote": "已向 {path} 写入 {size:,} 字节；{previous}。",
        "previous_kept": "原来的版本（{size:,} 字节）已保留为备份 {backup}",
        "no_previous": "原先没有该文件",
        "restored": "已恢复 {path}：文件已回到之前的版本。",
        "removed": "已恢复 {path}：文件原先不存在，现已删除。",
        "path_refused": "不允许使用路径 {path}：{reason}。",
        "path_refused_hint": "请给出工作区内的路径，例如 notes/a.txt。",
        "path_empty": "路径为空",
        "path_nul": "含有 NUL 字符",
        "path_absolute": "不是相对于工作区的路径",
        "path_backslash": "含有反斜杠",
        "path_backslash_hint": "文件夹与文件之间请写 '/'。",
        "path_encoding": "不是有效的文本",
        "path_long": "路径过长",
        "path_long_hint": "名称最多 255 字节，路径最多 1,024 字节。",
        "path_parent": "'..' 可能离开工作区",
        "path_deep": "超过 {limit} 层文件夹",
        "path_reserved": "'{name}' 由运行时使用",
        "path_database": "不能把数据库文件当作普通文件打开",
        "path_root": "这是工作区本身",
        "path_control": "新文件名不能含有换行或控制字符",
        "no_workspace": "本次运行没有工作区，没有可操作的文件。",
        "no_workspace_hint": "用户可以提供，例如用 --workspace DIR。",
        "file_large": "文件 {path!r} 有 {size:,} 字节；最多读取 {limit:,} 字节。",
        "file_large_hint": "请用 search_files 查找需要的部分。",
        "file_not_text": "文件 {path!r} 不是 UTF-8 文本。",
        "file_not_text_hint": "只能读取文本文件。",
        "content_not_text": "内容不是有效的文本（含有单独的代理字符）。",
        "content_large": "内容有 {size:,} 字节；最多写入 {limit:,} 字节。",
        "content_large_hint": "请分成几个文件写入。",
        "no_backup": "{path!r} 没有名为 {backup!r} 的备份。",
        "changed_since": "{path!r} 在备份 {backup!r} 对应的写入之后又被修改，没有恢复。",
        "changed_since_hint": "请读取该文件，再写入应有的内容。",
        "key_reused": "键 {key!r} 属于另一次修改，对应的文件是 {path!r}。",
        "bad_record": "无法读取备份 {name!r} 的记录。",
        "backup_large": "文件有 {size:,} 字节；超过 {limit:,} 字节的文件无法备份，因此没有覆盖。",
        "backup_large_hint": "请写入另一个文件名。",
        "bad_pattern": "通配符为空或过于复杂。",
        "bad_pattern_hint": "请使用 *.txt 或 **/*.py 之类的通配符。",
        "bad_text": "要搜索的文本为空或有多行。",
        "file_failed": "无法使用 {path!r}：{reason}。",
        "near_names": "相近的名称：{names}。",
        "ENOENT": "没有这个文件或文件夹",
        "ENOENT_hint": "请用 list_files 列出文件。",
        "ENOTDIR": "路径中有一段是文件，而不是文件夹",
        "ENOTDIR_hint": "请用 list_files 列出文件。",
        "EISDIR": "这是文件夹",
        "EISDIR_hint": "请给出文件的路径。",
        "ENXIO": "不是普通文件",
        "ENXIO_hint": "只能打开普通文件。",
        "ELOOP": "路径经过符号链接",
        "ELOOP_hint": "请使用工作区内的真实路径。",
        "EXDEV": "路径离开了工作区",
        "EXDEV_hint": "请使用工作区内的路径。",
        "EMLINK": "文件有硬链接",
        "EMLINK_hint": "请将文件复制为另一个名称。",
        "EACCES": "系统拒绝访问",
        "EACCES_hint": "请换一个位置。",
        "EROFS": "文件系统是只读的",
        "EROFS_hint": "请换一个位置。",
        "ENOSPC": "设备上没有剩余空间",
        "ENOSPC_hint": "请停止写入并告知用户。",
        "EDQUOT": "磁盘配额已用完",
        "EDQUOT_hint": "请停止写入并告知用户。",
        "EFBIG": "文件会超过系统允许的大小",
        "EFBIG_hint": "请减少写入的内容。",
        "run_python": "在沙箱中执行一个 Python 3 程序。",
        "run_command": "在沙箱中用系统自带的程序执行一个 shell 脚本。",
        "sandbox_card": "{does}{network}，可以修改{folder}。最多 {limits.wall_s:g} 秒、{megabytes:,} MB 内存、"
        "{limits.processes} 个进程；调用结束后不会有任何进程继续运行，也没有标准输入。",
        "network": "程序可以使用本机的网络",
        "no_network": "程序没有网络",
        "empty_folder": "的只有一个空文件夹，结束后即删除",
        "workspace_folder": "工作区（即当前文件夹）中的文件",
        "limit_time": "time：超过 {limits.wall_s:g} 秒，已终止",
        "limit_cpu": "cpu：处理器时间超过 {limits.cpu_s:g} 秒，已终止",
        "limit_memory": "memory：使用的内存超过 {limits.memory_bytes:,} 字节，已终止",
        "limit_processes": "processes：进程和线程超过 {limits.processes} 个，已终止",
        "limit_output": "output：输出超过 {limits.flow_bytes:,} 字节，已终止",
        "limit_disk": "disk：写入超过 {limits.disk_bytes:,} 字节或 {limits.files:,} 个文件，已终止",
        "limit_file_size": "file_size：有文件超过 {limits.file_bytes:,} 字节，已终止",
        "left_out": "[… 省略 {count:,} 字节 …]",
        "no_sandbox": "本机没有沙箱：{reason}",
        "no_sandbox_hint": "请在允许用户命名空间的 Linux 上安装 bubblewrap 0.8 或更高版本"
        "（Debian、Ubuntu：apt install bubblewrap；Fedora：dnf install bubblewrap）。",
        "sentence": "{text}。",
        "needs_linux": "命令只在 bubblewrap 中执行，它需要 Linux",
        "no_bubblewrap": "没有安装 bubblewrap（PATH 中没有 {program}）",
        "true_failed": "沙箱中的 `true` 没有成功：{reason}",
        "sandbox_failed": "沙箱出错：{reason}。",
        "sandbox_failed_hint": "请告知用户；`tao doctor` 会说明沙箱需要什么。",
        "no_word": "bubblewrap 没有任何输出就结束了",
        "not_killed": "其进程已被终止，但没有结束",
        "not_started": "无法启动 {program}：{reason}",
        "script_surrogates": "程序不是有效的文本（含有单独的代理字符）。",
        "script_empty": "程序为空。",
        "script_nul": "程序含有 NUL 字符。",
        "script_long": "程序过长。",
        "script_hint": "请发送一个完整的程序。",
        "reserved_failed": "无法创建 {name!r}：{reason}。",
        "reserved_no_folder": "工作区中的 {name!r} 不是文件夹。",
        "reserved_no_folder_hint": "请告知用户。",
        "no_memory": "本次运行没有记忆，无法跨运行保存内容。",
        "no_memory_hint": "用户可以提供，例如用 --memory FILE。",
        "kept": "已保存为笔记 {number}",
        "memory_full": "{path} 已有 {count:,} 条笔记，无法再保存。",
        "memory_unusable": "{path}：无法使用笔记：{reason}。",
        "no_fts5": "此 Python 的 SQLite 不支持全文搜索（FTS5）；请换用支持它的版本。",
        "memory_newer": "{path} 由更新版本的 taoloop 写入；未作任何更改。",
        "memory_other": "{path} 是另一种数据库。",
        "memory_other_hint": "请指定一个新文件。",
    },
)
