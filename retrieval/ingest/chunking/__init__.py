"""From canonical text to passages."""
