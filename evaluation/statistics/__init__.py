"""How good rankings are, and how sure a figure is. PURE."""
