"""Notices: whoever has to answer hears of it by e-mail or webhook, and of what became of it. Nothing is decided
here.
"""
