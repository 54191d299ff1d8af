"""Questions that a passage answers, indexed with it: by rules, or by a language model."""
