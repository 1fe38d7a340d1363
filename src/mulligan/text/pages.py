"""Pages for people, made of a few kinds of blocks, written as Markdown or as plain text for a terminal; as HTML by
`text.web_pages`.

Text from models, tasks and users is foreign: in fences it cannot end the fence, elsewhere it cannot mark anything up.
Secrets are masked in all of it.
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

# Characters behind a cut that are looked through for secrets, so that none is shown by its first half.
_MARGIN = 20_000


@dataclass(frozen=True)
class Heading:
    """level: 1 is the page's own. mark: a name of `text.states` whose sign stands behind the text, with `word`."""

    level: int
    text: str
    mark: str = ""
    word: str = ""


@dataclass(frozen=True)
class Line:
    """A paragraph; `strong` stands before the text, in bold.

    Attributes:
        href: where `strong` leads. Pages that stand alone follow only addresses within themselves.
        mark, word: as those of `Heading`, at the beginning.
        small: less important than what stands around it.
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
        """Whether it leads to another page and says nothing else, so that a page without links does without it."""
        return self.small and bool(self.href) and not self.text and not self.href.startswith("#")


@dataclass(frozen=True)
class Facts:
    """Names of ours, and what is known of each; what is empty is left out."""

    rows: Mapping[str, str]


@dataclass(frozen=True)
class Bar:
    """A result in one row: its sign and word, then names of ours and what is known of each."""

    mark: str
    word: str
    rows: Mapping[str, str]


@dataclass(frozen=True)
class Jumps:
    """Where parts of the page are: lines with an anchor each."""

    label: str
    lines: Sequence[Line]


@dataclass(frozen=True)
class Fence:
    """Text as it is, line by line. lines: that a page shows before the rest is folded."""

    text: str
    lines: int = 60


@dataclass(frozen=True)
class Quote:
    """Text as it is, with a line beside it, such as a lesson."""

    text: str


@dataclass(frozen=True)
class Diff:
    """What changed from one text to another."""

    before: str
    after: str


@dataclass(frozen=True)
class Checks:
    """Checks that passed and failed."""

    findings: Sequence[Finding]


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
    """data: the file itself, for a page that stands alone; path: where it is, for one that refers to it.

    A path of the studio ("/…") leads nowhere in Markdown or on a terminal: there the picture is named alone.
    """

    alt: str
    path: str
    media: str
    data: bytes


@dataclass(frozen=True)
class Fold:
    """Blocks that a page shows when its reader opens them."""

    summary: str
    blocks: Sequence[Block]
    open: bool = False


@dataclass(frozen=True)
class Section:
    """Blocks that belong together, the first of them a heading. id: its anchor. card: whether it has a frame."""

    id: str
    blocks: Sequence[Block]
    card: bool = False


Block: TypeAlias = (
    Heading | Line | Facts | Bar | Jumps | Fence | Quote | Diff | Checks | Table | Picture | Fold | Section
)
"""A part of a page, of one of these kinds."""


def leaves(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks without folds and sections, for a page that has none: a summary becomes a line of its own."""
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
    """A check in words, without its sign: its name, what it asks, what was expected and what came back."""
    asked = ": ".join(part for part in (finding.where, finding.asked) if part)
    expected = f"expected {finding.expected}" if finding.expected and finding.expected not in finding.asked else ""
    got = f"got: {finding.got}" if finding.got else ""
    return "; ".join(part for part in (asked, expected, got) if part)


# --- Markdown -----------------------------------------------------------------------------------------------------


def markdown(blocks: Iterable[Block]) -> str:
    """The blocks of a page as Markdown, with an empty line between them."""
    return encodable("\n\n".join(as_markdown(block) for block in leaves(blocks)) + "\n")


def as_markdown(block: Block, room: int | None = None) -> str:
    """`room`: of a fence, this many characters of its text at most."""
    match block:
        case Heading(level, text, _, word):
            return f"{'#' * level} {inline(f'{text}: {word}' if word else text)}"
        case Line(text, strong, slanted, word=word):
            parts = [inline(word), f"**{inline(strong)}**" if strong else "", inline(text)]
            said = " ".join(part for part in parts if part)
            return f"*{said}*" if slanted else said
        case Facts(rows):
            return "\n".join(f"- **{name}:** {inline(said)}" for name, said in rows.items() if said)
        case Bar(_, word, rows):
            return " · ".join(
                [f"**{inline(word)}**", *(f"{name} {inline(text)}" for name, text in rows.items() if text)]
            )
        case Fence(text=text) | Quote(text):
            return _fenced(text, room)
        case Diff(before, after):
            return _fenced(_changed(before, after), room)
        case Checks(findings):
            return "\n".join(f"- {_signed(one)} {inline(check_line(one))}" for one in findings)
        case Table(columns, rows, left, links):
            ruler = ["---" if n < left else "---:" for n in range(len(columns))]
            told = [[inline(cell) for cell in row] for row in rows]
            if links:
                files = (_target(row[-1]) for row in rows)
                told = [[*cells[:-1], f"[{cells[-1]}]({file})"] for cells, file in zip(told, files, strict=True)]
            return "\n".join(f"| {' | '.join(line)} |" for line in ([inline(cell) for cell in columns], ruler, *told))
        case Picture(alt, path):
            return inline(alt) if path.startswith("/") else f"![{inline(alt)}]({_target(path)})"
        case Fold() | Section() | Jumps():
            return "\n\n".join(as_markdown(one, room) for one in leaves([block]))


def _changed(before: str, after: str) -> str:
    lines = diff(before, after)
    return "\n".join(line.text if line.sign == "@" else f"{line.sign} {line.text}" for line in lines)


def _signed(finding: Finding) -> str:
    return STATES[state_of(finding.passed)].symbol


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


# --- a terminal -----------------------------------------------------------------------------------------------------


def plain(blocks: Iterable[Block]) -> str:
    return "".join(f"{text}\n" for _, text in paragraphs(blocks))


def paragraphs(blocks: Iterable[Block], most: int | None = None) -> Iterator[tuple[Block, str]]:
    """Each block and its text, which begins with an empty line where the block does not belong to the one before.

    most: tokens of one text that are shown, from its beginning and its end.
    """
    before: Block | None = None
    for block in leaves(blocks):
        close = isinstance(before, Line | Heading) and isinstance(block, Fence | Quote | Diff | Checks)
        close = close or (isinstance(before, Line) and isinstance(block, Line) and (before.small or block.small))
        yield block, encodable(f"{'' if close or before is None else chr(10)}{_as_plain(block, most)}")
        before = block


def _as_plain(block: Block, most: int | None = None) -> str:
    match block:
        case Heading(level, text, _, word):
            said = _flat(f"{text}: {word}" if word else text)
            return f"{said}\n{('=' if level == 1 else '-') * len(said)}"
        case Line(text, strong, word=word):
            return " ".join(part for part in (_flat(word), _flat(strong), _flat(text)) if part)
        case Facts(rows):
            wide = max((len(name) for name, said in rows.items() if said), default=0)
            return "\n".join(f"{name.ljust(wide)}  {_flat(said)}" for name, said in rows.items() if said)
        case Bar(_, word, rows):
            return ", ".join([_flat(word), *(f"{name} {_flat(text)}" for name, text in rows.items() if text)])
        case Fence(text=text) | Quote(text):
            return _indented(clean(mask(text)).strip("\n"), most)
        case Diff(before, after):
            return _indented(_changed(clean(mask(before)), clean(mask(after))), most)
        case Checks(findings):
            return "\n".join(_plain_check(one, most) for one in findings)
        case Table(columns, rows, left):
            lines = [[_flat(cell) for cell in line] for line in (columns, *rows)]
            widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
            return "\n".join(_aligned(line, widths, left) for line in lines)
        case Picture(alt, path):
            return _flat(alt if path.startswith("/") else f"{alt}: {path}")
        case Fold() | Section() | Jumps():
            return "\n\n".join(_as_plain(one) for one in leaves([block]))


def _plain_check(finding: Finding, most: int | None) -> str:
    """A check on one line, with several lines that it got below it. What a passed check printed is left out."""
    printed = "\n" in finding.got.strip()
    line = f"{_signed(finding)} {_flat(check_line(replace(finding, got='') if printed else finding))}"
    below = _indented(clean(mask(finding.got)).strip("\n"), most) if printed and not finding.passed else ""
    return f"{line}\n{below}" if below else line


def _indented(text: str, most: int | None) -> str:
    shown = text if most is None else truncate_text(text, most)
    return "\n".join(f"    {line}".rstrip() for line in shown.splitlines())


def _aligned(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    sized = zip(cells, widths, strict=True)
    return "  ".join(c.ljust(w) if n < left else c.rjust(w) for n, (c, w) in enumerate(sized)).rstrip()


def _flat(text: str) -> str:
    return one_line(mask(text), 10_000)
