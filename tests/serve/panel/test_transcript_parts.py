"""The parts of a transcript: every event has one place, and those around the events that matter are there at once."""

from __future__ import annotations

import pytest

from taoloop.serve.panel.transcript_parts import CHAPTER, SECTION, SHOWN, cut_chapter, cut_transcript


@pytest.mark.parametrize("last", [0, 49, 50, 99, 100, 999, 1_000, 1_002, 29_999])
@pytest.mark.parametrize("where", [0.0, 0.33, 0.5, 1.0])
def test_every_event_has_one_place(last: int, where: float) -> None:
    seq = int(last * where)
    parts = cut_transcript(0, last, {seq, last})
    assert [seq for part in parts for seq in range(part.first, part.last + 1)] == list(range(last + 1))
    shown = [part for part in parts if part.is_shown]
    assert {seq, last} <= {seq for part in shown for seq in range(part.first, part.last + 1)}
    assert all(part.last - part.first < (SHOWN if last > SECTION else SECTION) * 2 for part in shown)
    assert all(part.is_chapter == (part.last - part.first >= SECTION) for part in parts)


def test_what_is_far_away_is_a_chapter_and_a_chapter_becomes_sections() -> None:
    parts = cut_transcript(0, 29_999, {27_000})
    assert len(parts) == 29 + 9 + 2
    assert [part for part in parts if part.is_shown] == [(27_000, 27_023, True)]
    assert [part[:2] for part in cut_chapter(5_000, 5_250, ())] == [(5_000, 5_099), (5_100, 5_199), (5_200, 5_250)]
    assert all(part.last - part.first < CHAPTER for part in parts)


def test_a_small_section_is_shown_whole() -> None:
    assert cut_transcript(0, 40, {0}) == [(0, 40, True)]
