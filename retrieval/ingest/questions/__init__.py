"""Questions that a passage answers, written by a language model and indexed with it."""
