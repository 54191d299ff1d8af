"""Files that hold files: archives and mails."""
