"""Landed migrations name it here; it lives in `hitlchat.base.canonical`."""

from hitlchat.base.canonical import JSONTextField

__all__ = ["JSONTextField"]
