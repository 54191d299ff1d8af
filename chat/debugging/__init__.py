"""The debug panel of an answer, which explains its search."""
