"""Signing in at upstream servers with OAuth: from who gives tokens there to tokens that renew themselves."""
