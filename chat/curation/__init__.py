"""What curators do about answers."""
