from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chat.answering.approved_answers import NAME as APPROVED
from chat.conversations import rights
from chat.models import Answer, Conversation, Feedback
from chat.streaming import payloads
from core.api.fields import FlagField, KnownFieldsOnly, NameField, TextField
from core.user_types import AnyUser
from retrieval.api.serializers import METHODS, FiltersSerializer, MetadataObjectField
from retrieval.models import Collection
from retrieval.types import SearchMethod

LONGEST_COMMENT = 2000
FEEDBACK_FIELDS = ("helpful", "reason", "comment", "created_at", "updated_at")


ANSWERED_BY = [*map(str, SearchMethod), APPROVED]


class AskRequestSerializer(KnownFieldsOnly):
    question = TextField(error_messages={"blank": "Please type a question."})
    conversation = serializers.UUIDField(required=False, allow_null=True, help_text="To go on with an earlier one.")
    collection = TextField(
        required=False, allow_blank=True, allow_null=True, max_length=50, help_text="Its short name; empty: all."
    )
    filters = FiltersSerializer(
        required=False,
        allow_null=True,
        help_text="As in a search. Absent: those of the last question in the same collection; empty: none.",
    )
    method = NameField(choices=METHODS, required=False, allow_null=True)
    model = TextField(
        required=False,
        allow_blank=True,
        allow_null=True,
        max_length=200,
        help_text="The language model that writes, of those that the caller may choose; empty: the default.",
    )
    stream = FlagField(required=False, default=False, help_text="Answer as server-sent events.")
    anew = FlagField(
        required=False, default=False, help_text="Answer again, even if the same question has been answered before."
    )


class CitedDocumentSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(allow_null=True)
    title = serializers.CharField()
    url = serializers.CharField()
    collection = serializers.CharField(help_text="The slug of its collection; empty in answers of before.")


class PlaceSerializer(serializers.Serializer[Any]):
    """A place in a document: ``quote`` is its text from ``start`` to ``end``."""

    collection = serializers.CharField(help_text="The name of the document's collection.")
    document = CitedDocumentSerializer()
    section = serializers.CharField()
    page = serializers.IntegerField(allow_null=True)
    page_unit = serializers.ChoiceField(choices=["page", "slide"], required=False, help_text="What `page` counts.")
    quote = serializers.CharField()
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    chunk_id = serializers.IntegerField(allow_null=True)


class AlternativeSerializer(PlaceSerializer):
    """Another passage. ``text`` is the part to show, ``quote`` its sentence or row that best matches the question."""

    url = serializers.CharField(help_text="The address of the passage on this site.")
    text = serializers.CharField(help_text="Markdown.")
    score = serializers.FloatField(help_text="The search's; higher is better.")


class CitationSerializer(PlaceSerializer):
    marker = serializers.IntegerField(help_text="The number in brackets in the answer.")
    marker_start = serializers.IntegerField(help_text="Where the marker begins in the answer.")
    marker_end = serializers.IntegerField()
    support = serializers.FloatField(allow_null=True, help_text="From 0 to 1; null: not measured.")
    marked_start = serializers.IntegerField(
        allow_null=True, help_text="Where the quote begins in the answer, if it quotes more than that."
    )
    marked_end = serializers.IntegerField(allow_null=True)
    verbatim = serializers.BooleanField(help_text="The sentence stands in the source word for word.")


class QuestionChoiceSerializer(serializers.Serializer[Any]):
    """A question that can be asked instead, and its short name."""

    label = serializers.CharField()  # type: ignore[assignment]  # a field's own label has this name
    question = serializers.CharField()


class StatementSerializer(serializers.Serializer[Any]):
    """A sentence of the answer, checked against the sources."""

    start = serializers.IntegerField(help_text="Where it begins in the answer.")
    end = serializers.IntegerField()
    markers = serializers.ListField(child=serializers.IntegerField(), help_text="The sources it cites.")
    support = serializers.FloatField(allow_null=True, help_text="From 0 to 1; null: not measured.")
    supported = serializers.BooleanField(allow_null=True, help_text="Whether the sources support it.")
    verbatim = serializers.BooleanField(help_text="It stands in a source word for word.")
    reasons = serializers.ListField(
        child=serializers.CharField(),
        help_text="What speaks against it: `number`, `name`, `negation`, `words`, `uncited`.",
    )
    best = serializers.DictField(
        allow_null=True, help_text="The words of the source `marker`, from `start` to `end`, that bear it out best."
    )


class ApprovalSerializer(serializers.Serializer[Any]):
    by = serializers.CharField(help_text="Who vouches for the answer.")
    on = serializers.DateField()


class AnswerSerializer(serializers.Serializer[Any]):
    answer = serializers.CharField()
    state = serializers.ChoiceField(
        choices=Answer.State.choices,
        help_text="`answer`; `closest`: passages that come close, and perhaps answer; `nothing`: nothing comes close.",
    )
    refused = serializers.BooleanField(help_text="True unless `state` is `answer`.")
    citations = CitationSerializer(many=True)
    alternatives = AlternativeSerializer(
        many=True, help_text="At most three passages beside the answer, best first; without an answer, the closest."
    )
    choices = QuestionChoiceSerializer(many=True, help_text="What a question that is misspelt may have meant.")
    search_method = serializers.ChoiceField(choices=ANSWERED_BY)
    answer_id = serializers.UUIDField()
    conversation = serializers.UUIDField()
    degraded = serializers.ListField(
        child=serializers.CharField(),
        help_text="What did not answer: `lexical`, `vector`, `rerank`; `unencoded` while vectors are still to be made.",
    )
    generator = serializers.CharField()
    notice = serializers.CharField(help_text="A fallback that the reader should know of.")
    cut_off = serializers.BooleanField(help_text="The text ends before its end: at a limit, or it was stopped.")
    statements = StatementSerializer(many=True)
    confidence = serializers.FloatField(
        allow_null=True, help_text="How likely the documents answer the question, from 0 to 1."
    )
    completed_question = serializers.CharField(
        help_text="A rewritten follow-up, or a misspelt question, as it was searched; empty: as it was asked."
    )
    joined_question = serializers.CharField(
        help_text="The question before it and this one, which was searched as well; empty: only this one was."
    )
    filters = MetadataObjectField(help_text="Those that the question was asked with; empty: none.")
    usage = serializers.DictField(
        help_text="`prompt_tokens`, `completion_tokens`, `cost` in the currency of the prices set, and whether these "
        "are `estimated`; empty when no language model was asked."
    )
    computed = serializers.DictField(
        required=False, help_text="A value that was computed over the rows of a table; absent where none was."
    )
    table = serializers.DictField(
        required=False,
        help_text="A table that the question is about: `columns` and `rows` of texts, `matched` of `row_count` rows, "
        "and `url`, where it is filtered and sorted; absent without one.",
    )
    approved = ApprovalSerializer(allow_null=True, help_text="Of an answer that a curator approved; null: of others.")
    repeats = serializers.BooleanField(help_text="A copy of an earlier answer to the same question.")
    repeated_from = serializers.DateTimeField(allow_null=True, help_text="When that answer was written.")


class FeedbackSerializer(KnownFieldsOnly, serializers.ModelSerializer[Feedback]):
    helpful = FlagField()
    reason = NameField(choices=Feedback.Reason.choices, required=False, allow_blank=True, default="")
    comment = TextField(required=False, allow_blank=True, max_length=LONGEST_COMMENT, default="")

    class Meta:
        model = Feedback
        fields = FEEDBACK_FIELDS
        read_only_fields = ["created_at", "updated_at"]

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        if attrs["helpful"] and attrs["reason"]:
            raise serializers.ValidationError(
                {"reason": ["A reason says what was wrong: leave it out when the answer helped."]}
            )
        return attrs


class SavedAnswerSerializer(AnswerSerializer):
    question = serializers.CharField()
    status = serializers.ChoiceField(choices=Answer.Status.choices)
    error = serializers.CharField(help_text="Why there is no answer, when the status is failed.")
    created_at = serializers.DateTimeField()
    withheld = serializers.BooleanField(
        help_text="It came from documents that you may no longer read: the question is all that is shown."
    )
    feedback = FeedbackSerializer(allow_null=True, read_only=True)


class ConversationSerializer(serializers.ModelSerializer[Conversation]):
    collection: serializers.SlugRelatedField[Collection] = serializers.SlugRelatedField(
        slug_field="slug", read_only=True, allow_null=True, help_text="The one that is searched; null: all."
    )

    filters = MetadataObjectField(read_only=True, help_text="Those of the last question.")

    class Meta:
        model = Conversation
        fields = ["id", "title", "collection", "filters", "created_at", "updated_at"]
        read_only_fields = fields


class ConversationWithAnswersSerializer(ConversationSerializer):
    answers = serializers.SerializerMethodField()

    class Meta(ConversationSerializer.Meta):
        fields = [*ConversationSerializer.Meta.fields, "answers"]

    @extend_schema_field(SavedAnswerSerializer(many=True))
    def get_answers(self, conversation: Conversation) -> list[dict[str, object]]:
        answers = conversation.answers.select_related("feedback", "repeats").prefetch_related("citations")
        return serialize_saved_answers(answers, self.context["request"].user)


def serialize_saved_answers(answers: Iterable[Answer], user: AnyUser) -> list[dict[str, object]]:
    """Return the answers as JSON. An answer that the user may not read has only its question and status."""
    listed = list(answers)
    withheld = rights.find_withheld_answers(user, listed)
    return [_serialize_saved_answer(answer, is_withheld=answer.pk in withheld) for answer in listed]


def _serialize_saved_answer(answer: Answer, *, is_withheld: bool) -> dict[str, object]:
    if is_withheld:
        shell = Answer(pk=answer.pk, conversation_id=answer.conversation_id, search_method=answer.search_method)
        shell.notice = rights.get_withheld_message()
    feedback = getattr(answer, "feedback", None)
    return {
        **(
            payloads.build_completed_payload(shell, [])
            if is_withheld
            else payloads.build_completed_payload(answer, answer.citations.all())
        ),
        "question": answer.question,
        "status": answer.status,
        "error": answer.error,
        "created_at": answer.created_at,
        "feedback": feedback and {name: getattr(feedback, name) for name in FEEDBACK_FIELDS},
        "withheld": is_withheld,
    }
