"""HotPotQA (Yang et al. 2018): answer questions that need two pages, from memory, from given text, or by searching."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

from mulligan.plugins import Case, Episode, InvalidInput, Json, Judges, Method, Score, Source, Spec, Task

TEMPERATURES = (0.0, 0.7)
"""For the first try of `resample` and for later ones. At 0, these would repeat the first: they see nothing new."""
JUDGES = {
    "model": Spec("model_judge", {"criteria": "answer"}),
    "oracle": Spec("exact_match", {"oracle": True}),  # the answer comes with the case
}


class HotPotQA:
    """The benchmark HotPotQA. The score is by exact match.

    Args:
        mode: "react" searches pages, "cot" only thinks, "cot-context" thinks and sees the supporting paragraphs.
        docstore: for "react", a .json or .jsonl file or a folder of pages (see `environments.wiki`) to search instead
            of the ten pages of each question.
        judge: what decides in the loop whether an answer is right: "model" (the model itself), or "oracle", which
            compares it with the answer, as the reference does. Such results are reported separately.
    """

    title = "HotPotQA: questions that need two pages (modes react, cot, cot-context)"
    data = "distractor-100.json"
    sources: Sequence[Source] = ()
    where = (
        "HotPotQA's own hotpot_dev_distractor_v1.json (https://hotpotqa.github.io, CC BY-SA 4.0), named with --data. "
        "The reference keeps its 100 questions as a pickle, hotpotqa_runs/data/hotpot-qa-distractor-sample.joblib, "
        "from which this file is made: mulligan docs benchmark-hotpotqa"
    )

    former: Mapping[str, str] = MappingProxyType({"base": "simple", "retry": "resample"})

    def __init__(
        self,
        *,
        judges: Judges,
        mode: Literal["react", "cot", "cot-context"] = "react",
        judge: Literal["model", "oracle"] = "model",
        docstore: str | None = None,
    ) -> None:
        if docstore is not None and mode != "react":
            raise InvalidInput(f"A docstore needs the mode 'react', not {mode!r}.")
        self._judges, self._mode, self._judge = judges, mode, judge
        self._docstore = None if docstore is None else Path(docstore).expanduser().resolve()

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        (file,) = files
        version = None if self._docstore is None else _version(self._docstore)
        cases, seen = list[Case](), set[str]()
        for number, row in enumerate(_rows(file), 1):
            item = _Item.read(row, f"{file}, question {number}")
            if item.id in seen:
                raise InvalidInput(f"{file}: the question {item.id!r} appears twice.")
            seen.add(item.id)
            cases.append(Case(item.id, self._task(item), self._target(item, version)))
        return cases

    def methods(self) -> Mapping[str, Method]:
        actor = {
            "react": Spec("react"),
            "cot": Spec("cot"),
            "cot-context": Spec("cot", {"prompt": "context"}),
        }[self._mode]
        base = Method(
            actor,
            JUDGES[self._judge],
            oracle=self._judge == "oracle",
            environment=Spec("wiki") if self._mode == "react" else None,
        )

        def variant(strategy: str, summary: str) -> Method:
            return replace(base, strategy=Spec(strategy), summary=summary)

        both = "last_attempt_and_reflexion"
        warm = actor.with_settings(temperatures=list(TEMPERATURES))
        return {
            "reflexion": variant("reflexion", "the newest three lessons are shown"),
            "simple": replace(base, evaluator=Spec("unjudged"), oracle=False, trials=1, summary="one try"),
            "resample": replace(
                base, actor=warm, summary="independent tries, at a higher temperature from the second on"
            ),
            "last_attempt": variant("last_attempt", "the previous try is shown"),
            both: variant(both, "the previous try and the newest three lessons are shown"),
        }

    def play(self, case: Case, method: Method) -> Method:
        target = cast(dict[str, Json], case.target)
        if method.environment is not None:
            environment = method.environment.with_settings(**cast(dict[str, Json], target["world"]))
            method = replace(method, environment=environment)
        if method.oracle:
            oracle = method.evaluator.with_settings(answer=target["answer"])
            try:
                self._judges(oracle)
            except InvalidInput:  # such a question cannot be scored, see `score`
                oracle = Spec("unjudged")
            method = replace(method, evaluator=oracle)
        return method

    async def score(self, case: Case, episode: Episode) -> Score:
        try:
            judge = self._judges(Spec("exact_match", {"answer": cast(dict[str, Json], case.target)["answer"]}))
        except InvalidInput as error:  # an answer such as "The", which is empty after normalising
            return Score(None, str(error))
        return Score.of(await judge.evaluate(episode))

    def _task(self, item: _Item) -> Task:
        """The task that the actor sees. Only in the mode cot-context, it has the paragraphs."""
        question = item.question.strip()
        return Task(question, {"context": item.supporting()}) if self._mode == "cot-context" else Task(question)

    def _target(self, item: _Item, version: str | None) -> Json:
        """The answer, and the settings of the environment under "world"."""
        environment: dict[str, Json] = {}
        if self._docstore is not None:
            environment = {"documents": str(self._docstore), "version": version}
        elif self._mode == "react":
            environment = {"pages": [{"title": title, "sentences": list(sentences)} for title, sentences in item.pages]}
        return {"answer": item.answer, "world": environment}


@dataclass(frozen=True)
class _Item:
    """A question. facts: the titles of the pages that it needs, with repetitions."""

    where: str
    id: str
    question: str
    answer: str
    pages: tuple[tuple[str, tuple[str, ...]], ...]
    facts: tuple[str, ...]

    @classmethod
    def read(cls, row: Json, where: str) -> _Item:
        """The question of a row, without pages that have no text.

        A page is a list (HotPotQA's own format) or an object, or the pages are one object with a list for each column.
        Raises `InvalidInput`.
        """
        if not isinstance(row, dict):
            raise InvalidInput(f"{where}: this must be an object, not {type(row).__name__}.")
        values = cast(dict[str, Any], row)
        id, question, answer = values.get("id", values.get("_id")), values.get("question"), values.get("answer")
        for name, value in (("id", id), ("question", question), ("answer", answer)):
            if not isinstance(value, str) or not value.strip():
                raise InvalidInput(f'{where} needs "{name}" with a non-empty string.')
        try:
            pages = list[tuple[str, tuple[str, ...]]]()
            for title, sentences in _pairs(values["context"], "title", "sentences"):
                if not str(title).strip() or not isinstance(sentences, list):
                    raise ValueError(f"the page {title!r}")
                if "".join(texts := cast(list[str], sentences)).strip():
                    pages.append((str(title), tuple(texts)))
            supporting = _pairs(values.get("supporting_facts") or (), "title", "sent_id")
            facts = tuple(str(title) for title, _ in supporting)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f'{where} ({id}): "context" must list titles with their sentences, and "supporting_facts" '
                f"titles with sentence numbers: {type(error).__name__}: {error}."
            ) from None
        return cls(where, cast(str, id), cast(str, question), cast(str, answer), tuple(pages), facts)

    def supporting(self) -> str:
        """The paragraphs that the question needs, in the order of `facts`.

        Raises `InvalidInput` if one is missing.
        """
        paragraphs = {title: " ".join(" ".join(sentences).split()) for title, sentences in self.pages}
        titles = dict.fromkeys(self.facts)
        missing = next((title for title in titles if title not in paragraphs), None if titles else "supporting_facts")
        if missing is not None:
            raise InvalidInput(f"{self.where} ({self.id}): {missing} is missing, and cot-context needs it.")
        return "\n\n".join(paragraphs[title] for title in titles)


def _pairs(values: Any, *names: str) -> Iterator[tuple[Any, Any]]:
    """The pairs of values in a list of objects or of lists, or in an object with a list for each name."""
    if isinstance(values, dict):
        columns = cast(dict[str, Any], values)
        values = zip(*(columns[name] for name in names), strict=True)
    for value in values:
        first, second = [cast(Any, value)[name] for name in names] if isinstance(value, dict) else value
        yield first, second


def _rows(file: Path) -> Sequence[Json]:
    try:
        rows = json.loads(file.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}.") from error
    if not isinstance(rows, list) or not rows:
        raise InvalidInput(f"{file} must be a JSON list of at least one question.")
    return cast(list[Json], rows)


def _version(documents: Path) -> str:
    """A hash of the file or folder, with which a resume notices a change. Raises `InvalidInput`."""
    if not documents.exists():
        raise InvalidInput(f"The docstore {documents} does not exist.")
    files = sorted(p for p in documents.rglob("*") if p.is_file()) if documents.is_dir() else [documents]
    digest = hashlib.sha256()
    for file in files:
        name = "" if file == documents else str(file.relative_to(documents))
        digest.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
