"""Writes pages as HTML: fragments for the studio, and files that need no others.

No text is trusted: in every block, secrets are masked, control characters removed and HTML escaped.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from mulligan.core.records import Finding
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
"""The lines of a text or comparison that are shown before the rest is folded."""
CHARACTERS = 6000
"""The characters of a text that are shown before the rest is folded."""

_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_ANCHOR = re.compile(r"#[\w-]+")


def html(title: str, blocks: Iterable[Block]) -> str:
    """Returns a file that needs no others: it has no scripts and loads nothing."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_ALLOWED}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(title)}</title>\n<style>\n{style_sheet().read_text(encoding='utf-8')}</style>\n</head>\n"
        f'<body>\n<main class="alone">\n{fragment(blocks, alone=True)}\n</main>\n</body>\n</html>\n'
    )


def fragment(blocks: Iterable[Block], *, alone: bool = False) -> str:
    """Returns the blocks as HTML.

    Args:
        alone: whether the file must contain its pictures and have no links to other pages.
    """
    parts, heading = list[str](), ""
    for block in blocks:
        heading = block.text if isinstance(block, Heading) else heading
        parts.append(_block(block, alone, heading))
    return encodable("\n".join(parts))


def style_sheet() -> Path:
    """Returns the path of these pages' style sheet."""
    return Path(__file__).with_name("web_pages.css")


def badge(mark: str, word: str) -> str:
    """Returns a badge with a sign and a word, so that colour is not needed. mark: a name of `text.states`."""
    state = STATES[mark]
    return f'<span class="badge {state.css}"><span aria-hidden="true">{state.symbol}</span> {safe(word)}</span>'


def _block(block: Block, alone: bool, heading: str) -> str:
    """Returns a block as HTML. heading: the heading above it, which makes the labels of equal tables differ."""
    match block:
        case Heading(level, text, mark, word):
            return f"<h{level}>{safe(text)}{f' {badge(mark, word)}' if mark else ''}</h{level}>"
        case Line():
            return _line(block, alone)
        case Facts(rows):
            items = "\n".join(f"<dt>{safe(name)}</dt><dd>{safe(text)}</dd>" for name, text in rows.items() if text)
            return f'<dl class="facts">\n{items}\n</dl>'
        case Bar(mark, word, rows):
            cells = (f'<span><span class="muted">{safe(k)}</span> {safe(v)}</span>' for k, v in rows.items() if v)
            return f'<p class="bar">{" ".join((badge(mark, word), *cells))}</p>'
        case Jumps(label, lines):
            items = "".join(
                f'<li><a href="{safe(line.href)}">{safe(line.strong)}</a> {badge(line.mark, line.word)}</li>'
                for line in lines
            )
            return f'<nav aria-label="{safe(label)}" class="jumps"><ol>{items}</ol></nav>'
        case Fence(text, lines):
            return _text(text, lines)
        case Quote(text):
            return f'<blockquote class="lesson said">{_safe_lines(text)}</blockquote>'
        case Diff(before, after):
            return _diff(diff(clean(mask(before)), clean(mask(after))))
        case Checks(findings):
            rows = "".join(f"<li>{_check(finding)}</li>" for finding in findings)
            return f'<ul class="checks">{rows}</ul>' if rows else ""
        case Table():
            return _table(block, heading)
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


def _table(block: Table, heading: str) -> str:
    head = _cells("th", block.columns, block.left)
    body = "\n".join(_cells("td", row, block.left, block.links) for row in block.rows)
    label = safe(": ".join(filter(None, (heading, ", ".join(block.columns)))))
    table = f"<table>\n<thead>\n{head}\n</thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    return f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">{table}</div>'


def _line(line: Line, alone: bool) -> str:
    if alone and line.only_link:
        return ""
    strong = safe(line.strong)
    if line.href and (not alone or _ANCHOR.fullmatch(line.href)):
        strong = f'<a href="{safe(line.href)}">{strong}</a>'
    elif strong:
        strong = f"<strong>{strong}</strong>"
    parts = (badge(line.mark, line.word) if line.mark else "", strong, safe(line.text))
    text = " ".join(part for part in parts if part)
    kind = ' class="muted small"' if line.small else ""
    return f"<p{kind}>{f'<em>{text}</em>' if line.slanted else text}</p>"


def _check(finding: Finding) -> str:
    name = finding.where or finding.asked
    check = finding.asked if finding.where else ""
    details = [("check", check), ("expected", finding.expected), ("got", finding.got)] if not finding.passed else []
    rows = "".join(f"<dt>{title}</dt><dd>{_value(text)}</dd>" for title, text in details if text)
    mark = "passed" if finding.passed else "failed"
    return f"{badge(mark, mark)} <code>{_safe_lines(name)}</code>{f'<dl class=facts>{rows}</dl>' if rows else ''}"


def _value(text: str) -> str:
    return _text(text, LINES) if "\n" in text.strip() else f"<code>{_safe_lines(text)}</code>"


def _text(text: str, max_lines: int) -> str:
    """Returns preformatted text, with colours if it is code. If it is long, its end is folded."""
    text = clean(mask(text)).rstrip("\n") or "(empty)"
    first = "\n".join(text.split("\n")[:max_lines])[:CHARACTERS]
    if len(text) - len(first) < CHARACTERS / 10 and text.count("\n") < max_lines * 1.1:
        return f"<pre>{_coloured(text)}</pre>"
    lines, rest = text.count("\n") + 1, text[len(first) :].removeprefix("\n")
    size = f"{lines:,} lines" if lines > max_lines else f"{len(text):,} characters"
    return f"<pre>{_coloured(first)}</pre>\n{_folded(size, f'<pre>{_coloured(rest)}</pre>')}"


def _folded(size: str, rest: str) -> str:
    return f'<details class="rest"><summary>Show all {size}</summary>{rest}</details>'


def _coloured(text: str) -> str:
    return "".join(
        f'<span class="c-{kind}">{escape(part)}</span>' if kind else escape(part) for part, kind in coloured(text)
    )


def _diff(lines: Sequence[DiffLine]) -> str:
    """Returns a comparison with a sign before each line, so that colour is not needed."""
    if not lines:
        return "<p>Nothing changed.</p>"
    if len(lines) > LINES * 1.1:
        return f"{_diff_lines(lines[:LINES])}\n{_folded(f'{len(lines):,} lines', _diff_lines(lines[LINES:]))}"
    return _diff_lines(lines)


def _diff_lines(lines: Sequence[DiffLine]) -> str:
    return f'<pre class="diff">{"".join(map(_diff_line, lines))}</pre>'


def _diff_line(line: DiffLine) -> str:
    if line.sign == "@":
        return f'<span class="at">{escape(line.text)}</span>'
    words = "".join(f"<b>{escape(part)}</b>" if changed else escape(part) for part, changed in line.parts)
    tag, change = {"+": ("ins", "added"), "-": ("del", "removed")}.get(line.sign, ("span", ""))
    label = f'<span class="hidden">{change}: </span>' if change else ""
    return f"<{tag}>{label}{line.sign} {words}</{tag}>"


def _cells(tag: str, cells: Sequence[str], left: int, links: bool = False) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    texts = [safe(cell) for cell in cells]
    if links:
        texts[-1] = f'<a href="./{texts[-1]}">{texts[-1]}</a>'
    numbers = ("" if n < left else ' class="number"' for n in range(len(cells)))
    return "<tr>" + "".join(f"<{tag}{scope}{n}>{t}</{tag}>" for t, n in zip(texts, numbers, strict=True)) + "</tr>"


def harmless(text: str) -> str:
    """Returns untrusted text without secrets and control characters. It does not escape HTML."""
    return encodable(clean(mask(text)))


def safe(text: str) -> str:
    """Returns untrusted text as one line of HTML."""
    return escape(" ".join(clean(mask(text)).split()))


def _safe_lines(text: str) -> str:
    """Returns untrusted text as HTML with its lines."""
    return escape(clean(mask(text)))
