"""Pages as they are printed: PDF files, and what was recognised on pictures of pages."""
