"""Who may see what."""
