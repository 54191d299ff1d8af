"""What the site tells about its own work: log lines, metrics of several processes, OpenTelemetry."""
