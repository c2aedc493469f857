"""Questions that an upstream server asks in the middle of a call (MCP: elicitation), and the person who answers them.

A question is no approval. It is asked of the person on whose behalf the call executes, in that server's name, and
whatever they answer only goes back to that server.
"""
