"""Code that runs for every request: middleware, limits of bodies, refusals."""
