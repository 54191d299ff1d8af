"""Code that runs for every request: middleware, limits of request bodies, error responses."""
