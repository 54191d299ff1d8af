"""The debug panel, which explains an answer from its saved trace."""
