"""Two search profiles compared on real visitors: who gets which, what came of it, and what may be concluded."""
