"""The public face: what `mulligan` offers is listed, sorted, there, and documented."""

import inspect

import pytest

import mulligan


def test_all_is_sorted_and_is_what_is_public() -> None:
    assert mulligan.__all__ == sorted(mulligan.__all__)
    assert dir(mulligan) == mulligan.__all__


@pytest.mark.parametrize("name", mulligan.__all__)
def test_every_name_resolves_to_something_documented(name: str) -> None:
    thing = getattr(mulligan, name)
    assert inspect.isclass(thing) or inspect.isfunction(thing)
    assert thing.__name__ == name
    own = inspect.getdoc(thing) or ""
    assert len(own) > 20
    assert not own.startswith(f"{name}("), "the docstring that a dataclass makes for itself says nothing"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'mulligan' has no attribute 'solv'"):
        _ = mulligan.solv  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]


def test_a_type_checker_sees_the_same_names() -> None:
    """The imports for type checkers, the homes and `__all__` are three lists of the same names."""
    source = inspect.getsource(mulligan)
    checked = [line for line in source.splitlines() if line.startswith("    from mulligan.")]
    names = {name.strip() for line in checked for name in line.partition(" import ")[2].split(",")}
    assert names == set(mulligan.__all__)
