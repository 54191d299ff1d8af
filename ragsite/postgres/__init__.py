"""A PostgreSQL from a package, shared by the processes of a data directory."""
