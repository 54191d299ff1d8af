"""A PostgreSQL server from a Python package, shared by all processes with the same data directory."""
