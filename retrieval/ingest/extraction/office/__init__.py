"""Documents, sheets and slides of office programs."""
