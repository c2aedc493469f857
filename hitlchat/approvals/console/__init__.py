"""The approvals at a terminal: what the web card says, by the same card, and the same answers."""
