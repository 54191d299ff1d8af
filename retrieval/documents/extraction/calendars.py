"""Convert calendars and invitations (iCalendar, vCalendar) to lines of text."""

from __future__ import annotations

import base64
import binascii
import quopri
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from retrieval.documents.extraction.archive import MemberCollector
from retrieval.documents.extraction.decoding import decode, make_canonical_text
from retrieval.documents.extraction.html import convert_html, parse_html
from retrieval.documents.extraction.writer import MarkdownWriter
from retrieval.exceptions import DocumentRejected
from retrieval.text.encodings import find_python_codec
from retrieval.text.extracted import ExtractedText, ExtractionLimits, derive_title

_FOLD = re.compile(rb"\r?\n[ \t]")
_SOFT_BREAK = re.compile(rb"=\r?\n")
_LINE = re.compile(r'([\w-]+)((?:;(?:"[^"]*"|[^":])*)?):(.*)')
_PARAMETER = re.compile(r';([\w-]+)=((?:"[^"]*"|[^";])*)')
_ESCAPE = re.compile(r"\\([\\;,nN])")
_MOMENT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(?:\d\d)?(Z?))?")
_DURATION = re.compile(r"\+?P(?:(\d{1,4})W)?(?:(\d{1,4})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:\d{1,5}S)?)?")
_HTML_MARK = re.compile(r"</(?:a|b|i|u|p|li|ul|ol|div|span|strong|em|html-blob)>|<br ?/?>", re.I)
_ENTRIES = frozenset(("VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY"))
_WORDS = {"LOCATION": "Where", "CATEGORIES": "Categories", "RESOURCES": "Resources", "CONTACT": "Contact"}
_WORDS |= {"URL": "Link", "CONFERENCE": "Link", "COMMENT": "Comment", "PERCENT-COMPLETE": "Percent complete"}
_UNITS = {"YEARLY": "year", "MONTHLY": "month", "WEEKLY": "week", "DAILY": "day", "HOURLY": "hour"}
_DAYS = {"MO": "Monday", "TU": "Tuesday", "WE": "Wednesday", "TH": "Thursday", "FR": "Friday"}
_DAYS |= {"SA": "Saturday", "SU": "Sunday"}
_NTH = {"1": "first ", "2": "second ", "3": "third ", "4": "fourth ", "5": "fifth ", "-1": "last ", "": ""}


class _Property(NamedTuple):
    name: str
    parameters: dict[str, str]
    value: str


def extract_calendar(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    properties = list(_parse(data, filename))
    members = MemberCollector(filename, limits)
    writer = MarkdownWriter(filename, limits)
    title = next((each.value for each in properties if each.name == "X-WR-CALNAME"), "") or derive_title(filename)
    method = next((each.value.upper() for each in properties if each.name == "METHOD"), "")
    inside: list[str] = []
    entry: list[_Property] = []
    count = 0
    writer.add_heading(title, 1)
    for each in properties:
        if each.name == "BEGIN":
            inside.append(each.value.upper())
            entry = [] if inside[-1] in _ENTRIES else entry
        elif each.name == "END" and inside:
            if inside.pop() in _ENTRIES:
                count += 1
                _write_entry(entry, method, writer, members)
        elif inside and inside[-1] in _ENTRIES:
            entry.append(each)
    if not count:
        raise DocumentRejected(f"{filename} holds no events: check the file and upload it again.")
    return writer.build_extracted_text(title, members=members.member_files, left_out=members.left_out_parts)


def _parse(data: bytes, filename: str) -> Iterator[_Property]:
    # A split line may end within a multi-byte character, so lines are joined before decoding.
    data = _FOLD.sub(b"", data)
    if b"QUOTED-PRINTABLE" in data:
        data = _SOFT_BREAK.sub(b"", data)
    for line in decode(data, filename).split("\n"):
        if found := _LINE.fullmatch(line.strip()):
            told, value = found[2].upper(), found[3]
            parameters = {name.upper(): said.strip('"') for name, said in _PARAMETER.findall(found[2])}
            if "QUOTED-PRINTABLE" in told:
                codec = find_python_codec(parameters.get("CHARSET", "")) or "utf-8"
                value = make_canonical_text(quopri.decodestring(value.encode()).decode(codec, "replace"))
            value = _ESCAPE.sub(lambda mark: "\n" if mark[1] in "nN" else mark[1], value).strip()
            yield _Property(found[1].upper(), parameters, value)


def _write_entry(entry: list[_Property], method: str, writer: MarkdownWriter, members: MemberCollector) -> None:
    first = {each.name: each for each in reversed(entry)}
    status = "CANCELLED" if method == "CANCEL" else first["STATUS"].value.upper() if "STATUS" in first else ""
    lines = [("Status", status.capitalize().replace("-", " ") if status != "CONFIRMED" else "")]
    lines += [
        ("When", _describe_event_time(first)),
        ("Due", _describe_property_times(first["DUE"]) if "DUE" in first else ""),
    ]
    lines += [("Repeats", _describe_rule(each.value)) for each in entry if each.name == "RRULE"]
    for name, label in (
        ("RDATE", "Also on"),
        ("EXDATE", "Not on"),
        ("RECURRENCE-ID", "Instead of"),
        ("FREEBUSY", "Busy"),
    ):
        lines.append((label, ", ".join(_describe_property_times(each) for each in entry if each.name == name)))
    lines += [(label, ", ".join(each.value for each in entry if each.name == name)) for name, label in _WORDS.items()]
    lines += [("Organiser", _describe_person(each)) for each in entry if each.name == "ORGANIZER"]
    lines.append(("Attendees", "; ".join(_describe_person(each) for each in entry if each.name == "ATTENDEE")))
    for each in entry:
        if each.name != "ATTACH":
            continue
        name = each.parameters.get("FILENAME") or each.parameters.get("X-FILENAME") or "attachment"
        if each.parameters.get("ENCODING", "").upper() == "BASE64":
            try:
                members.add(name, base64.b64decode(each.value))
            except (binascii.Error, ValueError):
                members.leave_out("unreadable", name)
        else:
            lines.append(("Attachment", each.value))
    heading = first["SUMMARY"].value if "SUMMARY" in first else "Busy" if "FREEBUSY" in first else "Event"
    writer.add_heading(heading, 2)
    told = "\n".join(f"{label}: {' '.join(words.split())}" for label, words in lines if words)
    writer.add_paragraph(told.replace("<", "(").replace(">", ")"))
    said = "\n\n".join(each.value for each in entry if each.name == "DESCRIPTION")
    pages = "\n\n".join(each.value for each in entry if each.name == "X-ALT-DESC")
    # Google writes HTML as the description, Outlook beside it.
    page = said.replace("\n", "<br>") if _HTML_MARK.search(said) else pages if not said else ""
    if page and (root := parse_html(page, heading)) is not None:
        writer.add_markdown(convert_html(root))
    else:
        writer.add_paragraph(said)


def _read_moment(value: str) -> datetime | None:
    found = _MOMENT.match(value)
    try:
        return datetime(*(int(part or 0) for part in found.groups()[:5])) if found else None  # type: ignore[arg-type]
    except ValueError:
        return None


def _describe_property_times(time_property: _Property) -> str:
    zone = time_property.parameters.get("TZID", "")
    return ", ".join(
        _write_time_span(*value.partition("/")[::2], zone, zone) for value in time_property.value.split(",")
    )


def _write_moment(value: str, zone: str, day: str = "") -> str:
    moment, has_time = _read_moment(value), "T" in value
    if moment is None:
        return value
    date = f"{moment:%A} {moment:%Y-%m-%d}"
    words = date if not has_time else f"{moment:%H:%M}" if date == day else f"{date}, {moment:%H:%M}"
    zone = "UTC" if value.endswith("Z") else zone
    return f"{words} ({zone})" if zone and has_time else words


def _describe_event_time(first: dict[str, _Property]) -> str:
    start, end = first.get("DTSTART"), first.get("DTEND") or first.get("DURATION")
    if start is None:
        return ""
    zone = start.parameters.get("TZID", "")
    return _write_time_span(
        start.value,
        end.value if end else "",
        zone,
        end.parameters.get("TZID", "") if end and end.name == "DTEND" else zone,
    )


def _write_time_span(value: str, end_value: str, zone: str, end_zone: str) -> str:
    start, end, has_time = _read_moment(value), _read_moment(end_value), "T" in value
    if start is not None and (found := _DURATION.fullmatch(end_value)):
        weeks, days, hours, minutes = (int(part or 0) for part in found.groups())
        end = start + timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes)
        end_value = f"{end:%Y%m%dT%H%M%S}{'Z' if value.endswith('Z') else ''}"
    if end is not None and not has_time:
        # In iCalendar, an end date is the day after the last day.
        end -= timedelta(days=1)
        end_value = f"{end:%Y%m%d}"
    if start is None or end is None or end <= start:
        return _write_moment(value, zone)
    is_same = (zone, value.endswith("Z")) == (end_zone, end_value.endswith("Z"))
    begin = _write_moment(value.rstrip("Z"), "") if is_same else _write_moment(value, zone)
    return f"{begin} to {_write_moment(end_value, end_zone, f'{start:%A} {start:%Y-%m-%d}')}"


def _describe_rule(rule: str) -> str:
    parts = dict(part.upper().split("=", 1) for part in rule.split(";") if "=" in part)
    unit, every = _UNITS.get(parts.get("FREQ", ""), ""), parts.get("INTERVAL", "1")
    if not unit:
        return rule
    words = [f"every {unit}" if every == "1" else f"every {every} {unit}s"]
    days = (re.fullmatch(r"([+-]?\d*)(\w\w)", day) for day in parts.get("BYDAY", "").split(","))
    named = [f"{_NTH.get(day[1].lstrip('+'), day[1] + '. ')}{_DAYS.get(day[2], day[2])}" for day in days if day]
    # BYSETPOS chooses one of the days that the other parts name: the last of Monday to Friday is the last working day.
    counted = ", ".join(
        _NTH.get(at.lstrip("+"), f"{at}. ").strip() for at in parts.get("BYSETPOS", "").split(",") if at
    )
    words += [f"on {f'the {counted} of ' if counted else ''}{', '.join(named)}"] if named else []
    words += [f"on day {parts['BYMONTHDAY']} of the month"] if "BYMONTHDAY" in parts else []
    words += [f"in month {parts['BYMONTH']}"] if "BYMONTH" in parts else []
    words += [f"{parts['COUNT']} times"] if "COUNT" in parts else []
    words += [f"until {_write_moment(parts['UNTIL'], '')}"] if "UNTIL" in parts else []
    return ", ".join(words)


def _describe_person(each: _Property) -> str:
    address = re.sub(r"(?i)^mailto:", "", each.value)
    name, answer = each.parameters.get("CN", ""), each.parameters.get("PARTSTAT", "").upper()
    words = f"{name} ({address})" if name and address and name != address else name or address
    return f"{words}, {answer.lower()}" if answer in ("ACCEPTED", "DECLINED", "TENTATIVE", "DELEGATED") else words
