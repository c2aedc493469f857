"""The base of every part: it knows nothing of tools, calls or people."""
