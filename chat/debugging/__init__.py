"""The debug panel: a saved answer and its trace, prepared to explain the answer."""
