"""The pages of the history: every call, asked or not, and what can still be done about one."""
