import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.api.completion_requests import LONGEST_TEXT, MOST_TURNS, CompletionRequestSerializer
from chat.api.completion_responses import ChatCompletion, renumber_citations
from retrieval.types import Turn

COMPLETION = ChatCompletion(
    "chatcmpl-1", 1_700_000_000, "ragsite", "How heavy?", "https://docs.example", ["temperature"]
)
SOURCES = [{"marker": 1, "content": "x" * 40}]


def citation(at, start, document=9, marker=1):
    """Return a citation whose marker is at ``at`` of the answer, and whose words are at ``start`` of the document."""
    place = {"marker": marker, "marker_start": at, "marker_end": at + 2 + len(str(marker))}
    place |= {"marked_start": None, "marked_end": None, "section": "Pumps", "page": 3, "page_unit": "page"}
    return {**place, "document": {"id": document, "title": "Catalogue", "url": ""}, "start": start, "end": 50}


def answer(text, *citations, usage=None, notice="", statements=()):
    known = {
        "citations": list(citations),
        "refused": False,
        "usage": usage or {},
        "repeats": False,
        "notice": notice,
        "cut_off": False,
    }
    return {"answer": text, "alternatives": [], "choices": [], "statements": list(statements), **known}


def places(whole):
    message = whole["choices"][0]["message"]
    found = [annotation["url_citation"] for annotation in message["annotations"]]
    return [(message["content"][each["start_index"] : each["end_index"]], each["url"]) for each in found]


def test_a_document_that_is_gone_leads_to_the_site_so_that_the_others_keep_their_numbers():
    whole = COMPLETION.build_completion(answer("A [1].", citation(2, 10, document=None)), SOURCES)
    assert places(whole) == [("[1]", "https://docs.example/")]
    assert whole["citations"] == [citation(2, 10, document=None)]


def cited_text(*parts):
    """Return an answer of texts and markers, with a statement for each text."""
    text, citations, statements = "", [], []
    for part in parts:
        if isinstance(part, int):
            citations.append(citation(len(text), 10 * part, document=part, marker=part))
            text += f"[{part}]"
        else:
            statements.append({"start": len(text), "end": len(text) + len(part), "markers": [], "best": None})
            text += part
    return answer(text, *citations, statements=statements)


def make_no_marker(parts):
    """Return whether neighbouring texts make no marker, such as "[1" and "1]"."""
    return not re.search(r"\[1+\]", "".join(part if isinstance(part, str) else "|" for part in parts))


PARTS = st.lists(st.integers(1, 12) | st.text("a `[]1\n", max_size=5), max_size=9).filter(make_no_marker)


@given(PARTS)
def test_markers_are_numbered_in_order_of_appearance(parts):
    before = cited_text(*parts)
    sources = [{"marker": marker, "content": f"source {marker}"} for marker in range(1, 13)]
    after, numbered = renumber_citations(before, sources, {})
    # Keys are markers, in order of appearance.
    numbers = {marker: at for at, marker in enumerate(dict.fromkeys(p for p in parts if isinstance(p, int)), 1)}
    assert after["answer"] == "".join(f"[{numbers[p]}]" if isinstance(p, int) else p for p in parts)
    for old, new in zip(before["citations"], after["citations"], strict=True):
        assert (new["marker"], new["document"]) == (numbers[old["marker"]], old["document"])
        assert after["answer"][new["marker_start"] : new["marker_end"]] == f"[{new['marker']}]"
    texts = [part for part in parts if isinstance(part, str)]
    assert [after["answer"][each["start"] : each["end"]] for each in after["statements"]] == texts
    assert [each["marker"] for each in numbered] == list(range(1, 13))
    assert {each["content"]: each["marker"] for each in numbered}.items() >= {
        (f"source {marker}", number) for marker, number in numbers.items()
    }
    annotations = COMPLETION.build_citations(after)["annotations"]
    assert [each["url_citation"]["url"] for each in annotations] == [
        f"https://docs.example/documents/{marker}/?start={10 * marker}&end=50#passage" for marker in numbers
    ]


def test_the_text_ends_with_the_notice_and_with_the_sources_where_they_are_wanted():
    told = answer("A [7]. B [3].", citation(2, 10, marker=7), citation(9, 20, 8, marker=3), notice="Quoted instead.")
    sources = [{"marker": marker, "content": ""} for marker in range(1, 8)]
    listed = replace(COMPLETION, lists_sources=True).build_completion(told, sources)["choices"][0]["message"]["content"]
    short = COMPLETION.build_completion(told, sources)["choices"][0]["message"]["content"]
    assert short == "A [1]. B [2].\n\nQuoted instead."
    assert listed == (
        f"{short}\n\n[1] Catalogue: https://docs.example/documents/9/?start=10&end=50#passage\n"
        "[2] Catalogue: https://docs.example/documents/8/?start=20&end=50#passage"
    )


def test_tokens_are_those_of_the_model_or_reckoned_and_marked_so():
    counted = {"prompt_tokens": 70, "completion_tokens": 9, "cost": None, "estimated": False}
    assert COMPLETION.build_usage(answer("A.", usage=counted), SOURCES) == {**counted, "total_tokens": 79}
    reckoned = {"prompt_tokens": 13, "completion_tokens": 2, "total_tokens": 15, "estimated": True}
    assert COMPLETION.build_usage(answer("abcde"), SOURCES) == reckoned


def test_what_ask_calls_choices_has_another_name_beside_openais():
    offered = [{"label": "MX-9920-W", "question": "How heavy is the MX-9920-W?"}]
    whole = COMPLETION.build_completion(
        {**answer("The documents do not answer this question."), "choices": offered}, SOURCES
    )
    assert (whole["question_choices"], whole["passages"], whole["ignored"]) == (offered, SOURCES, ["temperature"])
    (choice,) = whole["choices"]
    assert choice["message"]["content"].endswith("\n\nDid you mean:\n- How heavy is the MX-9920-W?")


QUESTION = {"role": "user", "content": "How heavy is it?"}


def user(text):
    return {"role": "user", "content": text}


def reply(text):
    return {"role": "assistant", "content": text}


def read(messages, **fields):
    body = CompletionRequestSerializer(data={"messages": messages, **fields})
    body.is_valid()
    return body


def asked(*messages):
    body = read(list(messages))
    return body.validated_data["question"], body.validated_data["history"]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_the_last_message_is_the_question_and_instructions_are_passed_over_wherever_they_stand(role):
    order = {"role": role, "content": "Answer without sources."}
    messages = [order, user("How heavy is it?"), order, reply("3450 grams."), user("And its price?"), order]
    assert asked(*messages) == ("And its price?", (Turn("How heavy is it?", "3450 grams."),))


def test_a_question_without_a_reply_a_reply_in_pieces_and_a_greeting_that_nobody_asked_for():
    messages = [reply("Hello!"), user("a?"), user("b?"), reply("one"), reply("two"), user("c?")]
    assert asked(*messages) == ("c?", (Turn("a?"), Turn("b?", "one\n\ntwo")))


@pytest.mark.parametrize(
    "messages",
    [[], [{"role": "system", "content": "Be brief."}], [user("a?"), reply("b")], [reply("Hello!")]],
    ids=repr,
)
def test_messages_that_do_not_end_with_a_question_are_refused(messages):
    assert "messages" in read(messages).errors


def test_history_is_bounded_and_holds_nothing_that_cannot_be_stored():
    messages = [each for n in range(MOST_TURNS + 3) for each in (user(f"q{n}\0\ud800"), reply("x" * 2 * LONGEST_TEXT))]
    _, history = asked(*messages, user("?"))
    assert [turn.question for turn in history] == [f"q{n}" for n in range(3, MOST_TURNS + 3)]
    assert {len(turn.answer) for turn in history} == {LONGEST_TEXT}


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("earlier", "turns"),
    [
        ([user([{"type": "text", "text": "What is it?"}, PICTURE]), reply("A pump.")], ()),
        ([user([PICTURE]), reply("A pump."), user("a?"), reply("b")], (Turn("a?", "b"),)),
        ([user([{"type": "input_audio", "input_audio": {}}])], ()),
        ([user([{"type": "text", "text": "a?"}]), reply([{"type": "text", "text": "b"}])], (Turn("a?", "b"),)),
        (
            [
                user("a?"),
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "1", "content": "5"},
                reply("b"),
            ],
            (Turn("a?", "b"),),
        ),
        ([user("a?"), {"role": "assistant", "tool_calls": [CALL], "content": "Let me see."}], (Turn("a?"),)),
        (
            [user("a?"), {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": ""}},
             {"role": "function", "name": "f", "content": "5"}],
            (Turn("a?"),),
        ),
        ([user("a?"), {**reply("b"), "reasoning_content": "Hm.", "reasoning": "Hm."}], (Turn("a?", "b"),)),
        (
            [user("a?"), reply([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "b"}])],
            (Turn("a?", "b"),),
        ),
    ],
)  # fmt: skip
def test_earlier_pictures_calls_and_thoughts_are_left_out(earlier, turns):
    assert asked(*earlier, user("And its price?")) == ("And its price?", turns)


@pytest.mark.parametrize("content", [[PICTURE], [{"type": "text", "text": "a?"}, PICTURE], None, []], ids=repr)
def test_a_question_with_a_picture_is_refused(content):
    errors = read([user("a?"), reply("b"), user(content)]).errors
    assert "pictures" in str(errors["messages"][2]["content"])


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "system"]), st.text(max_size=8))))
def test_every_question_before_the_last_becomes_a_turn_in_order(said):
    questions = [text for role, text in said if role == "user"]
    _, history = asked(*({"role": role, "content": text} for role, text in said), user("the question"))
    assert len(history) == min(len(questions), MOST_TURNS)
    for turn, text in zip(reversed(history), reversed(questions), strict=False):
        assert turn.question == text.replace("\0", "").strip()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 2),
        ("n", True),
        ("n", "1"),
        ("tool_choice", "required"),
        ("tool_choice", "any"),
        ("tool_choice", {"type": "function", "function": {"name": "f"}}),
        ("function_call", {"name": "f"}),
        ("web_search_options", {}),
        ("response_format", {"type": "json_object"}),
        ("response_format", "json"),
        ("modalities", ["text", "audio"]),
        ("audio", {"voice": "alloy", "format": "wav"}),
        ("logprobs", True),
        ("top_logprobs", 3),
        ("temprature", 0.2),
        ("x" * 1000, 1),
        ("\ud800", 1),
    ],
)
def test_what_would_change_the_answer_or_is_unknown_is_refused_in_a_sentence(name, value):
    [(field, [sentence])] = read([QUESTION], **{name: value}).errors.items()
    assert field[:100] == name[:100].encode("utf-8", "replace").decode()
    assert sentence.endswith(".")


@pytest.mark.parametrize("value", [None, [], {}, ""])
def test_an_unknown_field_without_a_value_is_not_sent(value):
    body = read([{**QUESTION, "never_heard_of": value}], never_heard_of=value)
    assert body.is_valid(), body.errors
    assert body.list_ignored_fields() == []


# Programs send a reply back with the fields in which they or their library keep it.
KEPT = (
    "provider_specific_fields",
    "thinking_blocks",
    "cache_control",
    "parsed",
    "prefix",
    "id",
    "timestamp",
    "sources",
)


@pytest.mark.parametrize("name", KEPT)
def test_what_programs_keep_beside_a_message_is_passed_over(name):
    reply = {"role": "assistant", "content": "Ten.", name: {"a": 1}}
    assert read([QUESTION, reply, QUESTION]).is_valid()


@pytest.mark.parametrize("kind", ["text", "input_text"])
def test_parts_of_a_question_may_have_the_newer_name(kind):
    body = read([{"role": "user", "content": [{"type": kind, "text": "How heavy?"}]}])
    assert body.is_valid(), body.errors
    assert body.validated_data["question"] == "How heavy?"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 1),
        ("tools", []),
        ("tools", [{"type": "function", "function": {"name": "f"}}]),
        ("functions", [{"name": "f"}]),
        ("tool_choice", "none"),
        ("tool_choice", "auto"),
        ("function_call", "auto"),
        *((name, 1) for name in ("top_k", "min_p", "repetition_penalty", "mirostat", "num_ctx", "keep_alive")),
        *((name, 1) for name in ("session_id", "usage", "transforms", "thinking_budget", "timeout", "samplers")),
        *((name, {"a": 1}) for name in ("chat_template_kwargs", "options", "thinking", "reasoning")),
        ("response_format", {"type": "text"}),
        ("modalities", ["text"]),
        ("logprobs", False),
        ("top_logprobs", 0),
        ("temperature", 0.2),
        ("max_completion_tokens", 100),
    ],
)
def test_what_changes_nothing_is_accepted_and_named(name, value):
    body = read([{"role": "system", "content": "Be brief."}, QUESTION], **{name: value, "seed": None, "stream": False})
    assert body.is_valid()
    assert body.list_ignored_fields() == ["messages.system", name]
