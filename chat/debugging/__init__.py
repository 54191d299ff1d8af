"""The debug panel, which explains an answer from its stored trace."""
