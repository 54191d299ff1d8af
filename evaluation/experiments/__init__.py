"""Two search profiles compared on real visitors: who gets which, what the visitors did, and which one won."""
