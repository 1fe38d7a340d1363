"""Images: what they are by their content, and what is taken off them before they are kept or sent.

Works alone: `format_of(data)`, `checked(image)`. Only scaling an image down needs a package (the extra `images`).
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

# Above one of these an image is scaled down: every provider takes what is below.
SIDE = 2000
BYTES = 3_500_000
# Pixels that an image may have at all: unpacking more could fill the memory.
PIXELS = 50_000_000

# How many images a question about a trial holds, where nobody says otherwise.
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
    """The hash by which an image is kept and known."""
    return hashlib.sha256(image.data).hexdigest()


def format_of(data: bytes) -> Format:
    """What the bytes are, by what they hold. Raises `InvalidInput` for what is no image that can be sent."""
    return _stripped(data)[0]


def image_text(image: Image) -> str:
    """An image in a few words: `PNG, 800 x 600 pixels, 12 kB`."""
    size = f"{(len(image.data) + 999) // 1000} kB"
    try:
        return f"{format_of(image.data)}, {size}"
    except InvalidInput:  # of an older record
        return f"{image.media_type}, {size}"


def checked(image: Image) -> Image:
    """The image as it is kept: its type by its content, without metadata, scaled down where it is too large.

    Checking again changes nothing.

    Raises:
        InvalidInput: it is not a PNG, JPEG, WebP or GIF, is cut off, or has too many pixels.
        MissingExtra: it must be scaled down, and the package that can is not here.
    """
    found, data = _stripped(image.data)
    if found.width * found.height > PIXELS:
        raise InvalidInput(f"An image ({found}) has more than {PIXELS:,} pixels. Give a smaller one.")
    if max(found.width, found.height) > SIDE or len(data) > BYTES:
        return _scaled(Image(found.media_type, data), found)
    return Image(found.media_type, data)


def checked_images(record: R) -> R:
    """A task, step or feedback with its images checked; itself where it has none. Raises as `checked` does."""
    if isinstance(record, Step) and record.outcome is not None:
        record = replace(record, outcome=_outcome(record.outcome))
    return replace(record, images=tuple(map(checked, record.images))) if record.images else record


def with_images(messages: Sequence[Message], episode: Episode, most: int) -> tuple[Message, ...]:
    """The messages of a question about the newest trial, the last one with its images and a line that says which.

    These are what is to be seen before and after: the images of the feedback, or else of the last steps. Where there is
    room for more of `most`, those of the task stand before them.
    """
    trial = episode.trials[-1]
    steps = [image for step in trial.attempt.steps for image in step.images]
    own = once(episode.task.images)
    seen = tuple(image for image in once(trial.feedback.images if trial.feedback else ()) or once(steps[-2:]))
    newest = tuple(image for image in seen if image not in own)
    kept = newest[max(0, len(newest) - most) :]
    of_task = own[: most - len(kept)]
    *before, last = messages
    if not newest and len(of_task) == len(own):  # nothing that needs a word
        return (*before, replace(last, images=of_task))
    parts = [(len(of_task), "of the task"), (len(kept), "of this trial, the newest last")]
    said = "; ".join(f"{count} {whose}" for count, whose in parts if count)
    left = len(own) + len(newest) - len(of_task) - len(kept)
    note = (f"Images, in this order: {said}." if said else "") + (f" {left} more are not shown." if left else "")
    return (*before, replace(last, text=f"{last.text}\n\n{note.strip()}", images=(*of_task, *kept)))


def checked_count(images: int) -> int:
    """Raises `InvalidInput` for a number of images that cannot be."""
    if images < 0:
        raise InvalidInput(f"images must be at least 0, not {images}.")
    return images


def once(images: Iterable[Image]) -> tuple[Image, ...]:
    """The images in their order, each once, however often it occurs."""
    return tuple({sha256_of(image): image for image in images}.values())


def _outcome(outcome: Outcome) -> Outcome:
    said = outcome.feedback
    return replace(outcome, feedback=checked_images(said)) if said is not None and said.images else outcome


# --- what the bytes are -----------------------------------------------------------------------------------------


def _stripped(data: bytes) -> tuple[Format, bytes]:
    """The format, and the bytes without metadata and without what follows the image."""
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
        raise InvalidInput("An image is damaged or incomplete: give the whole file.") from None
    raise InvalidInput(
        f"An image is not in any of the formats {', '.join(FORMATS.values())} (it begins with {data[:8]!r}). Convert "
        "it."
    )


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
    found, turned = None, 1
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
            found = _format("image/jpeg", _number(body, 5, 2), _number(body, 3, 2))
        if kind == 0xE1 and body[2:8] == b"Exif\0\0":
            turned = _orientation(body[8:])
        elif kind < 0xE0 or kind in (0xE0, 0xEE) or (kind == 0xE2 and body[2:13] == b"ICC_PROFILE"):
            kept.append(b"\xff" + marker[1] + body)
        at = marker.end() + len(body)
    if found is None:
        raise _CutOff
    if turned != 1:  # the one part of the metadata that says how the pixels are to be seen
        kept.insert(1, _exif(turned))
    return found, b"".join((*kept, b"\xff\xd9"))


def _orientation(tiff: bytes) -> int:
    """How a photograph is turned, 1 to 8; 1 where it does not say."""
    order: Any = "little" if tiff[:2] == b"II" else "big"
    try:
        table = _number(tiff, 4, 4, order)
        for entry in range(table + 2, table + 2 + 12 * _number(tiff, table, 2, order), 12):
            if _number(tiff, entry, 2, order) == 0x0112:
                turned = _number(tiff, entry + 8, 2, order)
                return turned if 1 <= turned <= 8 else 1
    except _CutOff:
        pass
    return 1


def _exif(turned: int) -> bytes:
    tiff = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01" + turned.to_bytes(2, "big") + bytes(6)
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
            body = bytes([body[0] & ~0x0C]) + body[1:]  # it announced metadata
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
        both = _number(body, 1, 4, "little")
        return (both & 0x3FFF) + 1, (both >> 14 & 0x3FFF) + 1
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
    return _format("image/gif", _number(data, 6, 2, "little"), _number(data, 8, 2, "little")), b"".join(
        (*kept, b"\x3b")
    )


def _after_blocks(data: bytes, at: int) -> int:
    while length := data[at]:
        at += length + 1
    return at + 1


# --- too large --------------------------------------------------------------------------------------------------


def _scaled(image: Image, found: Format) -> Image:
    need = f"An image ({found}, {len(image.data):,} bytes) is above {SIDE} pixels a side or {BYTES:,} bytes"
    require(f"{need}. Give a smaller one, or install what scales it down", "PIL", "images", distribution="pillow")
    from PIL import Image as pillow
    from PIL import ImageOps

    try:
        with pillow.open(io.BytesIO(image.data)) as opened:
            picture: Picture = ImageOps.exif_transpose(opened)
    except (OSError, ValueError, SyntaxError) as error:
        raise InvalidInput(f"An image ({found}) cannot be read: {error}") from None
    opaque = image.media_type == "image/jpeg"
    picture = picture.convert("RGB" if opaque else "RGBA")
    for data in _smaller(picture, "JPEG" if opaque else "PNG"):
        if len(data) <= BYTES:
            return Image("image/jpeg" if opaque else "image/png", _stripped(data)[1])
    raise InvalidInput(f"An image ({found}) is still larger than {BYTES:,} bytes. Give a smaller one.")


def _smaller(picture: Picture, kind: str) -> Iterator[bytes]:
    """The picture within `SIDE`, then smaller and smaller."""
    side = SIDE
    while side >= 1:
        picture.thumbnail((side, side))
        written = io.BytesIO()
        picture.save(written, kind)
        yield written.getvalue()
        side = max(picture.size) * 3 // 4
