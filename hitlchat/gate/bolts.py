"""Landed migrations name it here; it lives in `hitlchat.base.append_only`."""

from hitlchat.base.append_only import put_on, take_off

__all__ = ["put_on", "take_off"]
