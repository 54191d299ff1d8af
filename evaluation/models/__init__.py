from evaluation.models.evaluation_run import AnswerResult, CorpusAlert, EvaluationRun, GatePolicy, QuestionResult
from evaluation.models.evaluation_set import EvaluationQuestion, EvaluationSet, ExpectedPassage, RunKind
from evaluation.models.experiment import Experiment, ExperimentIsFixed, Exposure
from evaluation.models.judgement import Dashboard, Judgement, JudgeUsage, Score

__all__ = [
    "AnswerResult",
    "CorpusAlert",
    "Dashboard",
    "EvaluationQuestion",
    "EvaluationRun",
    "EvaluationSet",
    "ExpectedPassage",
    "Experiment",
    "ExperimentIsFixed",
    "Exposure",
    "GatePolicy",
    "JudgeUsage",
    "Judgement",
    "QuestionResult",
    "RunKind",
    "Score",
]
