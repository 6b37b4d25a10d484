"""The command line in Chinese: the locale or `TAOLOOP_LANG` chooses it."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import sys
from contextlib import closing

import pytest
from rich.cells import cell_len
from tests.shell import Shell, call
from tests.test_translation import examples

from taoloop.cli import translation
from taoloop.core.text import chinese_texts

CATALOG = chinese_texts("cli")
TRAILING_COMMA = "对象的最后一项之后不能有逗号" if sys.version_info >= (3, 13) else "此处应为双引号括起的键名"
"""What `json` finds wrong with a comma after the last field, which has a message of its own since Python 3.13."""


def test_what_click_says_about_a_mistake_is_translated(tao: Shell) -> None:
    chinese = {"TAOLOOP_LANG": "zh"}
    assert tao("show", code=2, **chinese).one_line == "tao: 缺少参数 'RUN_ID'。参见 `tao show --help`。"
    assert "没有选项" in tao("runs", "--colour", code=2, **chinese).one_line
    assert "不在范围" in tao("runs", "--limit", "0", code=2, **chinese).one_line
    assert "不在可选值" in tao("runs", "--status", "done", code=2, **chinese).one_line
    assert "没有命令 'shwo'。是不是想用 'show'？" in tao("shwo", code=2, **chinese).one_line


@pytest.mark.parametrize(
    ("env", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_MESSAGES": "zh_TW", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "C", "TAOLOOP_LANG": "zh"}, "zh"),
        ({"LC_ALL": "zh_CN.UTF-8", "TAOLOOP_LANG": "en"}, "en"),
        ({"LANG": "fr_FR.UTF-8"}, "en"),
    ],
)
def test_the_language_is_that_of_the_variable_or_of_the_locale(
    env: dict[str, str], language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TAOLOOP_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert translation.interface_language() == language


def test_help_errors_and_lists_are_chinese(tao: Shell) -> None:
    chinese = {"TAOLOOP_LANG": "zh"}
    tao("run", "What is 2 + 3?", code=0)
    assert tao("--help", code=0, **chinese).out.startswith("用法：tao [选项] 命令 [参数]...\n")
    page = tao("run", "--help", code=0, **chinese).out
    assert "选项：" in page
    assert "显示本帮助并退出。" in page
    assert tao("show", "20990101", code=2, **chinese).one_line.endswith(
        "没有运行 '20990101'。`tao runs` 列出现有的运行。"
    )
    rows = tao("runs", code=0, **chinese)
    assert rows.err.split() == ["运行", "开始时间", "状态", "事件", "任务"]
    assert "个事件" in rows.out


def test_a_run_in_english_is_shown_in_the_language_of_the_interface(tao: Shell) -> None:
    tao("run", "What is 2 + 3?", code=0)
    assert "任务：What is 2 + 3?" in tao("show", "last", code=0, TAOLOOP_LANG="zh").out
    assert "Task: What is 2 + 3?" in tao("show", "last", code=0).out


def test_a_run_in_chinese_is_shown_in_chinese_in_any_case(tao: Shell) -> None:
    assert "任务：2 加 3 等于多少?" in tao("run", "2 加 3 等于多少?", code=0, TAOLOOP_LANG="en").out


def test_what_programs_read_is_the_same_in_both_languages(tao: Shell) -> None:
    tao("run", "What is 2 + 3?", code=0)
    for args in (["show", "last"], ["runs"], ["models"], ["costs"], ["approvals"], ["verify", "last"], ["tools"]):
        assert tao(*args, "--json", TAOLOOP_LANG="zh").out == tao(*args, "--json").out
    flawed = [
        tao("verify", "last", "--head", "0" * 8, "--json", code=12, TAOLOOP_LANG=name).out for name in ("zh", "en")
    ]
    assert flawed[0] == flawed[1]
    assert "Python 3" not in tao("doctor", "--json", TAOLOOP_LANG="zh").err
    records = [json.loads(line) for line in tao("doctor", "--json", TAOLOOP_LANG="zh").out.splitlines()]
    assert all(record["text"].isascii() and record["hint"].isascii() for record in records)


def test_a_stream_without_chinese_characters_gets_english(tao: Shell) -> None:
    page = tao.process("--help", code=0, TAOLOOP_LANG="zh", PYTHONUTF8="0", PYTHONIOENCODING="ascii").out
    assert page.startswith("Usage: tao")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_columns_of_help_are_aligned(tao: Shell, language: str) -> None:
    page = tao("run", "--help", code=0, TAOLOOP_LANG=language, COLUMNS="80").out
    assert max(map(cell_len, page.splitlines())) <= 98  # examples are not wrapped
    options = page[page.index("  --agent AGENT") :].splitlines()
    starts = {len(line) - len(line.lstrip()) for line in options}
    assert starts == {2, 34}


def offline_examples(language: str) -> list[str]:
    """The tasks in help that need neither a provider nor files of the reader."""
    texts = {line: line for line in examples() if line.startswith('tao run "')}
    if language == "zh":
        texts = {line: CATALOG.get(line, line) for line in texts}
    others = ("--model", "--agent", "--tools")
    return [text for line, text in texts.items() if not any(option in line for option in others)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tasks_in_help_run_offline(tao: Shell, language: str) -> None:
    (tao.folder / "notes").mkdir()
    tao.write("notes/notes.md", "Buy milk.")
    lines = offline_examples(language)
    assert len(lines) >= 4
    for line in lines:
        command = line.partition("   ")[0].replace("~", str(tao.folder))
        assert tao(*shlex.split(command)[1:], code=0, TAOLOOP_LANG=language).out, line


FILES = {
    "field.yaml": "model: offline\nmax_stepz: 3\n",
    "type.yaml": "max_steps: many\n",
    "range.yaml": "max_steps: 0\n",
    "digits.yaml": f"model_timeout_s: 1{'0' * 400}\n",
    "digits.json": f'{{"model_timeout_s": 1{"0" * 5000}}}',
    "choice.yaml": "policy: {profile: wild}\n",
    "missing.yaml": "tools:\n- agent: inner.yaml\n- lookup: {}\n",
    "list.yaml": "tools: calculator\n",
    "twice.yaml": "name: a\nname: b\n",
    "colon.yaml": "a: b: c\n",
    "bracket.yaml": "model: [offline\n",
    "unquoted.json": '{name: "a"}',
    "comma.json": '{"name": "a",}',
    "tool.yaml": "tools: [calculatr]\n",
    "variable.yaml": "tools:\n- fetch: {allow: ['${NO_SUCH}']}\n",
    "rule.yaml": "policy: {rules: [{verdict: ask, tool: mail_send}]}\n",
    "broken.py": "raise ValueError('没有')\n",
    "damaged.db": "no database at all" * 9,
    "script.yaml": "- {txt: hello}\n",
    "swagger.yaml": 'swagger: "1.2"\n',
    "openapi.yaml": "tools:\n- openapi: swagger.yaml\n",
    "mcp.yaml": "tools:\n- mcp: {name: here}\n",
    "server.yaml": "tools:\n- mcp: {name: here, command: /no/such/server}\n",
    "url.yaml": "tools:\n- sql: {name: shop, url: shop}\n",
    "kind.yaml": "tools:\n- sql: {name: shop, url: 'paper://shop'}\n",
    "documents.yaml": "tools:\n- documents: nowhere\n",
    "untyped.py": "from taoloop import tool\n\n@tool\ndef greet(name):\n    ...\n",
    "agents.yaml": "agents: {}\n",
    "key.yaml": "agents: {a: {model: offline}}\nkeys: [{name: a, key: abc}]\n",
    "origin.yaml": "agents: {a: {model: offline}}\nserver: {allow_origins: [chat.example]}\n",
}


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("run x --agent field.yaml", 2, "max_stepz: 没有这个字段。是不是想写 'max_steps'？可用的有："),
        ("run x --agent type.yaml", 2, "max_steps: 应为整数，当前值：'many'。"),
        ("run x --agent range.yaml", 2, "上限 max_steps 是 0。应为大于 0 的整数；留空表示不限。"),
        ("run x --agent digits.yaml", 2, "应为较小的数字，当前值：超过 60 位的数字。"),
        ("run x --agent digits.json", 2, "其中有位数过多的数字。"),
        ("run x --agent choice.yaml", 2, "policy.profile: 应为 supervised, strict, "),
        ("run x --agent missing.yaml", 2, "缺少 purpose：模型要据此判断何时使用这个智能体。"),
        ("run x --agent list.yaml", 2, "应为列表，当前值：'calculator'。请加方括号，写成列表。"),
        ("run x --agent twice.yaml", 2, "name: 字段重复（首次出现在第 1 行）。"),
        ("run x --agent colon.yaml", 2, "不是合法的 YAML：此处不能出现 `: `。"),
        ("run x --agent bracket.yaml", 2, "应为 ',' 或 ']'，却是 '<stream end>'。"),
        ("run x --agent unquoted.json", 2, "不是合法的 JSON：此处应为双引号括起的键名。"),
        ("run x --agent comma.json", 2, f"不是合法的 JSON：{TRAILING_COMMA}。"),
        ("run x --agent tool.yaml", 2, "没有名为 'calculatr' 的工具。是不是想写 'calculator'？"),
        ("run x --agent none.yaml", 2, "none.yaml: 文件不存在。请检查路径。"),
        ("run x --agent nowhere:agent", 2, "没有模块 'nowhere'。"),
        ("run x --agent broken:agent", 2, "加载 'broken:agent' 时出现 ValueError：没有"),
        ("run x --agent os:nothing", 2, "模块 'os' 中没有属性 'nothing'。"),
        ("run x --agent rule.yaml", 2, "规则 'ask mail_send' 针对 'mail_send'，但智能体没有这样的工具。"),
        ("tools variable.yaml", 2, "未设置环境变量 NO_SUCH。"),
        ("run x --model openai:m", 2, "缺少 openai 的密钥：未设置变量 OPENAI_API_KEY。"),
        ("run x --model gpt4", 2, "没有名为 'gpt4' 的模型。可用的有：offline、"),
        ("run x --model scripted:script.yaml", 2, "脚本 'scripted:script.yaml' 的第 1 个回复有未知的键 'txt'。"),
        ("run x --model replay:none", 2, "无法读取录制的运行 'none'"),
        ("run x --dialect fancy", 2, "没有名为 'fancy' 的输出方言。"),
        ("run x --strategy fancy", 2, "没有名为 'fancy' 的推理策略。"),
        ("runs --db none.db", 11, "none.db：数据库不存在。"),
        ("runs --db damaged.db", 11, "damaged.db：不是 taoloop 的数据库，或已损坏（"),
        ("run x --model scripted:ok.yaml --db damaged.db", 11, "damaged.db：不是 taoloop 的数据库，或已损坏（"),
        ("call calculator --args '{}'", 2, "'calculator' 的参数不符合要求：缺少 'expression'。"),
        ("call calculator --args '{'", 2, "--args 不是 JSON："),
        ('call read_file --args \'{"path": "a"}\'', 1, "read_file 失败：no_workspace: "),
        ("tools openapi.yaml", 2, "声明的版本是 '1.2'，不受支持。支持 2.0 和 3.0 到 3.2；"),
        ("tools --openapi none.yaml", 2, "无法读取：没有这个文件或文件夹。请给出 OpenAPI 3 或 Swagger 2.0 文档"),
        ("tools mcp.yaml", 2, "MCP 服务器 'here' 需要 `command` 和 `url` 二者之一。"),
        ("tools server.yaml", 2, "无法启动 MCP 服务器 'here'：没有程序 '/no/such/server'。请安装它，"),
        ("tools url.yaml", 2, "数据库 'shop' 的 url 不是 URL。请写成 sqlite:///shop.db 的形式。"),
        ("tools kind.yaml", 2, "SQLAlchemy 不支持数据库类型 'paper'。请写 sqlite:///FILE、"),
        ("tools documents.yaml", 2, "没有这个文件夹。请写明文档所在的文件夹。"),
        ("tools untyped:greet", 2, "工具 'greet' 的参数 'name' 没有类型。请加上标注，如 `name: str`。"),
        ("serve agents.yaml --check", 2, "agents: 其中没有智能体。请写 `agents: {NAME: FILE.yaml}`。"),
        ("serve key.yaml --check", 2, "keys[0].key: 文件中不能直接写密钥。"),
        ("serve origin.yaml --check", 2, "'chat.example' 不是网页的来源（origin）。请把协议也写上，"),
        ("serve swagger.yaml --check", 2, "这不是网关配置文件。这是 Swagger 文档：请在智能体的 `tools` 下写 "),
        ("mcp calculator --http here", 2, "--http 'here' 不是可以监听的地址。请写 HOST:PORT，"),
        ("mcp calculator --http 0.0.0.0:80", 2, "其他机器可以访问 --http 0.0.0.0:80，而没有设置令牌。"),
        ("run x --prompts none", 2, "/none'：没有这个文件或文件夹。请给出包含 .txt 文件的文件夹，"),
    ],
)
def test_an_error_of_a_file_a_database_or_a_model_is_chinese(tao: Shell, command: str, code: int, text: str) -> None:
    for name, content in FILES.items():
        tao.write(name, content)
    tao.script("ok", name="ok.yaml")
    line, *others = tao(*shlex.split(command), code=code, TAOLOOP_LANG="zh").err.splitlines()
    assert line.startswith("tao: ")
    assert others in ([], ["tao: 没有可用的工具。问题见上文。"])
    assert text in line
    words = re.search(r"(?<![\w./'])[A-Za-z]{2,}( [a-z]{2,}){2}", line)
    assert words is None or words[0] in ("file is not", "No such file"), "SQLite and the system speak English"


def test_a_database_of_another_version_is_reported_in_chinese(tao: Shell) -> None:
    tao("run", "x", "--model", tao.script("y"), code=0)
    with closing(sqlite3.connect(tao.folder / "runs.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert "由更新版本的 taoloop 写入（结构 99，" in tao("runs", code=11, TAOLOOP_LANG="zh").one_line


def test_what_differs_between_runs_is_named_in_words(tao: Shell) -> None:
    model = tao.script(call("calculator", expression="6*7"), "42")
    tao("run", "x", "--model", model, "--context-tokens", "9000", code=0)
    tao.script(call("calculator", expression="6*8"), "48", name="other.yaml")
    tao("run", "x", "--model", "scripted:other.yaml", code=0)
    first, second = (row["run_id"] for row in tao("runs", "--json", code=0).events)
    english = tao("diff", first, second, "--all", code=1).out
    assert "not compared: context window in tokens is" in english
    assert "They first differ in step 1: arguments of calculator" in english
    chinese = tao("diff", first, second, "--all", code=1, TAOLOOP_LANG="zh").out
    assert "未比较：上下文窗口的 token 数（a：" in chinese
    assert "从第 1 步开始不同：calculator 的参数" in chinese
    assert "2 答案" in chinese


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("approve last call_9", 2, "没有调用 'call_9'。这次运行没有等待审批的调用。"),
        ("deny last call_1", 2, "的调用 call_1 不需要审批。"),
        ("settle last call_1 --happened", 2, "call_1 不是结果未知的调用。结果未知的调用：无。"),
        ("note last hello", 2, "已完成。请开始新的运行，或从这次运行分叉。"),
        ("undo last --to 9", 2, "撤销到第 9 步。它共有 2 步；0 表示全部撤销。"),
        ("fork last --at 9", 2, "共有 2 步，不能在第 9 步分叉。请给出 1 到 2 之间的步骤；"),
        ("fork last --at 1 --edit color=red", 2, "编辑 'color=red' 的写法不对。请写成以下形式之一："),
        ("fork last --at 1 --edit task=", 2, "编辑后的任务为空。请用文本说明智能体要做什么。"),
    ],
)
def test_an_error_about_a_run_is_chinese(tao: Shell, command: str, code: int, text: str) -> None:
    tao("run", "x", "--model", tao.script(call("calculator", expression="6*7"), "42"), code=0)
    assert text in tao(*shlex.split(command), code=code, TAOLOOP_LANG="zh").one_line


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({}, "无法连接 openai:m（http://127.0.0.1:9/v1）：连接被拒绝。请检查地址和网络。"),
        ({"OPENAI_BASE_URL": "ftp://x"}, "无法调用 openai:m：ftp://x 不是可用的地址。请写成 https://HOST/v1 的形式，"),
        ({"TAOLOOP_NO_REAL_CALLS": "1"}, "没有调用 openai:m：环境变量 TAOLOOP_NO_REAL_CALLS 禁止了真实调用。"),
    ],
)
def test_an_error_of_a_provider_is_chinese(tao: Shell, env: dict[str, str], text: str) -> None:
    tao.write("once.yaml", "model: openai:m\nretry: {attempts: 1}\n")
    provider = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "TAOLOOP_LANG": "zh"}
    assert f"没有答案：模型调用失败：{text}" in tao("run", "x", "--agent", "once.yaml", code=9, **provider | env).out
    shown = tao("show", "last", code=0).out
    assert "The model failed: openai:m" in shown, "the run is in English, and stays so"
