from __future__ import annotations

from pathlib import Path

import pytest

from taoloop.tools.documents import DocumentFolder

GUIDE = """# Handbook

Welcome to the company.

## Leaving

### Notice

The notice period is three months. It is given in writing.

```text
# not a heading
```

## Travel

Trains before planes. 出差优先乘坐火车。
"""
CONTRACT = "第一条 本合同的通知期为三个月，必须以书面形式提出。\n\n第二条 违约金为合同金额的百分之十。\n"
PAGE = """<!doctype html>
<html><head><title>Office  rules</title><style>p { color: red }</style></head>
<body>
<h1>Office rules</h1>
<p>Coffee is in the <b>kitchen</b>.</p>

<p>The printer &amp; the scanner are on the second floor.</p>
</body></html>
"""


def pdf(*pages: str) -> bytes:
    """A PDF with one line of text on each page; an empty text gives a page without any."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET" if text else ""
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {len(objects)} 0 R >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n" + "".join(f"{place:010} 00000 n \n" for place in places)
    return (out + f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").encode()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a document of every kind."""
    folder = tmp_path / "documents"
    (folder / "office").mkdir(parents=True)
    (folder / "handbook.md").write_text(GUIDE, encoding="utf-8")
    (folder / "contract.txt").write_bytes(CONTRACT.encode("gbk"))
    (folder / "office" / "rules.html").write_text(PAGE, encoding="utf-8")
    (folder / "office" / "report.pdf").write_bytes(pdf("Sales rose in spring", "Costs fell in autumn"))
    return folder


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder with text and Markdown only, which is quick to read."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "handbook.md").write_text(GUIDE, encoding="utf-8")
    (folder / "contract.txt").write_bytes(CONTRACT.encode("gbk"))
    return folder


def folder_of(path: Path, **more: object) -> DocumentFolder:
    """The settings for a folder, with its index beside it."""
    return DocumentFolder(path=path, index=path.parent / "index.db", **more)  # type: ignore[arg-type]  # any field
