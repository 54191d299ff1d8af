"""What holds for every request: middleware, the size of bodies, refusals."""
