"""Pages made of blocks as HTML: fragments for the studio, and files that need no other.

All text is foreign: it is masked, without control characters, and escaped, whatever block it stands in.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from mulligan.text.colours import coloured
from mulligan.text.diffs import DiffLine, diff
from mulligan.text.pages import (
    Bar,
    Block,
    Checks,
    Diff,
    Facts,
    Fence,
    Fold,
    Heading,
    Jumps,
    Line,
    Picture,
    Quote,
    Section,
    Table,
)
from mulligan.text.plain import clean, encodable
from mulligan.text.secrets import mask
from mulligan.text.states import STATES

LINES = 60
"""Lines of a comparison that are shown at once; the rest is folded."""
CHARACTERS = 6000
"""Characters of them."""

KINDS = {
    "passed": "ok",
    "failed": "bad",
    "unjudged": "unknown",
    "error": "error",
    "paused": "paused",
    "running": "going",
}
"""Classes of badges by the names of `text.states`."""

_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_ANCHOR = re.compile(r"#[\w-]+")


def html(title: str, blocks: Iterable[Block]) -> str:
    """One file that needs no other: no scripts, and nothing is loaded from anywhere."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_ALLOWED}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(title)}</title>\n<style>\n{style_sheet().read_text(encoding='utf-8')}</style>\n</head>\n"
        f'<body>\n<main class="alone">\n{fragment(blocks, alone=True)}\n</main>\n</body>\n</html>\n'
    )


def fragment(blocks: Iterable[Block], *, alone: bool = False) -> str:
    """The blocks as HTML. alone: pictures stand in the page itself, and links lead nowhere else."""
    parts, above = list[str](), ""
    for block in blocks:
        above = block.text if isinstance(block, Heading) else above
        parts.append(_block(block, alone, above))
    return encodable("\n".join(parts))


def style_sheet() -> Path:
    """The file with the style of these pages, which a page that stands alone has in itself."""
    return Path(__file__).with_name("web_pages.css")


def badge_kind(mark: str) -> str:
    """The class of a badge in the style sheet; "" for a plain one. mark: a name of `text.states`."""
    return KINDS.get(mark, "")


def badge_signs() -> Mapping[str, str]:
    """The sign of each kind of badge."""
    return {"": STATES["note"].symbol, **{kind: STATES[mark].symbol for mark, kind in KINDS.items()}}


def badge(mark: str, word: str) -> str:
    """A sign and a word, so that colour is not needed. mark: a name of `text.states`."""
    sign = STATES[mark].symbol
    return f'<span class="badge {badge_kind(mark)}"><span aria-hidden="true">{sign}</span> {safe(word)}</span>'


def _block(block: Block, alone: bool, above: str) -> str:
    """above: the heading above it, which tells the regions of tables with the same columns apart."""
    match block:
        case Heading(level, text, mark, word):
            return f"<h{level}>{safe(text)}{f' {badge(mark, word)}' if mark else ''}</h{level}>"
        case Line():
            return _line(block, alone)
        case Facts(rows):
            listed = "\n".join(f"<dt>{safe(name)}</dt><dd>{safe(text)}</dd>" for name, text in rows.items() if text)
            return f'<dl class="facts">\n{listed}\n</dl>'
        case Bar(mark, word, rows):
            cells = (f'<span><span class="muted">{safe(k)}</span> {safe(v)}</span>' for k, v in rows.items() if v)
            return f'<p class="bar">{" ".join((badge(mark, word), *cells))}</p>'
        case Jumps(label, lines):
            items = "".join(
                f'<li><a href="{safe(one.href)}">{safe(one.strong)}</a> {badge(one.mark, one.word)}</li>'
                for one in lines
            )
            return f'<nav aria-label="{safe(label)}" class="jumps"><ol>{items}</ol></nav>'
        case Fence(text, lines):
            return _text(text, lines)
        case Quote(text):
            return f'<blockquote class="lesson said">{_kept(text)}</blockquote>'
        case Diff(before, after):
            return _diff(diff(clean(mask(before)), clean(mask(after))))
        case Checks(findings):
            rows = "".join(
                f"<li>{_check(one.passed, one.where, one.asked, one.expected, one.got)}</li>" for one in findings
            )
            return f'<ul class="checks">{rows}</ul>' if rows else ""
        case Table():
            return _table(block, above)
        case Picture(alt, path, media, data):
            source = f"data:{media};base64,{base64.b64encode(data).decode()}" if alone else safe(path)
            return f'<p><img alt="{safe(alt)}" src="{source}"></p>'
        case Fold(summary, blocks, open):
            inside = fragment(blocks, alone=alone)
            return f"<details{' open' if open else ''}><summary>{safe(summary)}</summary>\n{inside}\n</details>"
        case Section(id, blocks, card):
            inside = fragment(blocks, alone=alone)
            title = next((one.text for one in blocks if isinstance(one, Heading)), id)
            kind = ' class="card"' if card else ""
            return f'<section id="{safe(id)}" aria-label="{safe(title)}"{kind}>\n{inside}\n</section>'


def _table(block: Table, above: str) -> str:
    head = _cells("th", block.columns, block.left)
    body = "\n".join(_cells("td", row, block.left, block.links) for row in block.rows)
    label = safe(": ".join(filter(None, (above, ", ".join(block.columns)))))
    table = f"<table>\n<thead>\n{head}\n</thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    return f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">{table}</div>'


def _line(line: Line, alone: bool) -> str:
    strong = safe(line.strong)
    if line.href and not (alone and not _ANCHOR.fullmatch(line.href)):
        strong = f'<a href="{safe(line.href)}">{strong}</a>'
    elif strong:
        strong = f"<strong>{strong}</strong>"
    parts = (badge(line.mark, line.word) if line.mark else "", strong, safe(line.text))
    if alone and line.only_link:
        return ""
    text = " ".join(part for part in parts if part)
    kind = ' class="muted small"' if line.small else ""
    return f"<p{kind}>{f'<em>{text}</em>' if line.slanted else text}</p>"


def _check(passed: bool, where: str, asked: str, expected: str, got: str) -> str:
    name = where or asked
    more = [("check", asked if where else ""), ("expected", expected), ("got", got)] if not passed else []
    rows = "".join(f"<dt>{title}</dt><dd>{_said(text)}</dd>" for title, text in more if text)
    mark = "passed" if passed else "failed"
    return f"{badge(mark, mark)} <code>{_kept(name)}</code>{f'<dl class=facts>{rows}</dl>' if rows else ''}"


def _said(text: str) -> str:
    """A value beside its name; several lines as they are."""
    return _text(text, LINES) if "\n" in text.strip() else f"<code>{_kept(text)}</code>"


def _text(text: str, most: int) -> str:
    """Text as it is, with colours where it is code; its end is folded where it is long."""
    shown = clean(mask(text)).rstrip("\n") or "(empty)"
    first = "\n".join(shown.split("\n")[:most])[:CHARACTERS]
    if len(shown) - len(first) < CHARACTERS / 10 and shown.count("\n") < most * 1.1:
        return f"<pre>{_coloured(shown)}</pre>"
    lines, rest = shown.count("\n") + 1, shown[len(first) :].removeprefix("\n")
    more = f"Show all {lines:,} lines" if lines > most else f"Show all {len(shown):,} characters"
    return f"<pre>{_coloured(first)}</pre>\n{_rest(more, f'<pre>{_coloured(rest)}</pre>')}"


def _rest(summary: str, inside: str) -> str:
    return f'<details class="rest"><summary>{summary}</summary>{inside}</details>'


def _coloured(text: str) -> str:
    return "".join(
        f'<span class="c-{kind}">{escape(part)}</span>' if kind else escape(part) for part, kind in coloured(text)
    )


def _diff(lines: Sequence[DiffLine]) -> str:
    """Signs stand before the lines, so that colour is not needed."""
    if not lines:
        return "<p>Nothing changed.</p>"
    first = f'<pre class="diff">{"".join(map(_diff_line, lines[:LINES]))}</pre>'
    if len(lines) <= LINES * 1.1:
        return f'<pre class="diff">{"".join(map(_diff_line, lines))}</pre>'
    rest = f'<pre class="diff">{"".join(map(_diff_line, lines[LINES:]))}</pre>'
    return f"{first}\n{_rest(f'Show all {len(lines):,} lines', rest)}"


def _diff_line(line: DiffLine) -> str:
    if line.sign == "@":
        return f'<span class="at">{escape(line.text)}</span>'
    words = "".join(f"<b>{escape(part)}</b>" if changed else escape(part) for part, changed in line.parts)
    tag, what = {"+": ("ins", "added"), "-": ("del", "removed")}.get(line.sign, ("span", ""))
    spoken = f'<span class="hidden">{what}: </span>' if what else ""
    return f"<{tag}>{spoken}{line.sign} {words}</{tag}>"


def _cells(tag: str, cells: Sequence[str], left: int, links: bool = False) -> str:
    marks = ("" if n < left else ' class="number"' for n in range(len(cells)))
    scope = ' scope="col"' if tag == "th" else ""
    listed = [safe(cell) for cell in cells]
    if links:
        listed[-1] = f'<a href="./{listed[-1]}">{listed[-1]}</a>'
    return "<tr>" + "".join(f"<{tag}{scope}{m}>{t}</{tag}>" for t, m in zip(listed, marks, strict=True)) + "</tr>"


def harmless(text: str) -> str:
    """Foreign text without secrets and control characters; who shows it escapes it."""
    return encodable(clean(mask(text)))


def safe(text: str) -> str:
    """In one line."""
    return escape(" ".join(clean(mask(text)).split()))


def _kept(text: str) -> str:
    """With its lines."""
    return escape(clean(mask(text)))
