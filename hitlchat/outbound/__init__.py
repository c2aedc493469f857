"""Connections that leave this machine: which addresses may be asked, and whose certificates are trusted."""
