"""Files that are text, and HTML, in pages and in books."""
