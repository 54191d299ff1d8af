"""The audit log: who did what, when, by way of what. See docs/operations.md."""
