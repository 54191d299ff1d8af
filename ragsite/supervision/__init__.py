"""The processes that `serve` starts, watches and starts again; and those of the worker and the scheduler."""
