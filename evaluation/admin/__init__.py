from evaluation.admin import (  # noqa: F401  (they register themselves)
    dashboard_admin,
    experiment_admin,
    gate_admin,
    instructions_admin,
    judgement_admin,
    question_admin,
    run_admin,
    search_quality_admin,
    set_admin,
)
