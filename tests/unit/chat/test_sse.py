import pytest

from chat.streaming import sse


def parsed(frames: bytes) -> list[dict[str, str]]:
    """Events as a browser dispatches them (WHATWG HTML, 9.2.6)."""
    events, event, data, last_id = [], "", [], ""
    for line in frames.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line:
            if data:
                events.append({"event": event, "data": "\n".join(data), "id": last_id})
            event, data = "", []
            continue
        field, _colon, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            event = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            last_id = value
    return events


@pytest.mark.parametrize(
    "data",
    ["", "one line", " leading space", "two\nlines", "\n", "ends with\n", "data: id: 7\n\nevent: failed", "a\u2028b"],
)
def test_data_arrives_as_it_was(data: str) -> None:
    assert parsed(sse.encode(data, event="token", event_id="1-2")) == [{"event": "token", "data": data, "id": "1-2"}]


@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_other_line_ends_arrive_as_line_feeds(line_end: str) -> None:
    assert parsed(sse.encode(f"a{line_end}b", event="token"))[0]["data"] == "a\nb"


def test_an_event_without_an_id_keeps_the_one_before() -> None:
    frames = sse.encode("a", event="token", event_id="1-1") + sse.encode("", event="done")
    assert [event["id"] for event in parsed(frames)] == ["1-1", "1-1"]


@pytest.mark.parametrize(("event", "event_id"), [("a\nb", ""), ("token", "1\r2"), ("token", "1\0")])
def test_names_and_ids_cannot_break_out_of_their_line(event: str, event_id: str) -> None:
    with pytest.raises(ValueError, match="single lines"):
        sse.encode("", event=event, event_id=event_id)


def test_comments_and_retry_are_no_events() -> None:
    assert parsed(sse.comment("open\nevent: x\ndata: y") + sse.retry(1000)) == []
    assert sse.retry(1000) == b"retry: 1000\n\n"
