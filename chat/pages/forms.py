from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from chat.models import Answer, Conversation, Feedback

COMMENT_CHARACTERS = 2000


class TitleForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Conversation
        fields = ["title"]
        error_messages = {
            "title": {
                "required": _("Please type a title."),
                "max_length": _("Please keep the title within %(limit_value)d characters."),
            }
        }

    def clean_title(self) -> str:
        return " ".join(self.cleaned_data["title"].split())


class ShareForm(forms.Form):
    scope = forms.ChoiceField(choices=Conversation.ShareScope.choices)
    audience = forms.ChoiceField(choices=Conversation.ShareAudience.choices)
    answer = forms.ModelChoiceField(Answer.objects.none(), required=False)

    def __init__(self, conversation: Conversation, *args: Any) -> None:
        super().__init__(*args)
        field = self.fields["answer"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = conversation.answers.all()

    def clean(self) -> dict[str, object]:
        given = super().clean() or self.cleaned_data
        if given.get("scope") == Conversation.ShareScope.ANSWER and not given.get("answer"):
            raise forms.ValidationError(_("Choose the answer that is shared."))
        return given


class _Comment(forms.CharField):
    """A text field in which a line end counts as one character, as in a browser's ``maxlength``."""

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")


class FeedbackForm(forms.ModelForm):  # type: ignore[type-arg]
    """A user's rating of an answer. ``has_details`` is True if the page asked for a reason."""

    VERDICTS = {"yes": True, "no": False, "none": None}

    verdict = forms.ChoiceField(choices=[(name, name) for name in VERDICTS])
    has_details = forms.BooleanField(required=False)
    comment = _Comment(
        max_length=COMMENT_CHARACTERS,
        required=False,
        error_messages={"max_length": _("Please keep the comment within %(limit_value)d characters.")},
    )

    class Meta:
        model = Feedback
        fields = ["reason", "comment"]

    def clean(self) -> dict[str, object]:
        given = super().clean() or self.cleaned_data
        helpful = given["helpful"] = self.VERDICTS.get(given.get("verdict", ""))
        if helpful is not False:
            given["reason"] = given["comment"] = ""
        return given
