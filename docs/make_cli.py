"""Write docs/cli.md and docs/cli.zh.md: the help page of every command, as `tao COMMAND --help` prints it.

Run: python docs/make_cli.py
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from taoloop.cli.app import cli, translate_click
from taoloop.cli.exit_codes import OF_STATUS, TABLE
from taoloop.cli.translation import LANGUAGE_VARIABLE, translate

WIDTH = 100
FOLDER = Path(__file__).parent
PAGES = {"en": "cli.md", "zh": "cli.zh.md"}

HEADS = {
    "en": """\
# The command line

<!-- Written by docs/make_cli.py; edit that, or the help texts, not this page. -->

`tao` is installed with the package. In a checkout, `scripts/try` sets it up on first use and then runs it.
Standard output contains only the result of a command; notices and errors go to standard error, each on one line.
A `.env` file in the current folder is read; variables of the environment take precedence. [中文](cli.zh.md)

| variable | what it does |
|---|---|
| `TAOLOOP_DB` | the database of runs, instead of `runs.db` in the user's data folder |
| `TAOLOOP_MODEL` | the model when neither `--model` nor the agent names one, such as `deepseek:deepseek-chat` |
| `TAOLOOP_LANG` | the language of help, errors and lists: `en` or `zh`; default: that of the locale (`LC_ALL` …) |
| `AI_MOCK` | `1`: the offline model instead of every provider, except one that `--model` names |
| `TAOLOOP_NO_REAL_CALLS` | `1`: no model of a provider is called; a run that tries ends as `model_failed` |
| `TAOLOOP_DEBUG` | `1`: show the traceback of an error |
| `NO_COLOR` | set to anything: no colours |

For keys and addresses of providers, see [providers and models](providers.md#providers).

A run in Chinese is always shown in Chinese. What programs read is the same in both languages: `--json`, statuses, names
of options, exit codes. `TAOLOOP_LANG` is read from the environment only, not from `.env`.

## Completion

`python -m taoloop` is the same as `tao`. The shell completes commands, options and the ids of runs (the newest 50 of
the database that `TAOLOOP_DB` or `--db` names) after this line in its start-up file:

| shell | file | line |
|---|---|---|
| bash (4.4 or later) | `~/.bashrc` | `eval "$(_TAO_COMPLETE=bash_source tao)"` |
| zsh | `~/.zshrc` | `eval "$(_TAO_COMPLETE=zsh_source tao)"` |
| fish | `~/.config/fish/config.fish` | `_TAO_COMPLETE=fish_source tao \\| source` |

## Exit codes

| code | meaning |
|---|---|
""",
    "zh": """\
# 命令行

<!-- 由 docs/make_cli.py 生成；请修改该脚本、帮助文本或 zh.json，不要修改本页。 -->

`tao` 随软件包安装。在源码目录中，`scripts/try` 首次使用时会完成安装，之后直接运行它。
标准输出只包含命令的结果；提示和错误写到标准错误，每条一行。
`tao` 会读取当前文件夹中的 `.env` 文件；环境变量优先于其中的变量。[English](cli.md)

| 变量 | 作用 |
|---|---|
| `TAOLOOP_DB` | 保存运行的数据库，代替用户数据文件夹中的 `runs.db` |
| `TAOLOOP_MODEL` | `--model` 和智能体都没有指定模型时使用的模型，例如 `deepseek:deepseek-chat` |
| `TAOLOOP_LANG` | 帮助、错误和列表的语言：`en` 或 `zh`；默认跟随区域设置（`LC_ALL` 等） |
| `AI_MOCK` | `1`：用离线模型代替所有模型提供商，`--model` 指定的除外 |
| `TAOLOOP_NO_REAL_CALLS` | `1`：不调用任何提供商的模型；尝试调用的运行以 `model_failed` 结束 |
| `TAOLOOP_DEBUG` | `1`：显示错误的调用栈 |
| `NO_COLOR` | 设为任意值：不使用颜色 |

模型提供商的密钥和地址见[模型提供商](providers.zh.md#提供商)。

中文任务的运行总是以中文显示。供程序读取的内容在两种语言中相同：`--json`、状态、选项名、退出码。`TAOLOOP_LANG`
只从环境变量读取，不从 `.env` 读取。

## 补全

`python -m taoloop` 与 `tao` 相同。在 shell 的启动文件中加入下面一行，即可补全命令、选项和运行编号（`TAOLOOP_DB` 或
`--db` 所指数据库中最新的 50 个）：

| shell | 文件 | 内容 |
|---|---|---|
| bash（4.4 及以上） | `~/.bashrc` | `eval "$(_TAO_COMPLETE=bash_source tao)"` |
| zsh | `~/.zshrc` | `eval "$(_TAO_COMPLETE=zsh_source tao)"` |
| fish | `~/.config/fish/config.fish` | `_TAO_COMPLETE=fish_source tao \\| source` |

## 退出码

| 退出码 | 含义 |
|---|---|
""",
}


def page(language: str) -> str:
    """The whole page in one language."""
    translate_click()
    before = os.environ.get(LANGUAGE_VARIABLE)
    os.environ[LANGUAGE_VARIABLE] = language
    try:
        return _page(language)
    finally:
        del os.environ[LANGUAGE_VARIABLE]
        if before is not None:
            os.environ[LANGUAGE_VARIABLE] = before


def _page(language: str) -> str:
    root = _context(cli, "tao", None)
    parts = [HEADS[language] + "".join(f"| {code} | {_meaning(code)} |\n" for code in TABLE)]
    parts.append(_section("tao", cli, root))
    for name in cli.list_commands(root):
        command = cli.get_command(root, name)
        if command is None:
            continue
        context = _context(command, name, root)
        parts.append(_section(f"tao {name}", command, context))
        for inner, inner_command in getattr(command, "commands", {}).items():
            parts.append(_section(f"tao {name} {inner}", inner_command, _context(inner_command, inner, context)))
    return "\n".join(parts)


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    return command.context_class(command, info_name=name, parent=parent, **settings)


def _section(title: str, command: click.Command, context: click.Context) -> str:
    lines = [line.rstrip() for line in command.get_help(context).splitlines()]
    return f"## {title}\n\n```text\n" + "\n".join(lines) + "\n```\n"


def _meaning(code: int) -> str:
    return f"`{TABLE[code]}`" if code in OF_STATUS.values() else translate(TABLE[code])


if __name__ == "__main__":
    for language, name in PAGES.items():
        (FOLDER / name).write_text(page(language), encoding="utf-8")
