from __future__ import annotations

import inspect

import pytest

from taoloop.tools.docstrings import argument_descriptions, first_paragraph
from taoloop.tools.function import tool

GOOGLE = """Book a table.

    Args:
        place (Dict[str, (int)], optional): Where it stands,
            in a word.
        guests:
            How many come: 1 to 20.

    Returns:
        place: not an argument
    """
NUMPY = """Book a table.

    Parameters
    ----------
    place : {'garden', 'hall'}, optional
        Where it stands,
        in a word.

        A second paragraph.
    guests
        How many come: 1 to 20.

    Returns
    -------
    place : str
        Not an argument.
    """
REST = """Book a table.

    :param str place: Where it stands,
        in a word.
    :type place: str
    :param guests: How many come: 1 to 20.
    :returns: the place
    :raises ValueError: no such place
    """
EPYTEXT = """Book a table.
    @param place: Where it stands,
      in a word.
    @type place: str
    @param guests: How many come: 1 to 20.
    @return: the place
    """


@pytest.mark.parametrize("doc", [GOOGLE, NUMPY, REST, EPYTEXT])
def test_each_style_describes_the_arguments_of_a_tool(doc: str) -> None:
    def book(place: str, guests: int) -> str:
        return f"{place} {guests}"

    book.__doc__ = doc
    card = tool(book).card
    assert card.purpose == "Book a table."
    assert card.parameters["place"]["description"] == "Where it stands, in a word."
    assert card.parameters["guests"]["description"] == "How many come: 1 to 20."


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        (
            "参数：\n    place：位置。\n    guests（int）：人数\n返回：\n    place：无",
            {"place": "位置。", "guests": "人数"},
        ),
        ("参数\n---\nplace : str\n    位置。", {"place": "位置。"}),
        ("Parameters\n----------\nplace, guests : str\n    Both.", {"place": "Both.", "guests": "Both."}),
        ("Other Parameters\n----------------\n**guests\n    More.", {"guests": "More."}),
        ("Args:\n  place: One.\n\n  guests: Two.\nSee also: x", {"place": "One.", "guests": "Two."}),
        ("Arguments:\n    *place: One.\nRaises:\n    guests: No.", {"place": "One."}),
        ("Args:\n    place: One.\n        guests: of the text", {"place": "One. guests: of the text"}),
        (":param place: One.\n:param int | None guests: Two.", {"place": "One.", "guests": "Two."}),
        (":param dict[str, int] place: One.", {"place": "One."}),
        ("Args:\n    `place`: One.\n    **guests** (int): Two.", {"place": "One.", "guests": "Two."}),
        ("Parameters:\n-----------\nplace: str\n    One.", {"place": "One."}),
        ("place: not in a section", {}),
        ("Args:\n    other: unknown name", {}),
        ("Parameters\n----------\n", {}),
        (":param place:", {}),
        ("", {}),
    ],
)
def test_only_arguments_are_described(doc: str, expected: dict[str, str]) -> None:
    assert argument_descriptions(inspect.cleandoc(f"X.\n\n{doc}"), ("place", "guests")) == expected


def test_the_purpose_ends_where_fields_begin() -> None:
    assert first_paragraph("Book a\ntable.\n:param place: Where.") == "Book a table."
    assert first_paragraph("Note: a\ntable.\n\nMore.") == "Note: a table."
    assert first_paragraph("") == ""
