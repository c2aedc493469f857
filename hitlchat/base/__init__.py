"""What every part stands on: it knows nothing of tools, calls or people."""
