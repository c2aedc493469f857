"""Grants: bounded standing yeses, each given by a person together with the yes to one call."""
