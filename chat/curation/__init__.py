"""Approved answers and corrections by curators."""
