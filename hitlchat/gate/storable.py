"""Text that every database can keep."""

_NO_NUL = {0: "\ufffd"}


def storable(text: str) -> str:
    """`text` without NUL and lone surrogates, which PostgreSQL and UTF-8 have no way to keep; each becomes U+FFFD."""
    return text.translate(_NO_NUL).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
