"""Which PostgreSQL server is read, how statements are sent, and what is stored encrypted."""
