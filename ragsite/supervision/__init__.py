"""The processes that `serve` starts, watches and starts again."""
