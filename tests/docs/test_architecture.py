"""The page on the source has the picture that the layers give."""

from rooms import PICTURE, picture


def test_the_picture_is_that_of_the_layers() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(), "run: python tools/rooms.py"
