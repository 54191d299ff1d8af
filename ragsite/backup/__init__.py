"""Backup and restore: the database and the originals of the documents, in one file."""
