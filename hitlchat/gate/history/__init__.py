"""The history of all calls, asked or not: who may look it up, by what it is found, and how it is given away."""
