"""Name clusters of tasks: by words that tell them from each other, or by a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast

from mulligan.bank.learn.screening import flags_of
from mulligan.bank.recall.terms import commonness, terms
from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.prompts import Prompt
from mulligan.core.protocols import Model, Prompts
from mulligan.core.questions import Question, Sampling, asked_again
from mulligan.core.records import MOST_KIND, Json, checked_kind, folded_kind
from mulligan.text.formatting import labelled
from mulligan.text.secrets import mask
from mulligan.text.truncate import truncate_text

WORDS = 3
"""Words of a name at most."""
TELLING = 0.6
"""How much more frequent a further word of a name is inside its cluster than outside, as a share of the tasks."""
COMMON = 0.05
"""The share of all texts from which on a word stands behind those that tell more."""
SHOWN, TASK_TOKENS, AT_ONCE = 5, 60, 10
"""Tasks of a cluster that a model is shown, what each may take, and clusters in one question."""

_WORD = re.compile(r"[^\W\d_]+")


def named_by_words(groups: Sequence[Sequence[str]], known: Sequence[Sequence[str]]) -> list[str]:
    """A name for each group of texts, no two alike unless both groups have one kind already.

    A kind that more than half of a group has already is its name. Else it is the words that many texts of the group
    hold, and few of the others.

    Args:
        groups: The texts of each group.
        known: The kind of each text, "" if unknown, in the same order.
    """
    spelt, counts = dict[str, Counter[str]](), list[Counter[str]]()
    for texts in groups:
        counts.append(Counter())
        for text in texts:
            words = list(_words(text))
            counts[-1].update({stem for stem, _ in words})
            for stem, word in words:
                spelt.setdefault(stem, Counter())[word] += 1
    total = sum(counts, Counter[str]())
    everything = sum(map(len, groups))
    names: list[str] = []
    for texts, own, kinds in zip(groups, counts, known, strict=True):
        outside = everything - len(texts)
        more = {stem: n / len(texts) - (total[stem] - n) / max(outside, 1) for stem, n in own.items()}
        order = sorted(more, key=lambda stem: (commonness(stem) > COMMON, -more[stem], stem))
        words = [min(spelt[stem], key=lambda word: (-spelt[stem][word], word)) for stem in order]
        telling = max(1, min(WORDS, sum(more[stem] >= TELLING for stem in order[:WORDS])))
        names.append(_shared(kinds) or _new(words, telling, names))
    return names


def _words(text: str) -> Iterator[tuple[str, str]]:
    """The stem and the spelling of each word; of a script without spaces, each two neighbouring characters."""
    for word in _WORD.findall(text):
        found = list(terms(word))
        if len(found) > 1 and found[0] == word[0]:
            yield from ((pair, pair) for pair in found if len(pair) == 2)
        elif found and len(word) > 2:
            yield found[0], word.casefold()


def _shared(kinds: Sequence[str]) -> str:
    """The kind that more than half of these have, as most of them spell it; "" if there is none."""
    counts = Counter(folded_kind(kind) for kind in kinds if kind)
    if not counts or counts.most_common(1)[0][1] * 2 <= len(kinds):
        return ""
    folded = counts.most_common(1)[0][0]
    spelt = Counter(kind for kind in kinds if folded_kind(kind) == folded)
    return min(spelt, key=lambda kind: (-spelt[kind], kind))


def _new(words: Sequence[str], count: int, taken: Sequence[str]) -> str:
    """The first words as a name that is not taken, with further words or a number where it is."""
    used = {folded_kind(name) for name in taken}
    for length in range(count, len(words) + 1):
        name = " ".join(words[:length])
        if len(name) <= MOST_KIND and folded_kind(name) not in used:
            return name
    base = (words[0] if words else "tasks")[: MOST_KIND - 5]
    return next(name for n in range(2, len(taken) + 3) if folded_kind(name := f"{base} {n}") not in used)


def naming_prompt(prompts: Prompts) -> Prompt:
    """The prompt of `named_by_model`. Raises `InvalidInput` for a file of the user's that cannot be used."""
    return prompts.get("naming.kinds").check("groups", "count")


async def named_by_model(model: Model, prompt: Prompt, groups: Sequence[Sequence[str]]) -> list[str]:
    """A name for each group of texts by a model, which sees the first texts of each.

    An answer that does not fit is sent back once. Raises `BadAnswer` when the second one does not fit either, and what
    the model raises.
    """
    names: list[str] = []
    for first in range(0, len(groups), AT_ONCE):
        several = groups[first : first + AT_ONCE]
        question = _question(prompt, several)
        answer = await model.ask(question, Sampling(0.0, 512))
        try:
            names += _taken(answer.content, len(several), names)
        except BadAnswer as error:
            answer = await model.ask(asked_again(question, answer.content, str(error)), Sampling(0.0, 512))
            names += _taken(answer.content, len(several), names)
    return names


def _question(prompt: Prompt, groups: Sequence[Sequence[str]]) -> Question:
    shown = [
        labelled(f"Group {n}", "\n---\n".join(truncate_text(text, TASK_TOKENS) for text in texts[:SHOWN]))
        for n, texts in enumerate(groups, 1)
    ]
    schema: Json = {
        "type": "object",
        "properties": {"names": {"type": "array", "items": {"type": "string"}}},
        "required": ["names"],
        "additionalProperties": False,
    }
    return Question(prompt.render(groups="\n\n".join(shown), count=str(len(groups))), schema)


def _taken(answer: Json, count: int, before: Sequence[str]) -> list[str]:
    """The names in an answer. Raises `BadAnswer`."""
    given: Json = cast(dict[str, Json], answer).get("names") if isinstance(answer, dict) else None
    given = cast(list[Json], given) if isinstance(given, list) else []
    if len(given) != count or not all(isinstance(name, str) for name in given):
        raise BadAnswer(f'"names" must be a list of {count} texts, one for each group.')
    names: list[str] = []
    for name in given:
        try:
            kind = checked_kind(mask(name))
        except InvalidInput as error:
            raise BadAnswer(str(error)) from None
        if not kind or not kind.isprintable() or flags_of(kind):
            raise BadAnswer(f"{kind!r} cannot be the name of a kind of task.")
        if folded_kind(kind) in map(folded_kind, (*before, *names)):
            raise BadAnswer(f"Two groups are called {kind!r}: each needs a name of its own.")
        names.append(kind)
    return names
