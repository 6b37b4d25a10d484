"""Tokens that stay whole: file names in any script, and identifiers that mix letters, digits and signs."""

from __future__ import annotations

import re

_EXTENSIONS = (
    "txt md json csv yaml yml html htm py js ts css log xml pdf toml ini cfg conf docx xlsx pptx doc xls ppt png jpg "
    "jpeg gif svg sh sql rst tex zip gz tar bak lock env java c h cpp hpp go rs rb php ipynb tsv jsonl mp3 mp4 wav"
)
_SUFFIXES = frozenset(_EXTENSIONS.split())
NAMELIKE = re.compile(r"(?<![A-Za-z0-9_./\\~-])(?!\d[\d,]*(?:\.\d*)?(?![A-Za-z0-9_./\\~-]))[A-Za-z0-9_./\\~-]{2,300}")
_OTHER_LETTER = r"[^\x00-\x7f\W]"
WORLD_FILE = re.compile(
    rf"(?:[\w~-]{{1,40}}/){{0,8}}(?:(?<![\w.])[A-Za-z0-9_-]{{0,80}})?{_OTHER_LETTER}[\w-]{{0,120}}"
    rf"\.(?:{'|'.join(sorted(_SUFFIXES, key=len, reverse=True))})(?![A-Za-z0-9])"
)
"""A file name with letters beyond ASCII, perhaps with the words before it that a Chinese sentence does not part."""

_BEFORE_FILE = re.compile(
    r"请问|请|帮我|把|将|读取|读一下|打开|查看|看一下|看看|显示|删除|删掉|移除|写入到?|写到|写进|保存到|保存为|保存|存入|存到|存为"
    r"|复制到?|移动到?|列出|统计|翻译|发送|文件|文档|名为|叫做|里的|中的|以及|还有|和|与|及|到|在|从|给|读|写|看|删|存"
)
_NUMBERED = re.compile(r"\d[\d.,]*-?[A-Za-z]+(?:-[A-Za-z]+)*")
_SCIENTIFIC = re.compile(r"\d+(?:\.\d+)?[eE][+-]?\d+")
_CODED = re.compile(r"\d+-[A-Z]{1,3}")
_DOTTED_NUMBERS = re.compile(r"\d+(?:\.\d+){2,}")


def is_path(text: str) -> bool:
    """True if the text looks like the name of a file or folder."""
    last = re.split(r"[/\\]", text)[-1]
    suffix = last.rpartition(".")[2].lower() if "." in last else ""
    return bool(suffix in _SUFFIXES or text.startswith(("./", "../", "/", "~/")) or text.endswith("/"))


def is_identifier(text: str) -> bool:
    """True for `SKU-0042`, `B2_7`, `v1.2.3`, `10.0.0.1`; not for an amount with its unit such as `5km` or `3-day`."""
    if _DOTTED_NUMBERS.fullmatch(text) or _CODED.fullmatch(text):
        return True
    if not (re.search(r"[A-Za-z]", text) and re.search(r"\d", text)) or re.search(r"[/\\~]", text):
        return False
    return not _NUMBERED.fullmatch(text) and not _SCIENTIFIC.fullmatch(text)


def without_lead(name: str, *, parted: bool) -> str:
    """A file name without the words that led to it; `parted`: a space stands before it, so all of it is the name."""
    while not parted and (match := _BEFORE_FILE.match(name)):
        rest = name[match.end() :]
        if rest.startswith("."):
            break
        name = rest
    return name
