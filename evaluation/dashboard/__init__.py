"""What the admin's dashboard shows: each module reads one thing, with one statement."""
