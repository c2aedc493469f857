"""Notices: whoever has to answer hears of it by e-mail or webhook, and of the outcome. They decide nothing."""
