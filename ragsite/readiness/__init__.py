"""What `/healthz` and `/readyz` say, and the checks behind it."""
