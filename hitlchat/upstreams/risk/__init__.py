"""Judging what upstream servers offer. Everything here is pure: values in, values out."""
