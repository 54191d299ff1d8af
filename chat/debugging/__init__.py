"""The debug panel of an answer."""
