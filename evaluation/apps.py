from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class EvaluationConfig(AppConfig):
    name = "evaluation"
    verbose_name = _("Evaluation")

    def ready(self) -> None:
        from evaluation import conf, experiments, judgements  # noqa: F401  (they register themselves)
        from evaluation.gates import find_gate_objections, has_document_gate
        from retrieval.gates import GATES, Gate

        GATES.append(Gate(find_gate_objections, has_document_gate))
