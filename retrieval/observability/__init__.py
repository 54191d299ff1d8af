"""What the site tells about its own work: counters, spans, and events for the record."""
