from chat.models.answer import Answer, Citation, Feedback, StreamedEvent
from chat.models.approved import ApprovedAnswer, ApprovedQuestion, ApprovedSource
from chat.models.budget import QuestionBudget, QuestionCount
from chat.models.conversation import Conversation, DeletedDocument
from chat.models.followed import ChangeNotice, FollowedAnswer
from chat.models.instructions import CollectionInstructions
from chat.models.language_model import LanguageModel, ModelTrial

__all__ = [
    "Answer",
    "ApprovedAnswer",
    "ApprovedQuestion",
    "ApprovedSource",
    "ChangeNotice",
    "Citation",
    "CollectionInstructions",
    "Conversation",
    "DeletedDocument",
    "Feedback",
    "FollowedAnswer",
    "LanguageModel",
    "ModelTrial",
    "QuestionBudget",
    "QuestionCount",
    "StreamedEvent",
]
