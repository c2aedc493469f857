"""Questions of upstream servers in the middle of a call (MCP: elicitation), and the person who answers them.

A question is no approval: the answer only goes back to the server that asked.
"""
