"""Answers composed of the documents' own blocks: which ones, how much of them, and how they are shown."""
