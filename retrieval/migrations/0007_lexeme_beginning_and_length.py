"""Finds what a misspelt word may have been: the lexemes that begin alike and are about as long."""

from django.db import migrations, models
from django.db.models.functions import Left, Length


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0006_questions_edited")]

    operations = [
        migrations.AddIndex(
            model_name="lexeme",
            index=models.Index(
                models.F("collection"), Left("lexeme", 1), Length("lexeme"), name="lexeme_beginning_and_length"
            ),
        ),
    ]
