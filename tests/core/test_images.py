"""Images by their content: what is kept of them, and what is refused."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as pillow
from PIL.PngImagePlugin import PngInfo

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Feedback, Image, Outcome, Step
from mulligan.text import images
from mulligan.text.images import checked, checked_images, format_of, image_text, once

SECRET = b"taken at home"
TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}


def drawn(kind: str, size: tuple[int, int] = (8, 5), *, orientation: int = 1, metadata: bool = True) -> bytes:
    picture = pillow.linear_gradient("L").resize(size).convert("RGB")
    said = pillow.Exif()
    said[0x010E], said[0x0112] = SECRET.decode(), orientation
    text = PngInfo()
    text.add_text("Comment", SECRET.decode())
    options = {"PNG": {"pnginfo": text}, "GIF": {"comment": SECRET}, "JPEG": {"comment": SECRET}, "WEBP": {}}[kind]
    exif = {} if kind == "GIF" else {"exif": said}
    written = io.BytesIO()
    picture.save(written, kind, **({**options, **exif} if metadata else {}))
    return written.getvalue()


def pixels(data: bytes) -> bytes:
    return pillow.open(io.BytesIO(data)).convert("RGB").tobytes()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("turned", [1, 6])
def test_metadata_goes_and_the_pixels_stay(kind: str, turned: int) -> None:
    data = drawn(kind, orientation=turned)
    kept = checked(Image("image/png", data + b"and something hidden behind it"))
    assert kept.media_type == TYPES[kind]
    assert SECRET not in kept.data
    assert b"hidden" not in kept.data
    assert pixels(kept.data) == pixels(data)
    assert checked(kept) == kept
    found = format_of(kept.data)
    assert (found.width, found.height) == (8, 5)
    seen = pillow.open(io.BytesIO(kept.data)).getexif().get(0x0112, 1)
    assert seen == (turned if kind == "JPEG" else 1)  # how a photograph is turned is no metadata to be lost


@given(st.sampled_from(sorted(TYPES)), st.data())
def test_whatever_is_cut_off_or_changed_is_refused_or_read(kind: str, data: st.DataObject) -> None:
    whole = bytearray(drawn(kind))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(whole)))
    for given_bytes in (bytes(whole), bytes(whole[:end])):
        try:
            kept = checked(Image("image/png", given_bytes))
        except InvalidInput:
            continue
        assert checked(kept) == kept


@given(st.binary(max_size=64))
def test_other_bytes_are_refused_in_words(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="An image is"):
        checked(Image("image/png", data))
    assert image_text(Image("image/png", data)).startswith("image/png, ")


@pytest.mark.parametrize(("kind", "seen"), [("PNG", "40 x 20"), ("JPEG", "20 x 40")])  # the photograph is turned
def test_what_is_too_large_is_scaled_down_as_it_is_seen(kind: str, seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "SIDE", 40)
    kept = checked(Image("image/png", drawn(kind, (120, 60), orientation=6)))
    assert (kept.media_type, str(format_of(kept.data))) == (TYPES[kind], f"{kind}, {seen} pixels")
    assert checked(kept) == kept
    monkeypatch.setattr(images, "BYTES", 900)
    smaller = checked(Image("image/png", drawn(kind, (120, 60))))
    assert len(smaller.data) <= 900


def test_without_the_package_a_large_image_is_refused_and_what_to_do_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str) -> None:
        assert module == "PIL"

    monkeypatch.setattr("mulligan.core.extras.find_spec", missing)
    monkeypatch.setattr(images, "SIDE", 40)
    assert checked(Image("", drawn("PNG"))).media_type == "image/png"
    with pytest.raises(InvalidInput, match=r"above 40 pixels a side .* Use a smaller one, or install .*\[images\]"):
        checked(Image("image/png", drawn("PNG", (120, 60))))


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "PIXELS", 39)
    with pytest.raises(InvalidInput, match="has more than 39 pixels"):
        checked(Image("image/png", drawn("PNG")))


def test_a_step_and_the_feedback_in_it() -> None:
    raw = Image("image/jpeg", drawn("PNG"))
    said = Feedback(False, "no", images=(raw,))
    kept = checked_images(Step(images=(raw,), outcome=Outcome(feedback=said)))
    assert kept.outcome is not None
    assert kept.outcome.feedback is not None
    assert kept.images == kept.outcome.feedback.images == (checked(raw),)
    bare = Step(action="x")
    assert checked_images(bare) is bare
    assert once([raw, *kept.images, raw]) == (raw, checked(raw))
