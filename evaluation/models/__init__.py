from evaluation.models.dashboard import Dashboard
from evaluation.models.experiment import Experiment, ExperimentIsFixed, Exposure
from evaluation.models.gates import CorpusAlert, GatePolicy
from evaluation.models.judgement import Judgement, JudgeUsage, Score
from evaluation.models.runs import AnswerResult, EvaluationRun, QuestionResult
from evaluation.models.sets import EvaluationQuestion, EvaluationSet, ExpectedPassage, RunKind

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
