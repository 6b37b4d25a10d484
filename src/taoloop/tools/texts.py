"""What tools report to the model of a run: arguments and results that do not fit, and the tools' own errors.

The English texts are here; `zh.json` has the Chinese text for each of them, for those on the built-in cards, and for
what pydantic and the validator of JSON Schema report in English: by `pydantic: TYPE` and `schema: KEYWORD`.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from typing import Any

from taoloop.core.text import RUN_LANGUAGE, TextCatalog, chinese_texts
from taoloop.errors import ToolError

_MOST_OPTIONS = 20  # that an error names


class ToolTexts(TextCatalog):
    """A catalogue of errors: beside the text `NAME` the text `NAME_hint` says what to do next, where there is one."""

    def __init__(self, english: Mapping[str, str]) -> None:
        super().__init__("tools", english)

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


def schema_problem(keyword: str, value: object, message: str) -> str:
    """What a value that a JSON Schema refuses is to be, in the language of the run.

    Args:
        keyword: The keyword of the schema that refuses it.
        value: What the schema has for the keyword.
        message: The validator's own words, which an English run shows.
    """
    if RUN_LANGUAGE.get() != "zh":
        if keyword == "enum" and isinstance(value, list) and len(value) <= _MOST_OPTIONS:  # it leaves some out
            refused, words, _ = message.partition(" is not one of ")
            return f"{refused}{words}{', '.join(json.dumps(option, ensure_ascii=False) for option in value)}"
        return message
    shown = "、".join(map(str, value)) if isinstance(value, list) else str(value)
    texts = chinese_texts("tools")
    return texts.get(f"schema: {keyword}", texts["schema: "]).format(value=shown[:200], keyword=keyword)


def argument_problem(kind: str, context: Mapping[str, Any], message: str) -> str:
    """What is wrong with an argument, in the language of the run.

    Args:
        kind: The type of pydantic's error.
        context: The values of the error.
        message: pydantic's own words, which an English run shows.
    """
    if RUN_LANGUAGE.get() != "zh":
        return message[:1].lower() + message[1:]
    texts, name = chinese_texts("tools"), kind
    while f"pydantic: {name}" not in texts:  # of `int_parsing`, that of `int`
        name = name.rpartition("_")[0]
    expected = str(context.get("expected", "")).replace(", ", "、").replace(" or ", "、")
    return texts[f"pydantic: {name}"].format_map({"kind": kind, **context, "expected": expected})


def system_reason(error: OSError) -> str:
    """Why the system refused something: in its own words, or for a usual error in those of a Chinese run.

    The words are found by the number of the error: asyncio has others for a connection ("Connect call failed").
    """
    name = errno.errorcode.get(error.errno or 0, "")
    if RUN_LANGUAGE.get() == "zh" and name in TEXTS:
        return TEXTS.run_text(name)
    return os.strerror(error.errno) if error.errno and name else error.strerror or str(error)


TEXTS = ToolTexts(
    {
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
        "misfit_of_many": "it does not fit the schema, which has too many alternatives to say where",
        "too_many_steps": "it cannot be judged: the schema applies more than {most:,} rules to it; make it smaller",
        "more_of": "and {count} more",
        "result": "{tool!r} ran, but its result does not fit what it declares: {problems}.",
        "result_generator": "{tool!r} returned {kind!r}, which gives its values one by one; none was taken.",
        "result_generator_hint": "The tool itself must be changed to return a list; the same call will not do better.",
        "result_endless": "{tool!r} gave more than {limit:,} values one by one; it was stopped.",
        "result_endless_hint": "What it had done until then stays done. Ask it for less at once.",
        "result_cut": "Only the first {part} of {total} are shown.",
        "result_columns_cut": "Only the first {part} of {total} columns are shown.",
        "result_not_json": "{tool!r} ran, but its result of the type {kind!r} cannot be written as JSON: {reason}.",
        "result_image_url": "A tool returns the bytes of an image, not the address {url}: nobody fetches it.",
        "carried_out": "The call was carried out; do not repeat it only because of this.",
        "no_thread": "The call was not started: {reason}.",
        # find_tool, describe_tool, call_tool
        "no_tool_found": "No tool fits. Try other words. There are: {names}{more}.",
        "shown_in_brief": "Where arguments are only names (? is optional), describe_tool gives the card.",
        "more_names": " and {count} more",
        "no_such_tool": "There is no tool called {name!r}.",
        "near": "Near: {names}.",
        "not_so": "{name!r} cannot be called so.",
        "not_so_hint": "Give `name` and `args` of one tool.",
        "no_such_argument": "{argument!r} leads nowhere at {step!r}.",
        "no_such_argument_hint": "There is: {names}.",
        "nothing": "nothing",
        # track_todos
        "todos_saved": "Saved: {counts}.",
        "todos_open": "{count} open",
        "todos_in_progress": "{count} in_progress",
        "todos_done": "{count} done",
        "todos_dropped": "{count} dropped",
        "todos_comma": ", ",
        "todos_gone": "Of the list before, items that were not done are gone: {numbers}. Unless you reworded them,"
        " write them again, with the state dropped if they are not needed.",
        "todos_many": "The list has {count} items; at most {most} are taken.",
        "todos_long": "Items of more than {most} characters: {numbers}.",
        "todos_blank": "Items without a text: {numbers}.",
        "todos_two_in_progress": "Items {numbers} are all in_progress; at most one may be.",
        "todos_double": "Items {numbers} have the same text.",
        # calculator
        "form_hint": "Use numbers, + - * / ** and parentheses only, such as (2 + 3) * 4.",
        "in_parts_hint": "Compute it in parts.",
        "empty_expression": "The expression is empty.",
        "long_expression": "The expression has {size:,} characters; at most {limit:,} are taken.",
        "deep_expression": "The expression is nested too deeply.",
        "no_expression": "{text!r} is not an arithmetic expression: {reason}.",
        "unclosed": "its brackets do not match",
        "unparsable": "it cannot be parsed",
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
        # ask_user
        "no_person": "No person can be asked by this call.",
        "no_person_hint": "Questions are asked in a run of an agent.",
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
        "edited": "Changed {path}; {previous}.",
        "same_text": "The old and the new text are the same: nothing would change.",
        "same_text_hint": "Give the text as it should become.",
        "no_match": "The text is not in {path!r}.",
        "no_match_hint": "Read the file and copy the text exactly, with its spaces and line breaks.",
        "several_matches": "The text is in {path!r} {count:,} times or more, in lines {lines}.",
        "several_matches_hint": "Give more of the text around the part that is meant.",
        "restored": "Restored {path}: the previous version is back.",
        "removed": "Restored {path}: it did not exist before and is gone.",
        # Snapshots of a workspace
        "snapshot_failed": "The files of the workspace could not be kept: {reason}.",
        "too_many_files": "there are more than {limit:,} files and folders",
        "too_deep_folders": "there are folders {limit} levels deep or deeper",
        "no_snapshot": "There is no backup {backup!r} of this workspace.",
        "files_changed_since": "These files were changed since the call with the backup {backup}: {paths}.",
        "files_changed_since_hint": "Nothing was restored. Undo the later changes first, or restore them by hand.",
        "files_not_kept": "The earlier content of these files was not kept: {paths}.",
        "files_not_kept_hint": "Nothing was restored. They are larger than what is kept, linked more than once, or "
        "databases; restore them by hand.",
        "restore_failed": "Not everything of the backup {backup} could be restored: {reason}.",
        "restore_failed_hint": "Restore it once more: what is restored already stays so.",
        "object_damaged": "the kept content {digest} is damaged",
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
        "not_found_hint": "List the files with list_files.",
        "ENOTDIR": "a part of it is a file, not a folder",
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
        "permission_denied_hint": "Use another place.",
        "EROFS": "the file system is read-only",
        "ENOSPC": "no space is left on the device",
        "disk_full_hint": "Stop writing and tell the user.",
        "EDQUOT": "the disk quota is used up",
        "EFBIG": "the file would be larger than the system permits",
        "EFBIG_hint": "Write less.",
        # Connections
        "ECONNREFUSED": "the connection was refused",
        "ECONNRESET": "the connection was reset",
        "EHOSTUNREACH": "there is no route to the host",
        "ENETUNREACH": "the network is unreachable",
        # run_python and run_command
        "run_python": "Run one Python 3 program in a sandbox, alone or in a session that keeps its variables until the "
        "run ends, a limit is exceeded or 10 minutes pass without a call.",
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
        "session_stopped": "The Python session was stopped; its variables are gone.",
        "sessions_busy": "{count} Python sessions are at work already.",
        "sessions_busy_hint": "Wait for one of them, or run the program without a session.",
        "script_surrogates": "The program is no valid text (lone surrogates).",
        "script_empty": "The program is empty.",
        "script_nul": "The program contains a NUL character.",
        "script_long": "The program is too long.",
        "script_interpreter": "Nothing says what runs {path}.",
        "script_interpreter_hint": "It must end in .py or .sh, or begin with a line such as #!/usr/bin/env bash.",
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
        # search_documents and read_passage
        "no_page": "Could not find {entity!r}. Similar: {similar}",
        "no_open_page": "No page is open.",
        "no_open_page_hint": "Open one with search first.",
        "page_unreadable": "The page {title!r} cannot be read: {reason}.",
        "page_unreadable_hint": "Search another page.",
        "result_of": "(Result {number} / {count}) {sentence}",
        "no_more_results": "No more results: {count} sentences of {title!r} have {string!r}.",
        "no_passage": "No passage has the id {citation!r}.",
        "no_passage_hint": "Use an id from a search result; the document may have changed since.",
        "file_gone": "{file}: the file is gone.",
        "file_changed": "{file}: the file has changed and no longer contains this passage.",
        "file_changed_hint": "Search again.",
        "file_gone_hint": "Search again.",
        "file_unreadable": "{file}: it cannot be read: {reason}.",
        "file_unreadable_hint": "Check the file.",
        "index_newer": "{index}: this is the index of a newer taoloop; it was not changed.",
        "index_newer_hint": "Upgrade, or name another file.",
        "index_other": "{index}: this is another kind of database; it was not changed.",
        "index_other_hint": "Name a new file for the index.",
        "index_other_folder": "{index}: this is the index of another folder, {folder}.",
        "index_other_folder_hint": "Name another file for the index.",
        "index_unusable": "{index}: the index cannot be used: {reason}.",
        "index_unusable_hint": "Check permissions and disk space, or name another file for the index.",
        "locked_hint": "Another program has locked it; try again.",
        "damaged_hint": "Delete this file if it is the index, which is built again; otherwise name another.",
        # fetch
        "response_data": "data",
        "response_binary": "{media_type}, not text: {size:,} bytes, in base64.",
        "response_cut": "Only the first {max_bytes:,} bytes were read; there is more.",
        "response_large": "{url} is {media_type} of more than {max_bytes:,} bytes.",
        "response_large_hint": "Use the URL of a smaller part.",
        "unreadable": "The response cannot be read as text: {reason}.",
        "unreadable_timeout": "The response cannot be read as text: parsing it takes more than {seconds:g} s.",
        "unreadable_hint": "Use another URL; the same one will fail again.",
        "unreadable_timeout_hint": "Use another URL; the same one will fail again.",
    },
)
