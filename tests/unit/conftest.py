"""How much Hypothesis tries."""

from hypothesis import settings

# Drawn anew each time. Nearly all faults show within as many; where one needs more, the test says so.
settings.register_profile("unit", max_examples=30, deadline=None, database=None)
settings.load_profile("unit")
