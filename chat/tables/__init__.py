"""Answers that are computed over the rows of tables."""
