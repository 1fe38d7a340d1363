"""A judge that is a function: what it returns or raises, as feedback."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from traceback import extract_tb
from typing import Any, Literal, TypeAlias, Union, cast

from mulligan.core.errors import InvalidInput, error_text
from mulligan.core.failures import is_transient
from mulligan.core.records import Episode, Feedback, Finding
from mulligan.evaluators._bugs import Bugs
from mulligan.text.evidence import evidence_of
from mulligan.text.python_code import parsed
from mulligan.text.truncate import truncate_text

Verdict: TypeAlias = Union[bool, float, Feedback, "tuple[bool | float | None, str]", None]
"""What a judge returns. None: it had nothing to object. A number is a score; with a text, the text says why."""
Judged: TypeAlias = Verdict | Awaitable[Verdict]
JudgeFunction: TypeAlias = Callable[[Any], Judged] | Callable[[Any, Any], Judged] | Callable[[Any, Any, Any], Judged]

BUGS = (NameError, ImportError, SyntaxError)
"""Errors of the judge itself: they end the call, where any other is the judge's no."""
ANSWER = "answer"
"""The name of the answer for a judge whose arguments are given by name alone."""
SHOWN = 100
"""Tokens of an answer that a verdict without words shows."""


def returned(answer: object) -> None:
    """The judge of a function that has none: it has no objection to whatever was returned."""


def check_judge(judge: Callable[..., Any], parameters: Sequence[str], of: str) -> None:
    """Raises `InvalidInput` for a judge that cannot be called with the answer and arguments of this function."""
    names, by_name, open_ended = _parameters(judge)
    if not names and ANSWER not in by_name and not open_ended:
        raise InvalidInput(f"The judge {judge_name(judge)} takes no argument: its last argument must be the answer.")
    known = (*parameters, "task")
    unknown = [name for name in names[:-1] if name not in known]
    unknown += [name for name in by_name if name not in known and not (name == ANSWER and not names)]
    if unknown:
        raise InvalidInput(
            f"The judge {judge_name(judge)} asks for {', '.join(unknown)}, which {of} does not have. Its last "
            f"argument is the answer; the others must have names from: {', '.join(dict.fromkeys(known))}."
        )


def judge_arguments(
    judge: Callable[..., Any], given: Mapping[str, Any], task: str, answer: Any
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The arguments of the judge by position and by name: those of the function by name, and the answer."""
    names, by_name, open_ended = _parameters(judge)
    if open_ended:
        return (task, answer), {}
    named = {name: given.get(name, answer if name == ANSWER and not names else task) for name in by_name}
    return ([*(given.get(name, task) for name in names[:-1]), answer] if names else []), named


def feedback_of(verdict: Any, judge: Callable[..., Any], answer: Any, threshold: float) -> Feedback:
    """The verdict as feedback. Raises `InvalidInput` for what is no verdict."""
    if isinstance(verdict, Feedback):
        return verdict if verdict.source else replace(verdict, source=judge_name(judge))
    score, why = verdict, ""
    if isinstance(verdict, tuple) and len(cast("tuple[Any, ...]", verdict)) == 2:
        score, why = cast("tuple[Any, Any]", verdict)
    score = _plain_number(score)
    if not isinstance(why, str) or not (score is None or isinstance(score, (bool, int, float))) or score != score:
        raise InvalidInput(
            f"The judge {judge_name(judge)} returned {verdict!r}. Return a bool, a score, (score, 'why'), a "
            "Feedback, or None if everything is right; or raise an exception."
        )
    if score is None:
        passed = verdict is None or None
        return Feedback(passed, why, 1.0 if passed else None, judge_name(judge))
    passed, given = score if isinstance(score, bool) else score >= threshold, bool(why)
    if not passed and not why:
        said = "no" if isinstance(score, bool) else f"{score:g} of {threshold:g}"
        why = f"{judge_name(judge)} said {said} to: {shown(answer)}"
    said = why if given else ""
    evidence = evidence_of([Finding(got=why, passed=passed)], said=said) if why else None
    return Feedback(passed, why, float(score), judge_name(judge), evidence=evidence)


def _plain_number(score: Any) -> Any:
    """The number or truth value in a scalar of numpy or torch, or in a `Decimal`; anything else as it is."""
    if getattr(score, "shape", None) == () and hasattr(score, "item"):
        return score.item()
    return float(score) if isinstance(score, (Decimal, Fraction)) else score


def objection(error: Exception, judge: Callable[..., Any], answer: Any, outer: BaseException | None = None) -> Feedback:
    """What a judge raised, as its no: the check that it made, and what it said. outer: as for `error_text`.

    A rate limit or a lost connection of the judge gives no verdict.
    """
    if is_transient(error):
        return Feedback(None, error_text(error, outer), source=judge_name(judge))
    asked = _asserted(error, judge)
    said = error_text(error, outer)
    if isinstance(error, AssertionError):
        said = said.removeprefix("AssertionError").removeprefix(": ")
    if not said or not isinstance(error, AssertionError):
        said = f"{said or type(error).__name__} for: {shown(answer)}"
    finding = Finding(asked, got=said)
    text = "\n".join(part for part in (asked, said) if part)
    return Feedback(False, text, 0.0, judge_name(judge), evidence=evidence_of([finding], said=said))


def shown(answer: Any) -> str:
    """An answer for a person or a prompt, shortened."""
    try:
        return truncate_text(answer if isinstance(answer, str) else repr(answer), SHOWN)
    except Exception:  # the answer's own text fails
        return f"<{type(answer).__name__}>"


def _asserted(error: Exception, judge: Callable[..., Any]) -> str:
    """The assert that failed in the judge's file, without its message; "" where it was none."""
    if not isinstance(error, AssertionError):
        return ""
    file = getattr(getattr(inspect.unwrap(judge), "__code__", None), "co_filename", None)
    frames = [frame for frame in extract_tb(error.__traceback__) if file and Path(frame.filename) == Path(file)]
    line = (frames[-1].line or "").strip() if frames else ""
    tree = parsed(line)
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    return f"assert {ast.unparse(node.test)}" if isinstance(node, ast.Assert) else line


def _parameters(judge: Callable[..., Any]) -> tuple[list[str], list[str], bool]:
    """The arguments that are given by position, those that are given by name, and whether it takes any."""
    try:
        found = inspect.signature(judge).parameters.values()
    except (TypeError, ValueError):  # such as a builtin
        return ["answer"], [], False
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [one for one in found if one.default is inspect.Parameter.empty]
    names = [one.name for one in required if one.kind in by_place]
    by_name = [one.name for one in required if one.kind is inspect.Parameter.KEYWORD_ONLY]
    optional = [] if by_name else [one.name for one in found if one.kind in by_place]
    open_ended = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in found) and not names
    return names or optional[:1], by_name, open_ended


def judge_name(judge: Callable[..., Any]) -> str:
    """What records and errors call a judge that is a function."""
    return str(getattr(judge, "__name__", type(judge).__name__))


class FunctionJudge:
    """An evaluator that is a function of the answer, or of the task and the answer.

    Args:
        of: What is judged, in errors.
    """

    expects: Literal["text"] = "text"

    def __init__(self, judge: Callable[..., Any], of: str) -> None:
        check_judge(judge, ("task",), of)
        self._judge, self._bugs = judge, Bugs()
        self.name = judge_name(judge)

    async def evaluate(self, episode: Episode) -> Feedback:
        """The verdict on the newest attempt."""
        task, answer, outer = episode.task.prompt, episode.trials[-1].attempt.output, sys.exception()
        try:
            by_place, by_name = judge_arguments(self._judge, {}, task, answer)
            verdict = self._judge(*by_place, **by_name)
            verdict = await verdict if hasattr(verdict, "__await__") else verdict
        except BUGS as error:
            raise InvalidInput(f"the judge {self.name} has a bug: {type(error).__name__}: {error}") from error
        except Exception as error:
            bug = self._bugs.verdict(error, f"the judge {self.name}")
            return bug or objection(error, self._judge, answer, outer)
        return feedback_of(verdict, self._judge, answer, 1.0)
