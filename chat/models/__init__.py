from chat.models.answer import Answer, Citation, Feedback, StreamedEvent
from chat.models.approved import ApprovedAnswer, ApprovedQuestion, ApprovedSource
from chat.models.budget import QuestionBudget, QuestionCount
from chat.models.conversation import Conversation, DeletedDocument
from chat.models.instructions import CollectionInstructions
from chat.models.language_model import LanguageModel, ModelTrial

__all__ = [
    "Answer",
    "ApprovedAnswer",
    "ApprovedQuestion",
    "ApprovedSource",
    "Citation",
    "CollectionInstructions",
    "Conversation",
    "DeletedDocument",
    "Feedback",
    "LanguageModel",
    "ModelTrial",
    "QuestionBudget",
    "QuestionCount",
    "StreamedEvent",
]
