"""Backups: one file that holds all an installation needs on another machine, and putting it back."""
