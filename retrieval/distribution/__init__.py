"""The database spread over several machines by Citus: the only place that knows what differs there."""
