"""Recognises the format of images, and removes their metadata before they are kept or sent.

Use it alone: `format_of(data)`, `checked(image)`. Only scaling an image down needs a package (the extra `images`).
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from mulligan.core.errors import InvalidInput
from mulligan.core.extras import require
from mulligan.core.questions import Message
from mulligan.core.records import Episode, Feedback, Image, Outcome, Step, Task

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

R = TypeVar("R", Task, Step, Feedback)

# Larger images are scaled down: every provider accepts these sizes.
SIDE = 2000
BYTES = 3_500_000
# Images with more pixels are refused: unpacking them could fill the memory.
PIXELS = 50_000_000

# The default number of images in a question about a trial.
IMAGES = 4

FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WebP", "image/gif": "GIF"}

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_KEPT = frozenset(
    b"IHDR PLTE IDAT IEND tRNS cHRM gAMA iCCP sBIT sRGB cICP bKGD pHYs acTL fcTL fdAT".split()  # pixels and colours
)
_MARKER = re.compile(rb"\xff+([^\x00\xd0-\xd7\xff])")
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_RIFF_KEPT = frozenset({b"VP8X", b"VP8 ", b"VP8L", b"ALPH", b"ANIM", b"ANMF", b"ICCP"})
_LOOPS = b"NETSCAPE2.0"


@dataclass(frozen=True)
class Format:
    media_type: str
    width: int
    height: int

    def __str__(self) -> str:
        return f"{FORMATS[self.media_type]}, {self.width} x {self.height} pixels"


def sha256_of(image: Image) -> str:
    """Returns the hash that identifies an image."""
    return hashlib.sha256(image.data).hexdigest()


def format_of(data: bytes) -> Format:
    """Returns the format of these bytes. Raises `InvalidInput` if they are not an image that can be sent."""
    return _stripped(data)[0]


def image_text(image: Image) -> str:
    """Returns a short description of an image: `PNG, 800 x 600 pixels, 12 kB`."""
    size = f"{(len(image.data) + 999) // 1000} kB"
    try:
        return f"{format_of(image.data)}, {size}"
    except InvalidInput:  # in an older record
        return f"{image.media_type}, {size}"


def checked(image: Image) -> Image:
    """Returns the image with the media type of its content, without metadata, and scaled down if it is too large.

    Checking an image again does not change it.

    Raises:
        InvalidInput: the image is not a PNG, JPEG, WebP or GIF, is cut off, or has too many pixels.
        MissingExtra: the image must be scaled down, but the package for that is not installed.
    """
    format, data = _stripped(image.data)
    if format.width * format.height > PIXELS:
        raise InvalidInput(f"An image ({format}) has more than {PIXELS:,} pixels. Use a smaller one.")
    stripped = Image(format.media_type, data)
    return _scaled(stripped, format) if max(format.width, format.height) > SIDE or len(data) > BYTES else stripped


def checked_images(record: R) -> R:
    """Returns a task, step or feedback with its images checked. Raises the errors of `checked`."""
    if isinstance(record, Step) and record.outcome is not None:
        record = replace(record, outcome=_outcome(record.outcome))
    return replace(record, images=tuple(map(checked, record.images))) if record.images else record


def with_images(messages: Sequence[Message], episode: Episode, most: int) -> tuple[Message, ...]:
    """Returns the messages of a question about the newest trial, with at most `most` images in the last one.

    The images are those of the feedback or, if it has none, the newest two of the steps. Those of the task come before
    them as far as there is room. A line of the message says which images these are.
    """
    trial = episode.trials[-1]
    steps = [image for step in trial.attempt.steps for image in step.images]
    of_task = once(episode.task.images)
    of_trial = once(trial.feedback.images if trial.feedback else ()) or once(steps[-2:])
    of_trial = tuple(image for image in of_trial if image not in of_task)
    newest = of_trial[max(0, len(of_trial) - most) :]
    first = of_task[: most - len(newest)]
    *before, last = messages
    if not of_trial and len(first) == len(of_task):  # needs no note
        return (*before, replace(last, images=first))
    parts = [(len(first), "of the task"), (len(newest), "of this trial, the newest last")]
    listed = "; ".join(f"{count} {origin}" for count, origin in parts if count)
    left = len(of_task) + len(of_trial) - len(first) - len(newest)
    note = (f"Images, in this order: {listed}." if listed else "") + (f" {left} more are not shown." if left else "")
    return (*before, replace(last, text=f"{last.text}\n\n{note.strip()}", images=(*first, *newest)))


def checked_count(images: int) -> int:
    """Returns the number of images. Raises `InvalidInput` if it is negative."""
    if images < 0:
        raise InvalidInput(f"images must be at least 0, not {images}.")
    return images


def once(images: Iterable[Image]) -> tuple[Image, ...]:
    """Returns the images in order, without duplicates."""
    return tuple({sha256_of(image): image for image in images}.values())


def _outcome(outcome: Outcome) -> Outcome:
    feedback = outcome.feedback
    return replace(outcome, feedback=checked_images(feedback)) if feedback and feedback.images else outcome


# --- formats ----------------------------------------------------------------------------------------------------


def _stripped(data: bytes) -> tuple[Format, bytes]:
    """Returns the format, and the bytes without metadata and without anything after the image."""
    try:
        if data.startswith(_PNG):
            return _png(data)
        if data.startswith(b"\xff\xd8\xff"):
            return _jpeg(data)
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return _webp(data)
        if data[:6] in (b"GIF87a", b"GIF89a"):
            return _gif(data)
    except (IndexError, _CutOff):
        raise InvalidInput("An image is damaged or incomplete: pass the whole file.") from None
    formats = ", ".join(FORMATS.values())
    raise InvalidInput(f"An image is not in any of the formats {formats} (it begins with {data[:8]!r}). Convert it.")


class _CutOff(Exception):
    pass


def _taken(data: bytes, start: int, count: int) -> bytes:
    piece = data[start : start + count]
    if len(piece) < count:
        raise _CutOff
    return piece


def _format(media_type: str, width: int, height: int) -> Format:
    if not width or not height:
        raise _CutOff
    return Format(media_type, width, height)


def _number(data: bytes, start: int, count: int, order: Any = "big") -> int:
    return int.from_bytes(_taken(data, start, count), order)


def _png(data: bytes) -> tuple[Format, bytes]:
    if _taken(data, 12, 4) != b"IHDR":
        raise _CutOff
    kept, at, kind = [_PNG], 8, b""
    while kind != b"IEND":
        length, kind = _number(data, at, 4), _taken(data, at + 4, 4)
        chunk = _taken(data, at, length + 12)
        if kind in _PNG_KEPT:
            kept.append(chunk)
        at += len(chunk)
    return _format("image/png", _number(data, 16, 4), _number(data, 20, 4)), b"".join(kept)


def _jpeg(data: bytes) -> tuple[Format, bytes]:
    kept, at = [data[:2]], 2
    format, orientation = None, 1
    while True:
        marker = _MARKER.search(data, at)
        if marker is None:
            raise _CutOff
        kept.append(data[at : marker.start()])  # the pixels of a scan
        kind = marker[1][0]
        if kind == 0xD9:
            break
        body = _taken(data, marker.end(), _number(data, marker.end(), 2))
        if kind in _FRAMES:
            format = _format("image/jpeg", _number(body, 5, 2), _number(body, 3, 2))
        if kind == 0xE1 and body[2:8] == b"Exif\0\0":
            orientation = _orientation(body[8:])
        elif kind < 0xE0 or kind in (0xE0, 0xEE) or (kind == 0xE2 and body[2:13] == b"ICC_PROFILE"):
            kept.append(b"\xff" + marker[1] + body)
        at = marker.end() + len(body)
    if format is None:
        raise _CutOff
    if orientation != 1:  # the one part of the metadata that changes the picture
        kept.insert(1, _exif(orientation))
    return format, b"".join((*kept, b"\xff\xd9"))


def _orientation(tiff: bytes) -> int:
    """Returns the orientation in Exif data, 1 to 8; 1 if it is missing or damaged."""
    order: Any = "little" if tiff[:2] == b"II" else "big"
    try:
        table = _number(tiff, 4, 4, order)
        for entry in range(table + 2, table + 2 + 12 * _number(tiff, table, 2, order), 12):
            if _number(tiff, entry, 2, order) == 0x0112:
                orientation = _number(tiff, entry + 8, 2, order)
                return orientation if 1 <= orientation <= 8 else 1
    except _CutOff:
        pass
    return 1


def _exif(orientation: int) -> bytes:
    tiff = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01" + orientation.to_bytes(2, "big") + bytes(6)
    body = b"Exif\0\0" + tiff
    return b"\xff\xe1" + (len(body) + 2).to_bytes(2, "big") + body


def _webp(data: bytes) -> tuple[Format, bytes]:
    end = 8 + _number(data, 4, 4, "little")
    data, at = _taken(data, 0, end), 12
    kept, size = list[bytes](), None
    while at < end:
        kind, length = _taken(data, at, 4), _number(data, at + 4, 4, "little")
        body = _taken(data, at + 8, length)
        if size is None:
            size = _webp_size(kind, body)
        if kind == b"VP8X":
            body = bytes([body[0] & ~0x0C]) + body[1:]  # without the flags of metadata
        if kind in _RIFF_KEPT:
            kept.append(kind + length.to_bytes(4, "little") + body + bytes(length % 2))
        at += 8 + length + length % 2
    if size is None:
        raise _CutOff
    content = b"WEBP" + b"".join(kept)
    return _format("image/webp", *size), b"RIFF" + len(content).to_bytes(4, "little") + content


def _webp_size(kind: bytes, body: bytes) -> tuple[int, int] | None:
    if kind == b"VP8X":
        return _number(body, 4, 3, "little") + 1, _number(body, 7, 3, "little") + 1
    if kind == b"VP8L":
        bits = _number(body, 1, 4, "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return _number(body, 6, 2, "little") & 0x3FFF, _number(body, 8, 2, "little") & 0x3FFF
    return None


def _gif(data: bytes) -> tuple[Format, bytes]:
    flags = data[10]
    at = 13 + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
    kept = [_taken(data, 0, at)]
    while (kind := data[at]) != 0x3B:
        start = at
        if kind == 0x21:
            label, first = data[at + 1], data[at + 3 : at + 14]
            at = _after_blocks(data, at + 2)
            keep = label == 0xF9 or (label == 0xFF and first == _LOOPS)
        elif kind == 0x2C:
            flags = data[at + 9]
            at = _after_blocks(data, at + 11 + (3 << (flags & 7) + 1 if flags & 0x80 else 0))
            keep = True
        else:
            raise _CutOff
        if keep:
            kept.append(_taken(data, start, at - start))
    format = _format("image/gif", _number(data, 6, 2, "little"), _number(data, 8, 2, "little"))
    return format, b"".join((*kept, b"\x3b"))


def _after_blocks(data: bytes, at: int) -> int:
    while length := data[at]:
        at += length + 1
    return at + 1


# --- scaling ----------------------------------------------------------------------------------------------------


def _scaled(image: Image, format: Format) -> Image:
    need = f"An image ({format}, {len(image.data):,} bytes) is above {SIDE} pixels a side or {BYTES:,} bytes"
    require(f"{need}. Use a smaller one, or install what scales it down", "PIL", "images", distribution="pillow")
    from PIL import Image as pillow
    from PIL import ImageOps

    try:
        with pillow.open(io.BytesIO(image.data)) as opened:
            picture: Picture = ImageOps.exif_transpose(opened)
    except (OSError, ValueError, SyntaxError) as error:
        raise InvalidInput(f"An image ({format}) cannot be read: {error}") from None
    opaque = image.media_type == "image/jpeg"
    picture = picture.convert("RGB" if opaque else "RGBA")
    for data in _smaller(picture, "JPEG" if opaque else "PNG"):
        if len(data) <= BYTES:
            return Image("image/jpeg" if opaque else "image/png", _stripped(data)[1])
    raise InvalidInput(f"An image ({format}) is still larger than {BYTES:,} bytes. Use a smaller one.")


def _smaller(picture: Picture, kind: str) -> Iterator[bytes]:
    """Yields the picture with sides up to `SIDE`, then smaller each time."""
    side = SIDE
    while side >= 1:
        picture.thumbnail((side, side))
        written = io.BytesIO()
        picture.save(written, kind)
        yield written.getvalue()
        side = max(picture.size) * 3 // 4
