from evaluation.admin import (  # noqa: F401  (they register themselves)
    answers,
    dashboard,
    experiments,
    gates,
    judgements,
    questions,
    runs,
    sets,
    usage,
)
