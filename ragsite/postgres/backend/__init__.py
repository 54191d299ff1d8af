"""Django's PostgreSQL backend with a server that it starts itself."""
