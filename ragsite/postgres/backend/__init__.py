"""Django's PostgreSQL backend, over the embedded server, and over streaming replicas."""
