"""The Python that tools are written in: read as syntax, checked, never run here."""
