"""Pages made of blocks, as Markdown or as plain text for a terminal. `text.web_pages` writes them as HTML.

Text from models, tasks and users is not trusted: it cannot end a fence or mark anything up, and its secrets are masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from mulligan.core.records import Finding
from mulligan.text.diffs import diff
from mulligan.text.plain import clean, encodable, one_line
from mulligan.text.secrets import mask
from mulligan.text.states import STATES, state_of
from mulligan.text.truncate import truncate_text

_MARGIN = 20_000
"""The characters after a cut that are searched for secrets, so that no first half of a secret is shown."""


@dataclass(frozen=True)
class Heading:
    """A heading.

    Attributes:
        level: 1 for the page's title.
        mark: a name in `text.states`, which is shown with `word` after the text.
    """

    level: int
    text: str
    mark: str = ""
    word: str = ""


@dataclass(frozen=True)
class Line:
    """A paragraph that begins with `strong` in bold.

    Attributes:
        href: the address that `strong` links to. A page in its own file links only to its own anchors.
        mark, word: as those of `Heading`, at the beginning.
        small: whether the paragraph is less important than its neighbours.
    """

    text: str = ""
    strong: str = ""
    slanted: bool = False
    href: str = ""
    mark: str = ""
    word: str = ""
    small: bool = False

    @property
    def only_link(self) -> bool:
        """Whether the line is only a link to another page, which a page without links omits."""
        return self.small and bool(self.href) and not self.text and not self.href.startswith("#")


@dataclass(frozen=True)
class Facts:
    """Names and their texts. Empty texts are left out."""

    rows: Mapping[str, str]


@dataclass(frozen=True)
class Bar:
    """A result in one row: its sign and word, then names and their texts."""

    mark: str
    word: str
    rows: Mapping[str, str]


@dataclass(frozen=True)
class Jumps:
    """Links to parts of the page."""

    label: str
    lines: Sequence[Line]


@dataclass(frozen=True)
class Fence:
    """Preformatted text.

    Attributes:
        lines: the number of lines that a page shows; the rest is collapsed.
    """

    text: str
    lines: int = 60


@dataclass(frozen=True)
class Quote:
    """A quotation, such as a lesson."""

    text: str


@dataclass(frozen=True)
class Diff:
    """The changes from one text to another."""

    before: str
    after: str


@dataclass(frozen=True)
class Checks:
    """Checks that passed and failed."""

    findings: Sequence[Finding]


@dataclass(frozen=True)
class Table:
    """A table.

    The first `left` columns are left-aligned, and the others right-aligned.

    Attributes:
        links: whether the last cell of each row is the name of a file in the page's folder, and links to it.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    links: bool = False


@dataclass(frozen=True)
class Picture:
    """An image. data: its content, for a page in its own file. path: its address, for other pages.

    Markdown and terminals show only the `alt` text of an image of the studio, whose path begins with "/".
    """

    alt: str
    path: str
    media: str
    data: bytes


@dataclass(frozen=True)
class Fold:
    """Blocks that a page shows when the reader opens them."""

    summary: str
    blocks: Sequence[Block]
    open: bool = False


@dataclass(frozen=True)
class Section:
    """Blocks that belong together, the first of them a heading. id: the anchor. card: whether it has a frame."""

    id: str
    blocks: Sequence[Block]
    card: bool = False


Block: TypeAlias = (
    Heading | Line | Facts | Bar | Jumps | Fence | Quote | Diff | Checks | Table | Picture | Fold | Section
)
"""A part of a page."""


def leaves(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yields the blocks of a page without folds, sections and links. The summary of a fold becomes a line."""
    for block in blocks:
        if isinstance(block, Jumps) or (isinstance(block, Line) and block.only_link):
            continue
        if isinstance(block, Fold):
            yield Line(f"{block.summary}:")
        if isinstance(block, Fold | Section):
            yield from leaves(block.blocks)
        else:
            yield block


def check_line(finding: Finding) -> str:
    """Returns a check in words, without its sign: its name, its code, the expected value and the result."""
    check = ": ".join(part for part in (finding.where, finding.asked) if part)
    expected = f"expected {finding.expected}" if finding.expected and finding.expected not in finding.asked else ""
    got = f"got: {finding.got}" if finding.got else ""
    return "; ".join(part for part in (check, expected, got) if part)


# --- Markdown -----------------------------------------------------------------------------------------------------


def markdown(blocks: Iterable[Block]) -> str:
    """Returns the blocks as Markdown."""
    return encodable("\n\n".join(as_markdown(block) for block in leaves(blocks)) + "\n")


def as_markdown(block: Block, max_characters: int | None = None) -> str:
    """Returns a block as Markdown. max_characters: the length at which the text of a fence is cut."""
    match block:
        case Heading(level, text, _, word):
            return f"{'#' * level} {inline(f'{text}: {word}' if word else text)}"
        case Line(text, strong, slanted, word=word):
            parts = [inline(word), f"**{inline(strong)}**" if strong else "", inline(text)]
            line = " ".join(part for part in parts if part)
            return f"*{line}*" if slanted else line
        case Facts(rows):
            return "\n".join(f"- **{name}:** {inline(text)}" for name, text in rows.items() if text)
        case Bar(_, word, rows):
            cells = (f"{name} {inline(text)}" for name, text in rows.items() if text)
            return " · ".join([f"**{inline(word)}**", *cells])
        case Fence(text=text) | Quote(text):
            return _fenced(text, max_characters)
        case Diff(before, after):
            return _fenced(_diff_text(before, after), max_characters)
        case Checks(findings):
            return "\n".join(f"- {_sign(finding)} {inline(check_line(finding))}" for finding in findings)
        case Table(columns, rows, left, links):
            ruler = ["---" if n < left else "---:" for n in range(len(columns))]
            lines = [[inline(cell) for cell in row] for row in (columns, *rows)]
            if links:
                for line, row in zip(lines[1:], rows, strict=True):
                    line[-1] = f"[{line[-1]}]({_target(row[-1])})"
            return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], ruler, *lines[1:]))
        case Picture(alt, path):
            return inline(alt) if path.startswith("/") else f"![{inline(alt)}]({_target(path)})"
        case Fold() | Section() | Jumps():
            return "\n\n".join(as_markdown(leaf, max_characters) for leaf in leaves([block]))


def _diff_text(before: str, after: str) -> str:
    lines = diff(clean(mask(before)), clean(mask(after)))
    return "\n".join(line.text if line.sign == "@" else f"{line.sign} {line.text}" for line in lines)


def _sign(finding: Finding) -> str:
    return STATES[state_of(finding.passed)].symbol


def _target(path: str) -> str:
    """Returns the target of a Markdown link. Characters that would end it are encoded as in a URL."""
    return f"<{re.sub(r'[<>|]', lambda match: f'%{ord(match[0]):X}', ' '.join(mask(path).split()))}>"


def inline(text: str) -> str:
    """Returns the text on one line, with the syntax of Markdown and HTML escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", " ".join(mask(text).split()))


def _fenced(text: str, max_characters: int | None) -> str:
    """Returns the text in a fence that is longer than any run of backticks in it."""
    text = mask(text if max_characters is None else text[: max_characters + _MARGIN])[:max_characters]
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip(chr(10))}\n{fence}"


# --- a terminal -----------------------------------------------------------------------------------------------------


def plain(blocks: Iterable[Block]) -> str:
    return "".join(f"{text}\n" for _, text in paragraphs(blocks))


def paragraphs(blocks: Iterable[Block], max_tokens: int | None = None) -> Iterator[tuple[Block, str]]:
    """Yields each block with its text, which begins with an empty line unless the block belongs to the one before.

    max_tokens: the tokens of a long text that are shown, from its beginning and its end.
    """
    before: Block | None = None
    for block in leaves(blocks):
        close = isinstance(before, Line | Heading) and isinstance(block, Fence | Quote | Diff | Checks)
        close = close or (isinstance(before, Line) and isinstance(block, Line) and (before.small or block.small))
        yield block, encodable(f"{'' if close or before is None else chr(10)}{_as_plain(block, max_tokens)}")
        before = block


def _as_plain(block: Block, max_tokens: int | None = None) -> str:
    match block:
        case Heading(level, text, _, word):
            line = _flat(f"{text}: {word}" if word else text)
            return f"{line}\n{('=' if level == 1 else '-') * len(line)}"
        case Line(text, strong, word=word):
            return " ".join(part for part in (_flat(word), _flat(strong), _flat(text)) if part)
        case Facts(rows):
            width = max((len(name) for name, text in rows.items() if text), default=0)
            return "\n".join(f"{name.ljust(width)}  {_flat(text)}" for name, text in rows.items() if text)
        case Bar(_, word, rows):
            return ", ".join([_flat(word), *(f"{name} {_flat(text)}" for name, text in rows.items() if text)])
        case Fence(text=text) | Quote(text):
            return _indented(clean(mask(text)).strip("\n"), max_tokens)
        case Diff(before, after):
            return _indented(_diff_text(before, after), max_tokens)
        case Checks(findings):
            return "\n".join(_plain_check(finding, max_tokens) for finding in findings)
        case Table(columns, rows, left):
            lines = [[_flat(cell) for cell in line] for line in (columns, *rows)]
            widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
            return "\n".join(_aligned(line, widths, left) for line in lines)
        case Picture(alt, path):
            return _flat(alt if path.startswith("/") else f"{alt}: {path}")
        case Fold() | Section() | Jumps():
            return "\n\n".join(_as_plain(leaf) for leaf in leaves([block]))


def _plain_check(finding: Finding, max_tokens: int | None) -> str:
    """Returns a check on one line. The output of a failed check follows if it has several lines."""
    has_lines = "\n" in finding.got.strip()
    line = f"{_sign(finding)} {_flat(check_line(replace(finding, got='') if has_lines else finding))}"
    output = _indented(clean(mask(finding.got)).strip("\n"), max_tokens) if has_lines and not finding.passed else ""
    return f"{line}\n{output}" if output else line


def _indented(text: str, max_tokens: int | None) -> str:
    text = text if max_tokens is None else truncate_text(text, max_tokens)
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def _aligned(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    sized = zip(cells, widths, strict=True)
    return "  ".join(c.ljust(w) if n < left else c.rjust(w) for n, (c, w) in enumerate(sized)).rstrip()


def _flat(text: str) -> str:
    return one_line(mask(text), 10_000)
