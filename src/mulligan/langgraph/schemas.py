"""What a model is asked for: a draft, and then revisions. Bring schemas of your own with more fields."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from mulligan.core.errors import InvalidInput


def score_of(said: Any) -> float | None:
    """A score such as "8", 8 or "8/10", from 0 to 10; None for what is none."""
    if said is None:
        return None
    try:
        score = float(str(said).partition("/")[0])
    except ValueError:
        return None
    return score if 0 <= score <= 10 else None


def _checked(said: Any) -> float:
    if (score := score_of(said)) is None:
        raise ValueError("a score is a number from 0 to 10")
    return score


class Draft(BaseModel):
    """A first answer, to be executed."""

    answer: str = Field(description="What is to be executed, exactly as it is to be executed.")
    reflection: str = Field(default="", description="What could be wrong with it.")


class Revision(BaseModel):
    """The newest result, looked at; and the next answer."""

    reflection: str = Field(description="What the result shows, and what is wrong with the answer, if anything.")
    score: Annotated[float, BeforeValidator(_checked)] = Field(
        description="How well the result answers the question, from 0 (not at all) to 10 (fully)."
    )
    revised_answer: str = Field(description="What is to be executed next; the same answer where nothing is wrong.")


ANSWERS = ("revised_answer", "revised_query", "answer")
"""The field that holds what is executed: the first of these that says something."""


def checked_schemas(draft: type[BaseModel], revise: type[BaseModel], judged: bool) -> None:
    """Raises `InvalidInput` for schemas that a graph cannot go by."""
    for schema, role in ((draft, "draft"), (revise, "revise")):
        if not isinstance(schema, type) or not issubclass(schema, BaseModel):
            raise InvalidInput(f"{role} is a pydantic model (a class), not {schema!r}.")
        if not any(name in schema.model_fields for name in ANSWERS):
            raise InvalidInput(f"{schema.__name__} has no field for what is executed: name one {' or '.join(ANSWERS)}.")
    if not judged and "score" not in revise.model_fields:
        raise InvalidInput(
            f"{revise.__name__} has no field 'score', so nothing says when it is good enough: give judge=…."
        )
    if draft.__name__ == revise.__name__:
        raise InvalidInput(f"Both schemas are called {draft.__name__}: a model would not know which is meant.")
