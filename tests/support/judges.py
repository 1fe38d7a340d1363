"""A judge in a file whose asserts pytest does not rewrite, as a user's own."""


def in_euros(task: str, answer: str) -> None:
    assert answer.endswith("EUR"), f"no currency in {answer!r}"
