from evaluation.models.embedder_trial import EmbedderTrial
from evaluation.models.evaluation_run import AnswerResult, EvaluationRun, GatePolicy, QuestionResult
from evaluation.models.evaluation_set import EvaluationQuestion, EvaluationSet, ExpectedPassage, RunKind
from evaluation.models.experiment import Experiment
from evaluation.models.judgement import Dashboard, Judgement, JudgeUsage, Score

__all__ = [
    "AnswerResult",
    "Dashboard",
    "EmbedderTrial",
    "EvaluationQuestion",
    "EvaluationRun",
    "EvaluationSet",
    "ExpectedPassage",
    "Experiment",
    "GatePolicy",
    "JudgeUsage",
    "Judgement",
    "QuestionResult",
    "RunKind",
    "Score",
]
