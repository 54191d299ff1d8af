"""The embedders, in this process or on a server."""
