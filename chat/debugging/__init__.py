"""Why an answer is what it is: a saved answer and its trace, prepared for the debug panel."""
