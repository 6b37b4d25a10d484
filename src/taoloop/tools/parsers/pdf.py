"""The text of PDF files, page by page, with pypdf."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import Any

from taoloop.tools.parsers.isolated_parser import UnreadableFileError

_MAX_LISTED = 10


def read_pdf(data: bytes, *, max_pages: int, max_chars: int) -> Iterator[dict[str, Any]]:
    """Each page as `{"page": number, "text": …}`, then `{"notes": …}` about what could not be read.

    Raises:
        UnreadableFileError: it is not a PDF, is encrypted, or contains no text.
    """
    from pypdf import PdfReader  # noqa: PLC0415  # an optional dependency, and heavy
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError  # noqa: PLC0415  # as above

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs what it repairs
    if b"%PDF-" not in data[:1_024]:
        raise UnreadableFileError("it is not a PDF", "Correct its suffix, or save it as PDF.")
    encrypted = UnreadableFileError("it is encrypted", "Save it without a password.")
    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        count = len(reader.pages)
    except (FileNotDecryptedError, DependencyError):
        raise encrypted from None
    notes, failed, chars = [], [], 0
    for number in range(1, min(count, max_pages) + 1):
        try:
            text = reader.pages[number - 1].extract_text()
        except (FileNotDecryptedError, DependencyError):
            raise encrypted from None
        except (PyPdfError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
            failed.append(number)
            continue
        chars += len(text)
        if chars > max_chars:
            notes.append(f"it has more than {max_chars:,} characters; the pages after page {number - 1} are omitted")
            break
        yield {"page": number, "text": text}
    if not count:
        raise UnreadableFileError("it has no pages", "Save it again.")
    if not chars and not failed:
        raise UnreadableFileError(
            f"there is no text on its {count} page{'s' if count > 1 else ''}; it was probably scanned",
            "Run text recognition (OCR) on it.",
        )
    if count > max_pages:
        notes.append(f"it has {count:,} pages; only the first {max_pages:,} are read")
    if failed:
        listed = ", ".join(map(str, failed[:_MAX_LISTED])) + (" …" if len(failed) > _MAX_LISTED else "")
        notes.append(f"{len(failed)} of its {count} pages cannot be read: {listed}")
    yield {"notes": notes}
