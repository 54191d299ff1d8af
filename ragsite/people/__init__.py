"""A person's data: told, and erased."""
