"""Secrets: sealed at rest, masked in what leaves, recognised, and referred to by name."""
