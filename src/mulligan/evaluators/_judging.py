"""Judges by a function: turns what it returns or raises into feedback."""

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
"""What a judge returns. None: everything is right. A number is a score; with a text, the text says why."""
Judged: TypeAlias = Verdict | Awaitable[Verdict]
JudgeFunction: TypeAlias = Callable[[Any], Judged] | Callable[[Any, Any], Judged] | Callable[[Any, Any, Any], Judged]

BUGS = (NameError, ImportError, SyntaxError)
"""Errors of the judge itself, which end the call. Any other error means that the answer is wrong."""
ANSWER = "answer"
"""The name of the answer for a judge that takes its arguments by name only."""
SHOWN_TOKENS = 100
"""Tokens of an answer that the feedback shows if the judge says nothing."""


def returned(answer: object) -> None:
    """The judge of a function that has none: it accepts any answer."""


def check_judge(judge: Callable[..., Any], parameters: Sequence[str], of: str) -> None:
    """Raises `InvalidInput` if a judge cannot be called with the answer and the arguments of a function.

    Args:
        parameters: those of the function.
        of: the function, in errors.
    """
    names, by_name, open_ended = _parameters(judge)
    if not names and ANSWER not in by_name and not open_ended:
        raise InvalidInput(f"The judge {judge_name(judge)} takes no arguments: add a parameter for the answer.")
    available = (*parameters, "task")
    unknown = [name for name in names[:-1] if name not in available]
    unknown += [name for name in by_name if name not in available and not (name == ANSWER and not names)]
    if unknown:
        raise InvalidInput(
            f"The judge {judge_name(judge)} needs {', '.join(unknown)}, which {of} does not have. Its last "
            "parameter receives the answer; the others must have names from: "
            f"{', '.join(dict.fromkeys(available))}."
        )


def judge_arguments(
    judge: Callable[..., Any], arguments: Mapping[str, Any], task: str, answer: Any
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The arguments of the judge by position and by name: those of the function by name, and the answer."""
    names, by_name, open_ended = _parameters(judge)
    if open_ended:
        return (task, answer), {}
    keywords = {name: arguments.get(name, answer if name == ANSWER and not names else task) for name in by_name}
    return ([*(arguments.get(name, task) for name in names[:-1]), answer] if names else []), keywords


def feedback_of(verdict: Any, judge: Callable[..., Any], answer: Any, threshold: float) -> Feedback:
    """The verdict as feedback. Raises `InvalidInput` if it is not a verdict."""
    if isinstance(verdict, Feedback):
        return verdict if verdict.source else replace(verdict, source=judge_name(judge))
    score, why = verdict, ""
    if isinstance(verdict, tuple) and len(cast("tuple[Any, ...]", verdict)) == 2:
        score, why = cast("tuple[Any, Any]", verdict)
    score = _plain_number(score)
    if not isinstance(why, str) or not (score is None or isinstance(score, (bool, int, float))) or score != score:
        raise InvalidInput(
            f"The judge {judge_name(judge)} returned {verdict!r}. Return a bool, a score, (score, 'why'), a Feedback, "
            "or None if everything is correct; or raise an exception."
        )
    if score is None:
        passed = verdict is None or None
        return Feedback(passed, why, 1.0 if passed else None, judge_name(judge))
    passed, said = score if isinstance(score, bool) else score >= threshold, why
    if not passed and not why:
        verdict = "no" if isinstance(score, bool) else f"{score:g} of {threshold:g}"
        why = f"{judge_name(judge)} said {verdict} to: {shown(answer)}"
    evidence = evidence_of([Finding(got=why, passed=passed)], said=said) if why else None
    return Feedback(passed, why, float(score), judge_name(judge), evidence=evidence)


def _plain_number(score: Any) -> Any:
    """The number or bool in a scalar of numpy or torch, or in a `Decimal`; anything else unchanged."""
    if getattr(score, "shape", None) == () and hasattr(score, "item"):
        return score.item()
    return float(score) if isinstance(score, (Decimal, Fraction)) else score


def objection(error: Exception, judge: Callable[..., Any], answer: Any, outer: BaseException | None = None) -> Feedback:
    """The feedback on what a judge raised: the check that failed, and the message.

    A rate limit or a lost connection of the judge gives no verdict. outer: as for `error_text`.
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
        is_text = isinstance(answer, str) and answer.strip()  # white space would not be seen
        return truncate_text(answer if is_text else repr(answer), SHOWN_TOKENS)
    except Exception:  # the answer's own text fails
        return f"<{type(answer).__name__}>"


def _asserted(error: Exception, judge: Callable[..., Any]) -> str:
    """The assert that failed in the judge's file, without its message; "" for another error."""
    if not isinstance(error, AssertionError):
        return ""
    file = getattr(getattr(inspect.unwrap(judge), "__code__", None), "co_filename", None)
    frames = [frame for frame in extract_tb(error.__traceback__) if file and Path(frame.filename) == Path(file)]
    line = (frames[-1].line or "").strip() if frames else ""
    tree = parsed(line)
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    return f"assert {ast.unparse(node.test)}" if isinstance(node, ast.Assert) else line


def _parameters(judge: Callable[..., Any]) -> tuple[list[str], list[str], bool]:
    """The parameters that get their arguments by position, those that get them by name, and whether it takes any."""
    try:
        parameters = inspect.signature(judge).parameters.values()
    except (TypeError, ValueError):  # such as a builtin
        return ["answer"], [], False
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [parameter for parameter in parameters if parameter.default is inspect.Parameter.empty]
    names = [parameter.name for parameter in required if parameter.kind in by_place]
    by_name = [parameter.name for parameter in required if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    optional = [] if by_name else [parameter.name for parameter in parameters if parameter.kind in by_place]
    open_ended = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters) and not names
    return names or optional[:1], by_name, open_ended


def judge_name(judge: Callable[..., Any]) -> str:
    """The name of a judge that is a function, in records and errors."""
    return str(getattr(judge, "__name__", type(judge).__name__))


class FunctionJudge:
    """An evaluator that is a function of the answer, or of the task and the answer.

    Args:
        of: what is judged, in errors.
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
