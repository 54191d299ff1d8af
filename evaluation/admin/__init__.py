from evaluation.admin import (  # noqa: F401  (they register themselves)
    dashboard,
    experiments,
    gates,
    judgements,
    questions,
    runs,
    sets,
)
