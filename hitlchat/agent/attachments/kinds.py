"""Kinds of files that can be attached, told by their content: never by the name alone or a browser's word."""

import re
import struct
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.base.canonical import storable
from hitlchat.base.problems import Invalid

IMAGE, TEXT, PDF = "image", "text", "pdf"
# By the ends of names: what a text is called, and what a file claims to be.
TEXTS: Final = {
    ".csv": "text/csv",
    ".tsv": "text/csv",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".json": "application/json",
}
CLAIMS: Final = {
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".webp"), IMAGE),
    **dict.fromkeys((*TEXTS, ".txt", ".log"), TEXT),
    ".pdf": PDF,
}
IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
# What a file is expected to be, by what its name claims.
EXPECTED: Final = {
    IMAGE: gettext_noop("a PNG, JPEG, GIF or WebP image, as the name says"),
    PDF: gettext_noop("a PDF, as the name says"),
    TEXT: gettext_noop("text in UTF-8, as the name says"),
    "": gettext_noop("a PNG, JPEG, GIF or WebP image, a PDF, or text such as Markdown, CSV or JSON"),
}
LABELS: Final = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WebP",
    "application/pdf": "PDF",
    "text/csv": "CSV",
    "text/markdown": "Markdown",
    "application/json": "JSON",
    "text/plain": "text",
}
# A picture with more would take a reader's browser gigabytes to show.
MOST_PIXELS: Final = 100_000_000
LONGEST_NAME: Final = 200
# Where a PDF has to begin, as its readers take it.
PDF_WITHIN: Final = 1024
# No text holds them; a form feed and the escape of colours may be in a log.
_BINARY: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_COMMENTS: Final = re.compile(r"\A\s*(?:<!--.*?-->\s*)*", re.DOTALL)
_MARKUP: Final = re.compile(
    r"<(?:!doctype|html|head|body|script|style|iframe|object|svg|math|\?xml|\?php)\b", re.IGNORECASE
)


class BadFile(Invalid):
    """The file cannot be attached; nothing was kept of it."""

    status = 415
    field = "file"


class TooLarge(BadFile):
    status = 413


@dataclass(frozen=True)
class Kind:
    """`text`: what a text says; empty for all else."""

    media_type: str
    text: str = ""

    @property
    def family(self) -> str:
        return IMAGE if self.media_type in IMAGES else PDF if self.media_type == "application/pdf" else TEXT


def clean_name(name: str) -> str:
    """Return the name without folders, and short enough; what cannot be seen in it stays, for pages to show."""
    last = storable(name).replace("\\", "/").rpartition("/")[2].strip()
    end = PurePosixPath(last).suffix[:20]
    short = last if len(last) <= LONGEST_NAME else f"{last[: LONGEST_NAME - len(end) - 1]}…{end}"
    return _("file") if short in ("", ".", "..") else short


def kind_of(data: bytes, name: str) -> Kind:
    """Return what the file is. Raises: BadFile, if it is nothing that can be attached, or not what its name says."""
    if not data:
        raise BadFile(_("“%(name)s” is empty.") % {"name": name})
    suffix = PurePosixPath(name).suffix.lower()
    found = _image(data, name) or (
        Kind("application/pdf") if b"%PDF-" in data[:PDF_WITHIN] else _text(data, name, suffix)
    )
    claimed = CLAIMS.get(suffix, found.family)
    if claimed != found.family:
        image = _("a %(kind)s image") % {"kind": LABELS[found.media_type]}
        raise _other(name, _(EXPECTED[claimed]), {IMAGE: image, PDF: _("a PDF"), TEXT: _("text")}[found.family])
    return found


def _text(data: bytes, name: str, suffix: str) -> Kind:
    expected = _(EXPECTED[CLAIMS.get(suffix, "")])
    # In UTF-8, or in UTF-16 that says so, as spreadsheets write it.
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding).replace("\r\n", "\n")
    except UnicodeDecodeError:
        text = None
    if text is None or _BINARY.search(text):
        archive = _("a ZIP archive or an Office document")
        other = _("of an unsupported type, or text in another encoding")
        raise _other(name, expected, archive if data.startswith(b"PK\x03\x04") else other)
    if begins := _MARKUP.match(_COMMENTS.sub("", text)):
        what = _("an SVG drawing") if "svg" in text[:2000].lower() else _("XML")
        raise _other(name, expected, what if begins[0].lower() in ("<svg", "<?xml", "<math") else "HTML")
    media_type = TEXTS.get(suffix, "text/plain")
    # What only calls itself JSON is shown to the model as what it is.
    is_broken = media_type == "application/json" and not (text.strip()[:1] in "[{" and text.strip()[-1:] in "]}")
    return Kind("text/plain" if is_broken else media_type, text)


def _image(data: bytes, name: str) -> Kind | None:
    for begins, media_type, size in (
        (b"\x89PNG", "image/png", _png),
        (b"\xff\xd8\xff", "image/jpeg", _jpeg),
        (b"GIF8", "image/gif", _gif),
        (b"RIFF", "image/webp", _webp),
    ):
        if not data.startswith(begins) or (media_type == "image/webp" and data[8:12] != b"WEBP"):
            continue
        try:
            width, height = size(data)
        except (ValueError, struct.error, IndexError):
            expected = _("a whole %(kind)s image") % {"kind": LABELS[media_type]}
            raise _other(name, expected, _("damaged or not really one")) from None
        if not 0 < width * height <= MOST_PIXELS:
            raise BadFile(
                _("“%(name)s” has %(width)s by %(height)s pixels. Expected an image of up to %(most)s in all.")
                % {"name": name, "width": f"{width:,}", "height": f"{height:,}", "most": f"{MOST_PIXELS:,}"}
            )
        return Kind(media_type)
    return None


def _png(data: bytes) -> tuple[int, int]:
    length, kind, width, height = struct.unpack(">I4sII", data[8:24])
    is_head = data[:8] == b"\x89PNG\r\n\x1a\n" and (length, kind) == (13, b"IHDR")
    (checked,) = struct.unpack(">I", data[29:33])
    if not is_head or zlib.crc32(data[12:29]) != checked or b"IDAT" not in data or b"IEND" not in data[-64:]:
        raise ValueError("no whole PNG")
    return width, height


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        if marker == 0xFF or 0xD0 <= marker <= 0xD8:
            at += 1 if marker == 0xFF else 2
        else:
            at += 2 + max(2, struct.unpack(">H", data[at + 2 : at + 4])[0])
    raise ValueError("no frame")


def _gif(data: bytes) -> tuple[int, int]:
    if data[:6] not in (b"GIF87a", b"GIF89a") or b"\x2c" not in data[13:] or data.rstrip(b"\0")[-1:] != b"\x3b":
        raise ValueError("no whole GIF")
    width, height = struct.unpack("<HH", data[6:10])
    return width, height


def _webp(data: bytes) -> tuple[int, int]:
    if struct.unpack("<I", data[4:8])[0] + 8 > len(data) + 1:
        raise ValueError("cut short")
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L" if data[20] == 0x2F:
            bits = int.from_bytes(data[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack("<HH", data[26:30])
            return width & 0x3FFF, height & 0x3FFF
    raise ValueError("no WebP")


def _other(name: str, expected: str, found: str) -> BadFile:
    sentence = _("“%(name)s” cannot be attached. Expected %(expected)s; the content is %(found)s.")
    return BadFile(sentence % {"name": name, "expected": expected, "found": found})
