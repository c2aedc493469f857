"""hitlchat as the official conformance suite wants a server to be: with the tools that it calls by name."""
