from evaluation.models.experiment import Experiment, ExperimentIsFixed, Exposure
from evaluation.models.judgement import Dashboard, Judgement, JudgeUsage, Score
from evaluation.models.runs import AnswerResult, CorpusAlert, EvaluationRun, GatePolicy, QuestionResult
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
