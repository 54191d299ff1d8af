"""API keys: made, recognised, limited, revoked."""
