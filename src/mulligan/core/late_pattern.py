"""A pattern that is compiled for the first text that it may match: compiling takes longer than searching."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from mulligan.core.light import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class LatePattern:
    """Searches as `re.Pattern` does.

    Args:
        pattern: in the syntax of `re`.
        needs: texts of which every match contains at least one, in lower case with `re.IGNORECASE`; empty: any text may
            match; None: they are read from the pattern.
    """

    def __init__(self, pattern: str, needs: Sequence[str] | None = None, flags: re.RegexFlag = re.NOFLAG) -> None:
        self.pattern, self._given, self.flags = pattern, needs, flags

    def search(self, text: str) -> re.Match[str] | None:
        return self._compiled.search(text) if self._may_match(text) else None

    def match(self, text: str, at: int = 0) -> re.Match[str] | None:
        return self._compiled.match(text, at) if self._may_match(text) else None

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._compiled.fullmatch(text) if self._may_match(text) else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self._compiled.finditer(text) if self._may_match(text) else iter(())

    def findall(self, text: str) -> list[Any]:
        return self._compiled.findall(text) if self._may_match(text) else []

    def sub(self, by: str | Callable[[re.Match[str]], str], text: str, count: int = 0) -> str:
        return self._compiled.sub(by, text, count) if self._may_match(text) else text

    def _may_match(self, text: str) -> bool:
        needs = self.needs
        if needs and self._folds:
            if not text.isascii():  # some letters have more than two cases
                return True
            text = text.lower()
        for part in needs:  # a loop: `any` takes three times as long
            if part in text:
                return True
        return not needs

    @cached_property
    def needs(self) -> Sequence[str]:
        if self._given is not None or self._folds or self.flags & re.VERBOSE:
            return self._given or ()
        from mulligan.core.pattern_needs import needs  # not for patterns whose needs are given

        return needs(self.pattern)

    @cached_property
    def _folds(self) -> bool:
        return bool(self.flags & re.IGNORECASE)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        """Kept here, because the cache of `re` is shared with the user's program."""
        return re.compile(self.pattern, self.flags)
