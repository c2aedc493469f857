"""Names that people are known by here."""

from hitlchat.base.visible import see


def is_plain(name: str) -> bool:
    """Nothing in it is hidden, and nothing warns of letters that pass for others: approvals name people and groups."""
    shown = see(name)
    return not shown.warnings and not any(piece.hidden for piece in shown.pieces)
