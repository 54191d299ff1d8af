"""What a question asks of a table's rows and columns. PURE."""
