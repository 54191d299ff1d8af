import pytest

from chat.streaming import sse


def parsed(frames):
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
    ("data", "arrives"),
    [
        *((text, text) for text in ("", "one line", " leading space", "two\nlines", "\n", "ends with\n", "a\u2028b")),
        ("data: id: 7\n\nevent: failed", "data: id: 7\n\nevent: failed"),
        ("a\r\nb\rc", "a\nb\nc"),
    ],
)
def test_data_arrives_as_it_was_and_without_an_id_the_one_before_stays(data, arrives):
    frames = sse.encode_comment("open") + sse.encode_retry(1000) + sse.encode_event("a", event="token", event_id="1-1")
    assert parsed(frames + sse.encode_event(data, event="done"))[1:] == [
        {"event": "done", "data": arrives, "id": "1-1"}
    ]
