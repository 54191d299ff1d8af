"""What the sources hold on a question, and whether they answer it."""
