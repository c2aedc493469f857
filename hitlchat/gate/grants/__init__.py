"""Grants: bounded standing yeses, each given by a person with the yes to one call, or published as an earned rule."""
