"""What a document is called, where it is found and what it is filtered by counts as a change of its collection.

In the database, so that the version tells of every such change, whichever way it was made, and in its transaction.
"""

from django.db import migrations

CREATE = """
CREATE FUNCTION retrieval_document_described_anew() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE retrieval_collectionstatistics SET version = version + 1 WHERE collection_id = NEW.collection_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER document_described_anew
AFTER UPDATE OF title, url, language, metadata ON retrieval_document
FOR EACH ROW
WHEN (
    (OLD.title, OLD.url, OLD.language, OLD.metadata) IS DISTINCT FROM (NEW.title, NEW.url, NEW.language, NEW.metadata)
)
EXECUTE FUNCTION retrieval_document_described_anew();
"""
DROP = """
DROP TRIGGER document_described_anew ON retrieval_document;
DROP FUNCTION retrieval_document_described_anew();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0007_lexeme_beginning_and_length"),
    ]

    operations = [migrations.RunSQL(CREATE, DROP)]
