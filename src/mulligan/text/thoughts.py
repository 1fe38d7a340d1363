"""Separates the answer in a model's text from its thoughts and from the tokens of its chat format.

All code that reads a model's text uses this module: design/119.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from mulligan.core.records import Attempt

_TAGS = (
    r"(?:[a-z]{2,4}:)?think(?:ing)?|thoughts?|reasoning|antthinking|scratch_?pad|cot|(?:internal|inner)_monologue"
    r"|[a-z]{2,12}(?:_of)?_(?:think(?:ing)?|thoughts?|reasoning)|(?:think(?:ing)?|thought|reasoning)_[a-z]{3,10}"
)
_CHANNEL = r"(?:<\|start\|>\s*assistant\s*)?(?:<\|channel\|>|channel\|>)\s*"
_OPENING = (
    rf"<\s?(?:{_TAGS})(?:\s[^<>]{{0,200}})?(?<!/)>|<\|(?:{_TAGS})\|>|◁think▷|(?-i:\[(?:THINK|REASONING)\])"
    r"|<\|begin_of_thought\|>|<\|START_THINKING\|>|<(?:unused|ctrl)94>|<\|channel>thought"
    rf"|{_CHANNEL}(?:analysis|commentary)\b|(?<![\w.])(?:analysis|commentary)<\|message\|>"
)
_CLOSING = (
    rf"<\s?/\s?(?:{_TAGS})\s?>|<\|/(?:{_TAGS})\|>|◁/think▷|\[/(?:think(?:ing)?|thoughts?|reasoning)\]"
    r"|<\|end_(?:of_)?thought\|>|<\|END_THINKING\|>|<(?:unused|ctrl)95>|<channel\|>"
    rf"|{_CHANNEL}final\b(?:\s*<\|constrain\|>\s?\w+)?\s?(?:<\|message\|>)?|(?<![\w.])final<\|message\|>"
)
_MARK = re.compile(rf"(?P<closing>{_CLOSING})|(?P<opening>{_OPENING})", re.IGNORECASE)
_IN_WORDS = (
    # What remains of gpt-oss's channels if a server drops their tokens, and Granite 3's names of its two parts.
    (re.compile(r"\s*(?:assistant)?(?:analysis|commentary)(?=[A-Z][\w']*[,:]? [A-Za-z])"), "assistantfinal"),
    (re.compile(r"\s*(?:assistant)?(?:analysis|commentary)(?=[\s\S]*assistantfinal)"), "assistantfinal"),
    (re.compile(r"\s*Here(?: i|')s my thought process:"), "Here is my response:"),
)
_FIELD = re.compile(r"<\s?/\s?(?:thoughts?|reasoning)\b", re.IGNORECASE)
_LEADING_BLOCK = re.compile(
    r"\s*<(analysis|reflection|rationale|details(?=[^<>]{0,200}\breasoning\b))(?:\s[^<>]{0,200})?>", re.IGNORECASE
)
"""Names that a part of an answer may have: the block is thoughts only at the beginning, before an answer."""
_BEFORE_THOUGHTS = ("", "\n", ".", "!", "?", ":", ">")
"""The characters that may precede thoughts. A sentence with a tag in its middle is about the tag."""
_LEADS_TO_A_NAME = re.compile(
    r"(?:^|[^\w])(?:the|an?|its?|is|are|with|and|or|by|at|to|until|till|before|after|of|between|in|from|on|use|like|as"
    r"|tags?|tokens?|marker|closing|finds?|contains?|without|writes?|called|named)[ ]\Z",
    re.IGNORECASE,
)
_SENTENCE_GOES_ON = re.compile(r"[.,;:!?)]| \w")
_COMMENT = re.compile(r"[ \t]*(?:#|//|--|/?\*)")
_CLOSINGS_TRIED = 5

_ENDS = (
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|end|>", "<|return|>", "<|endoftext|>", "<|end_of_text|>",
    "<|end_of_turn|>", "<|END_OF_TURN_TOKEN|>", "<|END_RESPONSE|>", "<|end_of_solution|>", "<end_of_turn>", "<turn|>",
    "<eos>", "</s>", "[/INST]", "<\uff5cend\u2581of\u2581sentence\uff5c>", "[END FINAL RESPONSE]",
)  # fmt: skip
_END = re.compile("|".join(map(re.escape, _ENDS)))
_TURN = re.compile(r"\s?(?:<\|im_start\|>|<\|start_header_id\|>|<\|start\|>|<start_of_turn>|<\|turn>)")
_BEGIN = re.compile(
    r"(?:\s*(?:\ufeff|<\|im_start\|>assistant\b|<\|start_header_id\|>assistant<\|end_header_id\|>"
    r"|<start_of_turn>model\b|<\|turn>model\b|<\|start\|>assistant\b|<\|assistant\|>|<\|START_RESPONSE\|>"
    r"|<\|begin_of_solution\|>|\[BEGIN FINAL RESPONSE\]))+"
)
_HINT = re.compile(r"[<\[◁\ufeff|]|analysis[A-Z]|commentary[A-Z]|assistantfinal|Here(?: i|')s my thought process:")
_FENCE = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(`{3,}|~{3,})([^`\n]*)$", re.MULTILINE)
_STRING = re.compile(
    r'"""[\s\S]*?"""|' r"'''[\s\S]*?'''|"
    r"(?<!\S)//[^\n]*|"
    r'(?<![\w\\])"(?:[^"\\\n]|\\[^\n])*+"|' r"(?<![\w\\])'(?:[^'\\\n]|\\[^\n])*+'(?!\w)"
)  # fmt: skip
_OPEN_FENCE = re.compile(r"\s*`{3,}\w*[ \t]*\n")
_TICKS = re.compile("`+")
_INK = re.compile(r"\S")
_REST_OF_LINE = re.compile(r"[ \t]*(?:\n|\Z)")
_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")


class Spoken(NamedTuple):
    """`answer` is the text without thoughts. `finished` is False if the thoughts did not end or no answer follows."""

    answer: str
    finished: bool = True


def answer_of(text: str) -> str:
    """Returns the answer in a model's text, or "" if the text contains only thoughts.

    Text without thoughts is unchanged.
    """
    return spoken(text).answer


def output_of(attempt: Attempt) -> str:
    """Returns the answer in an attempt's output. The output of a workspace is a diff, and returned whole."""
    in_workspace = any(artifact.kind == "git" for artifact in attempt.artifacts)
    return attempt.output if in_workspace else answer_of(attempt.output)


def spoken(text: str) -> Spoken:
    """Separates the answer from the thoughts, which end with the last tag that closes thoughts.

    A tag in a code fence, in inline code, in a string or in a Python program is part of the answer. Never raises, and
    takes time proportional to the text's length.
    """
    if not _HINT.search(text):
        return Spoken(text)
    rest, thought = _after_words(text)
    if rest is None:
        return Spoken("", False)
    marks = list(_MARK.finditer(rest))
    if marks or _END.search(rest):
        protected = _Protected(rest)
        closings = [mark for mark in marks if mark["closing"]]
        openings = [mark for mark in marks if mark["opening"] and not protected.covers(mark) and _begins(rest, mark)]
        ends = [mark for mark in closings if not protected.covers(mark)]
        unnamed = [mark for mark in ends if not _is_named(rest, mark)]
        ends = unnamed if unnamed or not openings else ends
        if not ends and openings:  # the thoughts left a fence open, which covers the tag that ends them
            in_fence = (c for c in closings if c.start() > openings[0].start() and not protected.quotes(c))
            ends = list(in_fence)[:1]
        if ends and _is_field(rest, ends[-1], openings):
            return Spoken(text)
        tried = ends[: min(_CLOSINGS_TRIED, len(ends) - 1)]
        end = next((mark for mark in tried if _is_python(rest[mark.end() :])), ends[-1] if ends else None)
        if (end or openings) and not _is_python(rest):
            start = end.end() if end else 0
            if any(mark.start() >= start for mark in openings):
                return Spoken("", False)
            rest, thought = _cut(rest, start, protected), True
        else:
            rest = _cut(rest, 0, protected)
    rest, blocks = _after_blocks(rest)
    rest = _without_tokens(rest)
    if rest is text:
        return Spoken(text)
    return Spoken(_BLANK_LINES.sub("", rest), bool(rest.strip()) or not (thought or blocks))


def _after_words(text: str) -> tuple[str | None, bool]:
    """Returns the text after thoughts that words mark, or None if they do not end; and whether there were any."""
    for opening, closing in _IN_WORDS:
        if opening.match(text):
            _, separator, rest = text.rpartition(closing)
            return (rest if separator else None), True
    return text, False


def _after_blocks(text: str) -> tuple[str, bool]:
    """Returns the text after leading blocks of thoughts that an answer follows, and whether there were any."""
    at = 0
    while opening := _LEADING_BLOCK.match(text, at):
        closing = re.compile(rf"</{opening[1]}\s?>", re.IGNORECASE).search(text, opening.end())
        if not closing or not _INK.search(text, closing.end()):
            break
        at = closing.end()
    return text[at:] if at else text, at > 0


def _is_field(text: str, closing: re.Match[str], openings: list[re.Match[str]]) -> bool:
    """Whether the tag closes the last part of the answer, which gives its reasons."""
    is_last = openings and _INK.search(text, 0, openings[0].start()) and not _INK.search(text, closing.end())
    return bool(is_last and _FIELD.search(closing[0]))


def _begins(text: str, mark: re.Match[str]) -> bool:
    return _before(text, mark)[-1:] in _BEFORE_THOUGHTS


def _is_named(text: str, mark: re.Match[str]) -> bool:
    """Whether a sentence mentions the tag, as in "the tag is </think>."."""
    line = text[max(text.rfind("\n", 0, mark.start()) + 1, mark.start() - 200) : mark.start()]
    goes_on = _SENTENCE_GOES_ON.match(text, mark.end()) or _COMMENT.match(line)
    return bool(goes_on and _LEADS_TO_A_NAME.search(line[-20:]))


def _before(text: str, mark: re.Match[str]) -> str:
    return text[max(mark.start() - 100, 0) : mark.start()].rstrip(" \t")


def _cut(text: str, start: int, protected: _Protected) -> str:
    """Returns the text from `start` to the end of the model's turn, if another turn follows."""
    for end in _END.finditer(text, start):
        if _TURN.match(text, end.end()) and not protected.covers(end):
            return text[start : end.start()]
    return text[start:] if start else text


def _without_tokens(text: str) -> str:
    """Returns the text without the tokens of a chat format at both ends."""
    begin = _BEGIN.match(text)
    start, end = begin.end() if begin else 0, len(text)
    is_html = "<s>" in text  # where </s> is no token
    while True:
        stop = end
        while stop > start and text[stop - 1].isspace():
            stop -= 1
        token = next((token for token in _ENDS if text.endswith(token, start, stop)), "")
        if not token or (token == "</s>" and is_html):
            return text if (start, end) == (0, len(text)) else text[start:end]
        end = stop - len(token)


class _Protected:
    """The parts of a text that are code or strings."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences, self._unpaired = _fences(text)
        odd = {quotes for quotes in ('"""', "'''") if text.count(quotes) % 2}  # one of these begins no string
        strings = [match.span() for match in _STRING.finditer(text) if "\n" not in match[0] or match[0][:3] not in odd]
        self._strings = _sorted([*strings, *_inline(text)])

    def covers(self, mark: re.Match[str]) -> bool:
        if self.quotes(mark):
            return True
        in_fence = _within(self._fences, mark.start())
        return in_fence and not (self._unpaired and self._is_alone(mark))

    def quotes(self, mark: re.Match[str]) -> bool:
        """Whether a string or inline code contains the tag."""
        return _within(self._strings, mark.start())

    def _is_alone(self, mark: re.Match[str]) -> bool:
        """Whether the tag has a line of its own."""
        before = _before(self._text, mark)
        return before[-1:] in ("", "\n") and _REST_OF_LINE.match(self._text, mark.end()) is not None


def _fences(text: str) -> tuple[list[tuple[int, int]], bool]:
    """Returns the spans of the closed code blocks, and whether a last fence without a language is left unpaired."""
    blocks: list[tuple[int, int]] = []
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            opening = fence
        elif fence[1][0] == opening[1][0] and len(fence[1]) >= len(opening[1]):
            if fence[2].strip():  # a fence with a language begins a block even if the one before is open
                opening = fence
            else:
                blocks.append((opening.start(), fence.end()))
                opening = None
    return blocks, opening is not None and not opening[2].strip()


def _inline(text: str) -> Iterator[tuple[int, int]]:
    """Yields the spans of inline code, which runs of equally many backticks enclose on one line."""
    at = 0
    for line in text.split("\n") if "`" in text else ():
        runs = list(_TICKS.finditer(line))
        left, n = Counter(len(run[0]) for run in runs), 0
        while n < len(runs):
            size, start = len(runs[n][0]), runs[n].start()
            left[size] -= 1
            if left[size]:
                n += 1
                while len(runs[n][0]) != size:
                    left[len(runs[n][0])] -= 1
                    n += 1
                left[size] -= 1
                yield at + start, at + runs[n].end()
            n += 1
        at += len(line) + 1


def _sorted(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the spans in order, with overlapping ones merged."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _within(spans: list[tuple[int, int]], at: int) -> bool:
    """Whether one of these sorted spans begins before this index and ends after it."""
    n = bisect_left(spans, (at,)) - 1
    return n >= 0 and at < spans[n][1]


def _is_python(text: str) -> bool:
    """Whether the whole text, or all after an open fence, is a program, whose comments may mention tags."""
    fence = _OPEN_FENCE.match(text)
    text = text[fence.end() :] if fence else text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
