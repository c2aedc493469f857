"""Signing in at upstream servers with OAuth: from the question who gives tokens there, to tokens that renew themselves.

`block` is what the page of a server shows of it.
"""

from hitlchat.upstreams.oauth.panel import block

__all__ = ["block"]
