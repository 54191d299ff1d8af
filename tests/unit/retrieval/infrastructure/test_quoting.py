"""What a server says is kept, unless it says what it was told."""

from __future__ import annotations

import pytest

from retrieval.infrastructure.model_server import LEFT_OUT, without_request

BODY = {"model": "tiny", "messages": [{"role": "user", "content": "How heavy is\nthe MX-9920-W pump, in grams?"}]}


@pytest.mark.parametrize(
    ("said", "is_kept"),
    [
        ("model tiny is not loaded, try again", True),
        ("", True),
        ("the pump is busy", True),
        ('{"input": "HOW HEAVY IS THE mx-9920-w"}', False),
        ("bad text: the MX-9920-W pump", False),
    ],
)
def test_what_quotes_the_request_is_left_out(said: str, is_kept: bool) -> None:
    assert without_request(said, BODY) == (said if is_kept else LEFT_OUT)
