"""The translators' catalogue, compared with the site's strings.

``python -m tests.support.catalogue`` (``make messages``) brings the catalogues up to date: new strings come in without
a translation, strings that are gone go out, and the compiled form is written. Django's own `makemessages` would do the
same, but needs the gettext programs on the machine.
"""

import os
import re
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_python
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ragsite", "core", "retrieval", "chat", "evaluation", "templates")
LOCALE = ROOT / "ragsite" / "locale"

_PLURAL = (1, 2)
_IN_CONTEXT = ((1, "c"), 2)
KEYWORDS = {
    "_": None, "_t": None, "gettext": None, "gettext_lazy": None, "gettext_noop": None, "ngettext": _PLURAL,
    "ngettext_lazy": _PLURAL, "pgettext": _IN_CONTEXT, "pgettext_lazy": _IN_CONTEXT,
}  # fmt: skip


@dataclass(slots=True)
class Found:
    """A string of the site, singular or also plural, with its place."""

    id: str | tuple[str, str]
    context: str | None
    places: list[tuple[str, int]] = field(default_factory=list)


def strings():
    """Every translatable string of the site's Python and templates, in the order of the files."""
    found = {}
    for path in _sources():
        source = path.read_text()
        if path.suffix == ".html":
            # The rest of templatize's output is no Python: only its lines that are calls matter, indented anyhow.
            source = re.sub(r"^[ \t]+", "", templatize(source, origin=str(path)), flags=re.MULTILINE)
        place = path.relative_to(ROOT).as_posix()
        for line, function, message in _calls(source):
            parts = tuple(part for part in (message if isinstance(message, tuple) else (message,)) if part)
            context = parts[0] if function.startswith("pgettext") else None
            wanted = parts[1:2] if context else parts[:2] if function.startswith("ngettext") else parts[:1]
            if not wanted:
                continue
            name = wanted[0] if len(wanted) == 1 else (wanted[0], wanted[1])
            found.setdefault((name, context), Found(name, context)).places.append((place, line))
    return list(found.values())


def _calls(source):
    """Line, function and arguments of each call that names a string."""
    # Not of the types that Babel declares: a call's arguments come as a tuple.
    extracted = extract_python(BytesIO(source.encode()), KEYWORDS, [], {})
    for line, function, message, _comments in extracted:
        yield line, function or "", message


def path_of(language, suffix=".po"):
    return LOCALE / language / "LC_MESSAGES" / f"django{suffix}"


def catalogue(language):
    with path_of(language).open("rb") as file:
        return read_po(file, locale=language)


def texts(one):
    """Return a message's forms, or its translation's: one, or all plural forms; empty if there is none."""
    return tuple(one) if isinstance(one, tuple | list) else (one or "",)


def is_translated(entry):
    return entry is not None and not entry.fuzzy and all(texts(entry.string))


def list_missing(found, translated):
    """Return "place: string" for each string without a translation."""
    return [
        f"{each.places[0][0]}: {each.id!r}"
        for each in found
        if not is_translated(translated.get(each.id, each.context))
    ]


def list_unused(found, translated):
    """Return each string of the catalogue that the site does not have."""
    wanted = {(each.id, each.context) for each in found}
    return [repr(entry.id) for entry in translated if entry.id and (entry.id, entry.context) not in wanted]


def compiled(translated):
    written = BytesIO()
    write_mo(written, translated)
    return written.getvalue()


def update(language):
    """Write the catalogue with exactly the site's strings, and their present translations."""
    before = catalogue(language) if path_of(language).exists() else Catalog(locale=language)
    after = Catalog(
        locale=language,
        project="Ragsite",
        fuzzy=False,
        header_comment="# Interface of the site. Written by hand; `make messages` adds what is new.",
        version="1",
        msgid_bugs_address="-",
        last_translator="Ragsite",
        language_team=language,
        creation_date=before.creation_date,
        revision_date=before.revision_date,
    )
    for string in strings():
        known = before.get(string.id, string.context)
        after.add(
            string.id,
            known.string if known is not None else None,
            # Line numbers would change the file with every change of the code.
            locations=[(place, None) for place in dict.fromkeys(place for place, _line in string.places)],
            context=string.context,
        )
    path_of(language).parent.mkdir(parents=True, exist_ok=True)
    with path_of(language).open("wb") as file:
        write_po(file, after, width=120, sort_by_file=True, include_lineno=False, omit_header=False)
    path_of(language, ".mo").write_bytes(compiled(catalogue(language)))
    return after


def _sources():
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix in (".py", ".html") and "migrations" not in path.parts:
                yield path


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    for code in sorted(directory.name for directory in LOCALE.iterdir()):
        updated = update(code)
        missing = [message.id for message in updated if message.id and not is_translated(message)]
        print(f"{code}: {len(updated)} strings, {len(missing)} without a translation")
