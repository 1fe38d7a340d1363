"""An environment of pages that the actor searches: `Search[title]`, `Lookup[keyword]`, `Finish[answer]`.

Source: the docstore of ReAct and of the reference's HotPotQA experiments, which used the live Wikipedia.
"""

from __future__ import annotations

import difflib
import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from mulligan.plugins import InvalidInput, Outcome, Step, objects, parse_action

VALID = "Valid actions are Search[title], Lookup[keyword] and Finish[answer]."
NO_PAGE = "No page is open: Search[title] opens one, and Lookup[keyword] then finds sentences of it."
SUFFIXES = (".txt", ".md")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'“(]?[A-Z0-9])")
_HEADING = re.compile(r"\A\s*#[ \t]+(.+?)[ \t#]*\n")


@dataclass(frozen=True)
class Page:
    """A page. paragraphs: lists of sentences. A search shows the first paragraph."""

    title: str
    paragraphs: tuple[tuple[str, ...], ...]

    @property
    def sentences(self) -> list[str]:
        return [sentence for paragraph in self.paragraphs for sentence in paragraph]


class Docstore:
    """Pages by title.

    An exact title comes first. Otherwise, case, white space and HTML entities do not matter. Pages with the same title
    become one page with all their paragraphs in order.
    """

    def __init__(self, pages: Iterable[Page]) -> None:
        self._pages: dict[str, Page] = {}
        for page in pages:
            same = self._pages.get(page.title)
            self._pages[page.title] = Page(page.title, (*(same.paragraphs if same else ()), *page.paragraphs))
        self._folded: dict[str, str] = {}
        self._words: dict[str, list[str]] = {}
        for title in self._pages:
            self._folded.setdefault(folded(title), title)
            for word in _words(title):
                self._words.setdefault(word, []).append(title)

    def __len__(self) -> int:
        return len(self._pages)

    def find(self, title: str) -> Page | None:
        return self._pages.get(title) or self._pages.get(self._folded.get(folded(title), ""))

    def similar(self, query: str, n: int = 5) -> list[str]:
        """The `n` most similar titles, best first, by the share of common words plus that of common letters."""
        words = _words(query)
        shared: dict[str, int] = {}
        for word in words:
            for title in self._words.get(word, ()):
                shared[title] = shared.get(title, 0) + 1
        candidates = sorted(shared, key=lambda title: -shared[title])[:200] or list(self._pages)[:5000]

        def similarity(title: str) -> float:
            union = len(words | _words(title)) or 1
            letters = difflib.SequenceMatcher(None, folded(query), folded(title)).ratio()
            return shared.get(title, 0) / union + letters

        return sorted(candidates, key=lambda title: (-similarity(title), title))[:n]


class Wiki:
    """The environment. It takes either `pages` or `documents`.

    Args:
        pages: objects with "title" and either "sentences" (a list) or "text".
        documents: a file of such objects (a JSON list, or .jsonl with one a line), or a folder with a .txt or .md file
            for each page.
        version: a hash of the documents. It is only recorded, so that a resume notices when they change.

    Raises:
        InvalidInput: a page cannot be used; the message names the page, or the file and line.
    """

    def __init__(
        self,
        *,
        pages: Sequence[Mapping[str, Any]] | None = None,
        documents: str | None = None,
        version: str = "",
    ) -> None:
        if (pages is None) == (documents is None):
            raise InvalidInput(
                "wiki needs either pages or documents (a .json or .jsonl file, or a folder of .txt and .md files)."
            )
        if documents is not None:
            self._store = read_documents(documents)
        else:
            self._store = Docstore(page_of(page, f"page {n}") for n, page in enumerate(pages or (), 1))
        self._page: Page | None = None
        self._keyword: str | None = None
        self._results: list[str] = []
        self._position = 0
        self._over = False

    async def reset(self) -> str:
        self._page, self._keyword, self._over = None, None, False
        return f"There {'is 1 page' if len(self._store) == 1 else f'are {len(self._store)} pages'} to search."

    async def step(self, action: str) -> Step:
        if self._over:
            return Step(action=action, observation="It is over: an answer was given.", outcome=Outcome(done=True))
        match parse_action(action):
            case ("search", title):
                return Step(action=action, observation=self._search(title))
            case ("lookup", keyword):
                return Step(action=action, observation=self._lookup(keyword))
            case ("finish", _):
                self._over = True
                return Step(action=action, outcome=Outcome(done=True))
            case (name, _):
                return Step(action=action, observation=f"There is no action {name!r}. {VALID}")
            case _:
                return Step(action=action, observation=f"That is no action. {VALID}")

    async def close(self) -> None: ...

    def _search(self, title: str) -> str:
        self._page, self._keyword = self._store.find(title), None
        if self._page is not None:
            return joined(self._page.paragraphs[0])
        similar = ", ".join(self._store.similar(title))
        return f"Could not find [{title}]. Similar: [{similar}]." if similar else f"Could not find [{title}]."

    def _lookup(self, keyword: str) -> str:
        if self._page is None:
            return NO_PAGE
        if folded(keyword) != self._keyword:
            self._keyword, self._position = folded(keyword), 0
            self._results = [sentence for sentence in self._page.sentences if folded(keyword) in folded(sentence)]
        if not self._results:
            return f"No results: {self._page.title} does not mention [{keyword}]."
        if self._position == len(self._results):
            return f"No more results for [{keyword}] on this page."
        self._position += 1
        return f"(Result {self._position}/{len(self._results)}) {joined([self._results[self._position - 1]])}"


def folded(text: str) -> str:
    """The text in a form that is the same for spellings that differ in case, white space or HTML entities."""
    return " ".join(unicodedata.normalize("NFKC", html.unescape(text)).casefold().split())


def joined(sentences: Iterable[str]) -> str:
    """The sentences on one line, so that a page cannot imitate a step of the agent."""
    return " ".join(" ".join(sentences).split())


def _words(title: str) -> set[str]:
    return set(re.findall(r"\w+", folded(title)))


def page_of(row: Mapping[str, Any], where: str) -> Page:
    """The page of a JSON object. where: the name of the object in errors. Raises `InvalidInput`."""
    title, text, sentences = (row.get(name) for name in ("title", "text", "sentences"))
    if not isinstance(title, str) or not title.strip():
        raise InvalidInput(f'{where} needs a non-empty "title".')
    if isinstance(sentences, list) and all(isinstance(sentence, str) for sentence in cast(list[Any], sentences)):
        paragraphs = [tuple(cast(list[str], sentences))]
    elif isinstance(text, str):
        paragraphs = [tuple(_SENTENCE_END.split(part.strip())) for part in re.split(r"\n\s*\n", text) if part.strip()]
    else:
        raise InvalidInput(f'{where} ({title}) needs "text", or "sentences" as a list of strings.')
    if not joined(sentence for paragraph in paragraphs for sentence in paragraph):
        raise InvalidInput(f"{where} ({title}) is empty.")
    return Page(joined([title]), tuple(paragraphs))


def read_documents(path: str) -> Docstore:
    """Read a file or folder of documents. Unchanged ones come from a cache. Raises `InvalidInput`."""
    root = Path(path).expanduser().resolve()
    files = sorted(p for p in root.rglob("*") if p.suffix in SUFFIXES and p.is_file()) if root.is_dir() else [root]
    if not files or not files[0].is_file():
        what = f"The folder {root} has no .txt or .md file." if root.is_dir() else f"The file {root} does not exist."
        raise InvalidInput(what)
    stats = [(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    if not len(store := _read(tuple(stats))):
        raise InvalidInput(f"The documents {root} contain no pages.")
    return store


@lru_cache(maxsize=2)
def _read(files: tuple[tuple[str, int, int], ...]) -> Docstore:
    return Docstore(page for name, _, _ in files for page in _pages_in(Path(name)))


def _pages_in(file: Path) -> Iterator[Page]:
    try:
        if file.suffix == ".jsonl":
            rows = objects(file.read_bytes(), str(file))
            yield from (page_of(row, f"{file}, line {number}") for number, row in rows)
            return
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}.") from error
    if file.suffix in SUFFIXES:
        heading = _HEADING.match(text) if file.suffix == ".md" else None
        title, body = (heading[1], text[heading.end() :]) if heading else (file.stem.replace("_", " "), text)
        yield page_of({"title": title, "text": body}, str(file))
        return
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{file} is not valid JSON: {error}.") from error
    if not isinstance(rows, list):
        raise InvalidInput(f"{file} must be a list of pages, not {type(rows).__name__}.")
    for number, row in enumerate(cast(list[Any], rows), 1):
        if not isinstance(row, dict):
            raise InvalidInput(f"{file}, page {number}: this must be an object, not {type(row).__name__}.")
        yield page_of(cast(dict[str, Any], row), f"{file}, page {number}")
