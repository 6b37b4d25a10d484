"""Text in a message that its author marked as somebody else's: retrieved context, attachments, quotes. Pure.

Chat clients put what they found into the message of their user: Open WebUI its `<context>` with a `<source>` each,
LibreChat its attached documents, both a quote as lines that begin with `>`. They also quote a whole chat to have it
titled, tagged or summarised: there a client asks, not its user, so nothing from its first sentence on is the user's
own. A program marks such text by `<untrusted id="x7">` … `</untrusted id="x7">`. What is left are the user's own words;
only they endorse values and ask for acts.

The text inside a mark may hold marks itself, and nothing escapes them. So a marked part reaches from the first mark
that opens it to the last one that closes it, each kind of mark by itself: whatever stands inside can make the part
longer, never shorter. A part that is not closed reaches to the end, one that is not opened to the beginning. What
looks like a template of Open WebUI but has none of its marks reaches to the end too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from taoloop.core.text import lazy_pattern


class SplitText(NamedTuple):
    """A text, split by its marks."""

    own: str
    """The author's own words."""
    is_marked: bool
    """Whether anything is marked as somebody else's."""


_TAG = lazy_pattern(
    r"<\s*(?P<close>/\s*)?(?P<name>untrusted|context|chat_history|attached_files|source(?(close)|(?=\s+id\s*=)))(?![\w.:-])"
    r"(?P<rest>[^<>]*)(?P<end>>?)",
    re.IGNORECASE,
)
_ID = lazy_pattern(r"\s+id\s*=\s*(?:\"([^\"]*)\"|'([^']*)')\s*\Z", re.IGNORECASE)
_BLOCKS = (
    # LibreChat: the text of attached files
    (lazy_pattern(r"Attached document\(s\):\s*```"), lazy_pattern(r"\n[ \t]*```[ \t]*(?=\n|\Z)")),
    # LibreChat: what it found in attached files
    (
        lazy_pattern(r"The user has attached (?:a|\d+) files? to the conversation:"),
        lazy_pattern(r"- Avoid mentioning that you obtained the information from the context\."),
    ),
)
_BREAKS = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"  # of lines, wherever the text came from
_QUOTED_LINES = lazy_pattern(
    rf"(?:\A|(?<=[{_BREAKS}]))(?:[^\S{_BREAKS}]|[\u200b-\u200f\u2060\ufeff])*[>\uff1e\ufe65].*"
)
"""Lines that begin as a quote. Any break begins one; only the usual one ends it, for others may be within the quote."""
_QUOTE_MARKS = frozenset(">\uff1e\ufe65")
_TEMPLATE_HEAD = lazy_pattern(r"^[ \t]*### Task:", re.MULTILINE)
_HEADING = lazy_pattern(
    r"^[ \t]*#{2,4}[ \t]*\**"
    r"(?:(?P<chat>Chat History|Messages Being Compacted|Previous Summary)|Context|Guidelines|Sources)\b",
    re.MULTILINE | re.IGNORECASE,
)
"""A heading in Open WebUI's templates: over a chat, over other text of somebody else, or over rules for the answer."""
_CHAT_TASK = lazy_pattern(
    r"^[ \t]*(?:"
    # LibreChat: titles and summaries
    r"Analyze this conversation and provide:"
    r"|(?:Please generate|Provide|Write) a concise,?(?: 5-word-or-less)? title for (?:the|this) conversation"
    r"|Detect user language and write in the same language an extremely concise title"
    r"|Summarize the conversation by integrating new lines into the current summary"
    r"|\|\|>(?:User|Response):"
    # Open WebUI: titles, queries, emoji, tools and merged answers, as far as they have no `### Task:`
    r"|Here is the query:[ \t\r]*$"
    r"|Create a concise, 3-5 word (?:phrase|title) "
    r"|You are tasked with generating web search queries\."
    r"|Assess the need for a web search based on the current question"
    r"|Your task is to reflect the speaker's likely facial expression"
    r"|You have been provided with a set of responses from various models"
    r"|(?:Query:\s*)?History:\s*(?:USER|ASSISTANT|SYSTEM): \"\"\""
    r")",
    re.MULTILINE | re.IGNORECASE,
)
"""The first words of a message in which a client, not its user, asks for something about a chat that it quotes."""
_QUERY_TAG = lazy_pattern(r"</?user_query>", re.IGNORECASE)


def mark_untrusted(text: str, mark_id: str) -> str:
    """A text of somebody else between the marks of a program; `mark_id` must be unknown to whoever wrote it."""
    return f'<untrusted id="{mark_id}">\n{text}\n</untrusted id="{mark_id}">'


def split_marked(text: str) -> SplitText:
    """Split a text of a person into their own words and what they marked as somebody else's."""
    parts = sorted((*_tagged_parts(text), *_blocks(text), *_quotes(text), *_chat_tasks(text)))
    if not parts:
        return SplitText(text, is_marked=False)
    parts.insert(0, _template_head(text, parts[0][0]))
    words, position = [], 0
    for start, end in parts:
        if start > position:
            words.append(text[position:start])
        position = max(position, end)
    words.append(text[position:])
    return SplitText("\n".join(_QUERY_TAG.sub("\n", part) for part in words).strip(), is_marked=True)


def _tagged_parts(text: str) -> Iterator[tuple[int, int]]:
    """The parts between tags: of each name, and of each id of `untrusted`, from the first tag to the last."""
    if "<" not in text:
        return
    starts: dict[str, int] = {}
    ends: dict[str, int] = {}
    for tag in _TAG.finditer(text):
        key, is_closing = _key(tag), bool(tag["close"])
        if key is None:  # no mark as it must be: what follows cannot be told apart, and before a closing one neither
            yield (0, len(text)) if is_closing else (tag.start(), len(text))
        else:
            starts.setdefault(key, 0 if is_closing else tag.start())
            ends[key] = tag.end() if is_closing else len(text)
    yield from ((start, ends[key]) for key, start in starts.items())


def _key(tag: re.Match[str]) -> str | None:
    """What a tag belongs with: its name, and the id of `untrusted`; None for one that is not well formed."""
    name, rest = tag["name"].lower(), tag["rest"]
    if not tag["end"]:
        return None
    if name != "untrusted" or not rest.strip():
        return name
    match = _ID.fullmatch(rest)
    return None if match is None else f"untrusted {match[1] if match[1] is not None else match[2]}"


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """The parts between two phrases."""
    for opening, closing in _BLOCKS:
        if (first := opening.search(text)) is not None:
            end = max((match.end() for match in closing.finditer(text, first.end())), default=len(text))
            yield first.start(), end


def _chat_tasks(text: str) -> Iterator[tuple[int, int]]:
    """What a client asks about a chat that it quotes, and a template whose quoted text has no mark: to the end."""
    if (match := _CHAT_TASK.search(text)) is not None:
        yield match.start(), len(text)
    if (head := _TEMPLATE_HEAD.search(text)) is not None and _has_no_query(text, head.end()):
        yield head.start(), len(text)


def _has_no_query(text: str, start: int) -> bool:
    """Whether what follows the first line of a template cannot be split, or quotes a chat."""
    tag = _TAG.search(text, start)
    if tag is None or tag["close"]:  # the text of somebody else may have closed what nothing has opened
        return _HEADING.search(text, start) is not None
    return tag["name"].lower() == "chat_history" or any(
        heading["chat"] for heading in _HEADING.finditer(text, start, tag.start())
    )


def _quotes(text: str) -> Iterator[tuple[int, int]]:
    return iter(()) if _QUOTE_MARKS.isdisjoint(text) else (match.span() for match in _QUOTED_LINES.finditer(text))


def _template_head(text: str, end: int) -> tuple[int, int]:
    """What Open WebUI's template says to the model before the first marked part; an empty part if it is not there."""
    head = _TEMPLATE_HEAD.search(text, 0, end)
    return (head.start(), end) if head is not None else (0, 0)
