"""The official client of OpenAI against the running site: what existing programs see of it."""

import httpx2
import numpy as np
import pytest
from django.contrib.auth.models import User

from chat.models import Answer, Conversation
from retrieval.index import embedder_choice
from tests.integration.clients.conftest import QUESTION

# Elsewhere where it is used: every process of a run imports this module, and the client takes a second.


@pytest.fixture
def client(site):
    from openai import OpenAI

    def connect(key="none"):
        return OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=0)

    return connect


def refused(status):
    """Expect the client's error for this status."""
    import openai

    return pytest.raises({400: openai.BadRequestError, 404: openai.NotFoundError}[status])


def user(text):
    return {"role": "user", "content": text}


def said(completion):
    return completion.choices[0].message.content


def test_a_completion_is_a_cited_answer(client, site, rows):
    completion = client().chat.completions.create(model="ragsite", messages=[user(QUESTION)])
    assert (completion.object, completion.model) == ("chat.completion", "ragsite")
    choice = completion.choices[0]
    assert (choice.finish_reason, choice.message.role) == ("stop", "assistant")
    assert "3450 grams" in said(completion)
    citation = choice.message.citations[0]
    assert f"[{citation['marker']}]" in said(completion)
    assert "3450 grams" in citation["quote"]
    annotation = choice.message.annotations[0].url_citation
    assert said(completion)[annotation.start_index : annotation.end_index] == f"[{citation['marker']}]"
    assert annotation.title == "MX-9920-W"
    assert annotation.url.startswith(f"{site.url}/documents/{citation['document']['id']}/?start=")
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens > 0
    assert completion.usage.estimated is True  # no model was asked
    beside = completion.model_extra or {}
    assert beside["refused"] is False
    assert beside["citations"] == choice.message.citations
    assert beside["passages"][0]["marker"] == 1
    assert beside["search_method"] == "zscore"
    assert {"statements", "confidence", "notice", "degraded", "conversation"} <= set(beside)
    with rows():
        answer = Answer.objects.get(pk=beside["answer_id"])
        assert (answer.status, answer.question, answer.text) == (
            "completed",
            QUESTION,
            said(completion).partition("\n\nAlso in the documents:")[0],
        )
        assert completion.id == f"chatcmpl-{answer.pk.hex}"
        assert (answer.conversation.owner, answer.conversation.visitor) == (None, "")


def test_a_stream_says_what_the_whole_does(client):
    whole = client().chat.completions.create(model="ragsite", messages=[user(QUESTION)])
    stream = client().chat.completions.create(
        model="ragsite", messages=[user(QUESTION)], stream=True, stream_options={"include_usage": True}
    )
    received = list(stream)
    begun = [bool(chunk.choices[0].delta.content) for chunk in received if "passages" in (chunk.model_extra or {})]
    assert begun[0] is False
    assert {chunk.object for chunk in received} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in received}) == 1
    assert received[0].choices[0].delta.role == "assistant"
    *with_choices, with_usage = received
    assert "".join(chunk.choices[0].delta.content or "" for chunk in with_choices).strip() == said(whole)
    assert [chunk.choices[0].finish_reason for chunk in with_choices] == [None] * (len(with_choices) - 1) + ["stop"]
    last = with_choices[-1]
    assert last.choices[0].delta.citations == last.citations
    for name in ("citations", "passages", "refused", "search_method", "answer_id", "statements", "notice"):
        assert name in (last.model_extra or {}), name
    quotes = [citation["quote"] for citation in last.citations]
    assert quotes == [citation["quote"] for citation in whole.citations]
    assert (with_usage.choices, with_usage.usage) == ([], whole.usage)
    assert {chunk.usage for chunk in with_choices} == {None}


def test_earlier_messages_help_to_search_a_follow_up(client, rows):
    first, reply, follow_up = "When is the swimming pool open?", "From seven to ten.", "and in winter?"
    messages = [user(first), {"role": "assistant", "content": reply}, user(follow_up)]
    completion = client().chat.completions.create(model="ragsite", messages=messages)
    assert "closes at eight" in said(completion)
    assert completion.joined_question == f"{first} {follow_up}"
    with rows():
        answer = Answer.objects.get(pk=completion.answer_id)
        [turn] = answer.history
        assert (turn["question"], turn["answer"], turn["dialogue"]) == (first, reply, [])
        assert answer.conversation.answers.count() == 1


def test_a_users_messages_carry_their_conversation_on(client, keys, rows):
    def ask(key, *messages, model="ragsite"):
        return client(keys[key]).chat.completions.create(model=model, messages=messages)

    question = "When is the swimming pool open?"
    first = ask("reader", user(question))
    told = [user(question), {"role": "assistant", "content": said(first)}]
    assert ask("reader", *told, user("and in winter?")).conversation == first.conversation
    changed = [user(question), {"role": "assistant", "content": "It is never open."}]
    assert ask("reader", *changed, user("and in winter?")).conversation != first.conversation
    # Asked again from an earlier point: a branch, which the conversation does not have.
    assert ask("reader", *told, user("And its price?")).conversation != first.conversation
    assert ask("other", *told, user("and in winter?")).conversation != first.conversation
    assert ask("reader", *told, user("and in winter?"), model="ragsite/library").conversation != first.conversation
    with rows():
        conversation = Conversation.objects.get(pk=first.conversation)
        assert conversation.owner == User.objects.get(username="reader")
        assert conversation.answers.count() == 2


def test_a_field_and_a_setting_of_the_key_list_the_sources_and_conversations_go_on(client, keys, rows):
    question = "When is the swimming pool open?"
    plain = client(keys["reader"]).chat.completions.create(model="ragsite", messages=[user(question)])
    for key, fields in (("reader", {"extra_body": {"list_sources": True}}), ("listing", {})):
        listed = client(keys[key]).chat.completions.create(model="ragsite", messages=[user(question)], **fields)
        cited = listed.citations[0]["document"]
        place = f"[1] {cited['title']}: {listed.choices[0].message.annotations[0].url_citation.url}"
        assert said(listed) == f"{said(plain)}\n\n{place}"
        told = [user(question), {"role": "assistant", "content": said(listed)}, user("and in winter?")]
        assert client(keys[key]).chat.completions.create(model="ragsite", messages=told).conversation == (
            listed.conversation
        )
    off = client(keys["listing"]).chat.completions.create(
        model="ragsite", messages=[user(question)], extra_body={"list_sources": False}
    )
    assert said(off) == said(plain)


def test_models_are_what_the_caller_may_ask(client, keys):
    *asked, embedder = [model.id for model in client().models.list()]
    assert asked == ["ragsite", "ragsite/library"]
    assert embedder == embedder_choice.get_embedder().name
    assert {model.id for model in client(keys["editor"]).models.list()} >= {"ragsite/library", "ragsite/secret"}
    assert client().models.retrieve("ragsite/library").owned_by == "ragsite"
    for name in ("ragsite/secret", "ragsite/nowhere", "gpt-4o"):
        with refused(404):
            client().models.retrieve(name)


def test_a_model_is_a_collection(client, keys):
    asked = [user("When is the merger with Initech announced?")]
    secret = client(keys["editor"]).chat.completions.create(model="ragsite/secret", messages=asked)
    assert "March" in said(secret)
    assert secret.model == "ragsite/secret"
    assert "March" not in said(client().chat.completions.create(model="ragsite", messages=asked))
    for name in ("ragsite/secret", "ragsite/nowhere", "gpt-4o", "ragsite/", embedder_choice.get_embedder().name):
        with refused(404) as caught:
            client().chat.completions.create(model=name, messages=asked)
        assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_embeddings_are_the_vectors_that_the_site_searches_with(client):
    """The client asks for base64 by itself, and returns numbers."""
    embedder, texts = embedder_choice.get_embedder(), ["How heavy is the pump?", "The pump weighs 3450 grams."]
    passages = client().embeddings.create(model=embedder.name, input=texts)
    assert np.allclose([one.embedding for one in passages.data], embedder.embed_documents(texts), atol=1e-5)
    assert (passages.model, passages.usage.total_tokens) == (embedder.name, sum(embedder.count_tokens(texts)))
    query = client().embeddings.create(
        model=embedder.name, input=texts[0], encoding_format="float", extra_body={"input_type": "query"}
    )
    assert np.allclose(query.data[0].embedding, embedder.embed_query(texts[0]), atol=1e-5)


def test_many_texts_are_embedded_in_one_call(client):
    embedder, texts = embedder_choice.get_embedder(), [f"Pump {n}" for n in range(2048)]
    found = client().embeddings.create(model=embedder.name, input=texts).data
    assert [one.index for one in found] == list(range(2048))
    for at in (0, 33, 2047):
        assert np.allclose(found[at].embedding, embedder.embed_documents([texts[at]])[0], atol=1e-4)


@pytest.mark.parametrize("path", ["chat/completions", "chat/completions/", "models/", "models/ragsite/", "embeddings/"])
def test_a_closing_slash_changes_nothing(site, path):
    body = (
        {"messages": [user(QUESTION)]}
        if "chat" in path
        else {"model": embedder_choice.get_embedder().name, "input": "a"}
    )
    is_read = path.startswith("models")
    response = httpx2.request("GET" if is_read else "POST", f"{site.url}/v1/{path}", json=None if is_read else body)
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": ["a", " "]}, "input"),
        ({"input": [[1, 2]]}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": "word " * 3000}, "input"),
        ({"input": "a", "dimensions": 7}, "dimensions"),
        ({"input": "a", "extra_body": {"input_type": "image"}}, "input_type"),
        ({"input": "a", "extra_body": {"truncate": True}}, "truncate"),
    ],
    ids=repr,
)
def test_what_cannot_be_embedded_is_refused_by_name(client, fields, param):
    with refused(400) as caught:
        client().embeddings.create(**{"model": embedder_choice.get_embedder().name, **fields})
    assert caught.value.param == param


def test_what_is_not_offered_is_not_found(client):
    with refused(404) as caught:
        client().embeddings.create(model="ragsite", input="a")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    with refused(404) as caught:
        client().moderations.create(input="a")
    assert "chat/completions" in str(caught.value)
