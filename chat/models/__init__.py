from chat.models.answer import Answer, Citation, StreamedEvent
from chat.models.conversation import Conversation
from chat.models.feedback import Feedback

__all__ = ["Answer", "Citation", "Conversation", "Feedback", "StreamedEvent"]
