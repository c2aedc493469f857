"""Signing in at upstream servers with OAuth, from discovery of the authorization server to renewal of tokens."""
