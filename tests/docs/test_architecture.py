"""The page on the source has the picture that the source gives."""

from rooms import PAGE, drawn


def test_the_picture_is_that_of_the_imports() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "core --" not in page  # core imports no other room
    assert page == drawn(page), "run: python tools/rooms.py"
