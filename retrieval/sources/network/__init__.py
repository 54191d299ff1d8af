"""Other machines: which may be asked, and how."""
