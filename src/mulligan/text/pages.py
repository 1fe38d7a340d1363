"""Pages for people, made of a few kinds of blocks, written as Markdown, as HTML or as plain text for a terminal.

Text from models, tasks and users is foreign: in fences it cannot end the fence, elsewhere it cannot mark anything up.
Secrets are masked in all of it.
"""

from __future__ import annotations

import base64
import html as escaping
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from mulligan.text.plain import clean, encodable, one_line
from mulligan.text.secrets import mask

# Characters behind a cut that are looked through for secrets, so that none is shown by its first half.
_MARGIN = 20_000


@dataclass(frozen=True)
class Heading:
    """level: 1 is the page's own."""

    level: int
    text: str


@dataclass(frozen=True)
class Line:
    """A paragraph; `strong` stands before the text, in bold."""

    text: str = ""
    strong: str = ""
    slanted: bool = False


@dataclass(frozen=True)
class Facts:
    """Names of ours, and what is known of each; what is empty is left out."""

    rows: Mapping[str, str]


@dataclass(frozen=True)
class Fence:
    """Text as it is, line by line."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of cells below their columns; the first `left` columns begin at the left, numbers end at the right.

    links: the last cell of a row is the name of a file beside the page, and leads there.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    links: bool = False


@dataclass(frozen=True)
class Picture:
    """data: the file itself, for a page that stands alone; path: where it is, for one that refers to it."""

    alt: str
    path: str
    media: str
    data: bytes


Block: TypeAlias = Heading | Line | Facts | Fence | Table | Picture


# --- Markdown -----------------------------------------------------------------------------------------------------


def markdown(blocks: Iterable[Block]) -> str:
    return encodable("\n\n".join(as_markdown(block) for block in blocks) + "\n")


def as_markdown(block: Block, room: int | None = None) -> str:
    """`room`: of a fence, this many characters of its text at most."""
    match block:
        case Heading(level, text):
            return f"{'#' * level} {inline(text)}"
        case Line(text, strong, slanted):
            parts = [f"**{inline(strong)}**" if strong else "", inline(text)]
            said = " ".join(part for part in parts if part)
            return f"*{said}*" if slanted else said
        case Facts(rows):
            return "\n".join(f"- **{name}:** {inline(said)}" for name, said in rows.items() if said)
        case Fence(text):
            return _fenced(text, room)
        case Table(columns, rows, left, links):
            ruler = ["---" if n < left else "---:" for n in range(len(columns))]
            told = [[inline(cell) for cell in row] for row in rows]
            if links:
                files = (_target(row[-1]) for row in rows)
                told = [[*cells[:-1], f"[{cells[-1]}]({file})"] for cells, file in zip(told, files, strict=True)]
            return "\n".join(f"| {' | '.join(line)} |" for line in ([inline(cell) for cell in columns], ruler, *told))
        case Picture(alt, path):
            return f"![{inline(alt)}]({_target(path)})"


def _target(path: str) -> str:
    """Where a link of Markdown leads, with what would end it written as a URL has it."""
    return f"<{re.sub(r'[<>|]', lambda found: f'%{ord(found[0]):X}', ' '.join(mask(path).split()))}>"


def inline(text: str) -> str:
    """One line, with what Markdown or HTML would act on escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", " ".join(mask(text).split()))


def _fenced(text: str, room: int | None) -> str:
    """A fence longer than any run of backticks in the text, so that nothing in it can end it."""
    text = mask(text if room is None else text[: room + _MARGIN])[:room]
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip(chr(10))}\n{fence}"


# --- HTML -----------------------------------------------------------------------------------------------------------

_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def html(title: str, blocks: Iterable[Block]) -> str:
    """One file that needs no other: no scripts, and nothing is loaded from anywhere."""
    body = encodable("\n".join(_as_html(block) for block in blocks))
    style = Path(__file__).with_name("pages.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_ALLOWED}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_safe(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _as_html(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"<h{level}>{_safe(text)}</h{level}>"
        case Line(text, strong, slanted):
            said = " ".join(
                part for part in (f"<strong>{_safe(strong)}</strong>" if strong else "", _safe(text)) if part
            )
            return f"<p><em>{said}</em></p>" if slanted else f"<p>{said}</p>"
        case Facts(rows):
            told = "\n".join(f"<dt>{_safe(name)}</dt><dd>{_safe(said)}</dd>" for name, said in rows.items() if said)
            return f"<dl>\n{told}\n</dl>"
        case Fence(text):
            return f"<pre>{_safe(text, folded=False)}</pre>"
        case Table(columns, rows, left, links):
            head = _cells("th", columns, left)
            body = "\n".join(_cells("td", row, left, links) for row in rows)
            return f"<table>\n<thead>\n{head}\n</thead>\n<tbody>\n{body}\n</tbody>\n</table>"
        case Picture(alt, _, media, data):
            kept = base64.b64encode(data).decode()
            return f'<p><img alt="{_safe(alt)}" src="data:{media};base64,{kept}"></p>'


def _cells(tag: str, cells: Sequence[str], left: int, links: bool = False) -> str:
    marks = (' class="left"' if n < left else "" for n in range(len(cells)))
    told = [_safe(cell) for cell in cells]
    if links:
        told[-1] = f'<a href="./{told[-1]}">{told[-1]}</a>'
    return "<tr>" + "".join(f"<{tag}{m}>{t}</{tag}>" for t, m in zip(told, marks, strict=True)) + "</tr>"


def _safe(text: str, *, folded: bool = True) -> str:
    said = clean(mask(text))
    return escaping.escape(" ".join(said.split()) if folded else said)


# --- a terminal -----------------------------------------------------------------------------------------------------


def plain(blocks: Iterable[Block]) -> str:
    return encodable("\n\n".join(_as_plain(block) for block in blocks) + "\n")


def _as_plain(block: Block) -> str:
    match block:
        case Heading(level, text):
            said = _flat(text)
            return f"{said}\n{('=' if level == 1 else '-') * len(said)}"
        case Line(text, strong):
            return " ".join(part for part in (_flat(strong), _flat(text)) if part)
        case Facts(rows):
            wide = max((len(name) for name, said in rows.items() if said), default=0)
            return "\n".join(f"{name.ljust(wide)}  {_flat(said)}" for name, said in rows.items() if said)
        case Fence(text):
            return "\n".join(f"    {line}".rstrip() for line in clean(mask(text)).splitlines())
        case Table(columns, rows, left):
            lines = [[_flat(cell) for cell in line] for line in (columns, *rows)]
            widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
            return "\n".join(_aligned(line, widths, left) for line in lines)
        case Picture(alt, path):
            return f"{_flat(alt)}: {_flat(path)}"


def _aligned(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    sized = zip(cells, widths, strict=True)
    return "  ".join(c.ljust(w) if n < left else c.rjust(w) for n, (c, w) in enumerate(sized)).rstrip()


def _flat(text: str) -> str:
    return one_line(mask(text), 10_000)
