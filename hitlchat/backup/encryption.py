"""Encryption to a passphrase, as a stream: scrypt (RFC 7914) makes the key, ChaCha20-Poly1305 seals pieces of 1 MiB.

A piece's nonce is its number and whether it is the last, so none can be moved, repeated, or cut off unnoticed; the
header is authenticated with each. Every file has a salt, and so a key, of its own. The passphrase comes from a file or
a terminal, never from an argument, which all users see.
"""

import getpass
import io
import secrets
import sys
from pathlib import Path
from typing import Any, BinaryIO, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from hitlchat.backup import BadPassphrase, Damaged

MAGIC: Final = b"hitlchat encrypted backup 1\n"
SALT: Final = 16
# 128 MiB and about half a second for each guess.
COST: Final = 2**17
PIECE: Final = 2**20
TAG: Final = 16
SHORTEST_PASSPHRASE: Final = 12


def read_passphrase(file: Path | None, *, is_new: bool) -> str | None:
    """Return the first line of `file`, or what a person types, twice if it `is_new`; None without file and terminal.

    Raises: BadPassphrase; OSError
    """
    if file is not None:
        try:
            found = next(iter(file.read_text(encoding="utf-8").splitlines()), "")
        except UnicodeDecodeError as error:
            raise BadPassphrase(f"{file} is no text. A passphrase is the first line of a text.") from error
    elif sys.stdin.isatty():
        found = getpass.getpass("Passphrase of the backup: ")
        if is_new and getpass.getpass("Once more: ") != found:
            raise BadPassphrase("The two passphrases are not the same.")
    else:
        return None
    if is_new and len(found) < SHORTEST_PASSPHRASE:
        raise BadPassphrase(f"The passphrase has {len(found)} characters; use at least {SHORTEST_PASSPHRASE}.")
    return found


class Sealed(io.RawIOBase):
    """What is written here goes to `file` encrypted; `end` writes the last piece, without which it is not whole."""

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        self._file, self._plain, self._number = file, bytearray(), 0
        self._header = MAGIC + secrets.token_bytes(SALT)
        self._cipher = _cipher(passphrase, self._header)
        file.write(self._header)

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._plain += data
        # One piece at least is left for the end.
        while len(self._plain) > PIECE:
            self._seal(PIECE, is_last=False)
        return len(data)

    def end(self) -> None:
        self._seal(len(self._plain), is_last=True)

    def _seal(self, size: int, *, is_last: bool) -> None:
        nonce = _nonce(self._number, is_last=is_last)
        self._file.write(self._cipher.encrypt(nonce, bytes(self._plain[:size]), self._header))
        del self._plain[:size]
        self._number += 1


class Opened(io.RawIOBase):
    """Reads what was written through `Sealed`; `file` stands after MAGIC. Raises: BadPassphrase, Damaged."""

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        self._file, self._plain, self._number = file, memoryview(b""), 0
        self._header = MAGIC + file.read(SALT)
        self._cipher = _cipher(passphrase, self._header)
        # One ahead, which tells the last piece.
        self._next = file.read(PIECE + TAG)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._plain and (self._next or not self._number):
            self._plain = memoryview(self._open())
        size = min(len(buffer), len(self._plain))
        buffer[:size], self._plain = self._plain[:size], self._plain[size:]
        return size

    def _open(self) -> bytes:
        piece, self._next = self._next, self._file.read(PIECE + TAG)
        nonce = _nonce(self._number, is_last=not self._next)
        self._number += 1
        try:
            return self._cipher.decrypt(nonce, piece, self._header)
        except InvalidTag:
            if self._number == 1:
                raise BadPassphrase(
                    "The backup was encrypted with another passphrase, or its beginning was altered."
                ) from None
            raise Damaged("The backup was altered, or its end is missing.") from None


def _cipher(passphrase: str, header: bytes) -> ChaCha20Poly1305:
    key = Scrypt(salt=header[len(MAGIC) :], length=32, n=COST, r=8, p=1).derive(passphrase.encode())
    return ChaCha20Poly1305(key)


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])
