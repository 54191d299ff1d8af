"""A PostgreSQL that comes along as a package, shared by the processes of a data directory."""
