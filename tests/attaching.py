"""Files to attach, as the programs that write such files make them, and those of somebody who means harm."""

import struct
import zlib
from typing import Final

SVG: Final = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
HTML: Final = b"  <!-- a comment -->\n<!DOCTYPE html><script>alert(1)</script>"


def png(width: int = 4, height: int = 3, *, head_only: bool = False) -> bytes:
    """A picture in one colour; `head_only`: all that a quick look would see of it."""
    head = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    if head_only:
        return head + b"<html><script>alert(1)</script></html>"
    rows = (b"\0" + b"\x80" * min(width, 1000)) * min(height, 1000)
    return head + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def jpeg(width: int = 4, height: int = 3) -> bytes:
    frame = struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0" + struct.pack(">H", len(frame) + 2) + frame + b"\xff\xd9"


def gif(width: int = 4, height: int = 3) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0" + b"\x2c" + bytes(9) + b"\x02\0\x3b"


def webp(width: int = 4, height: int = 3) -> bytes:
    data = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    return b"RIFF" + struct.pack("<I", 12 + len(data)) + b"WEBPVP8 " + struct.pack("<I", len(data)) + data


def pdf(*pages: str | bytes) -> bytes:
    """A PDF with a line of text on each page; bytes are what draws the page."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, page in enumerate(pages):
        look = b"/MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(b"<< /Type /Page /Parent 2 0 R /Contents %d 0 R %s >>" % (5 + 2 * number, look))
        drawn = page if isinstance(page, bytes) else b"BT /F1 12 Tf 72 720 Td (%s) Tj ET" % page.encode("ascii")
        packed = zlib.compress(drawn, 9)
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed))
    return _numbered(objects)


def _numbered(objects: list[bytes]) -> bytes:
    found, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(b"%010d 00000 n \n" % len(found))
        found += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    count = len(objects) + 1
    table = b"xref\n0 %d\n0000000000 65535 f \n%s" % (count, b"".join(places))
    return found + table + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (count, len(found))


# Of a few hundred kilobytes: a page that takes minutes to read, and one that takes gigabytes.
SLOW_PDF: Final = pdf(b"BT /F1 12 Tf " + b"(aaaaaaaa) Tj " * 3_000_000 + b" ET")
LOOP_PDF: Final = _numbered([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>"])
