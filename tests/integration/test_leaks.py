"""No user reads a word of a document that they may not see: seeded random requests over every address of the site.

``RULES`` has the call of an address for which the id of a row is not enough. LEAK_REQUESTS in the environment makes
more requests, LEAK_SEED others.
"""

import json
import os
import uuid
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse

from chat.models import Answer, Conversation
from evaluation.models import EvaluationQuestion, EvaluationRun, EvaluationSet, GatePolicy
from retrieval.models import Chunk, Collection, Document, Draft, PushedItem, SearchProfileVersion, Source
from tests.support.addresses import addresses, filled
from tests.support.leaks import PEOPLE, QUESTIONS, VISITOR, World, begin_draft, build_world, judge, misspelt

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators"),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume synchronous iterators"),
]

REQUESTS = int(os.environ.get("LEAK_REQUESTS", "150"))
SEED = int(os.environ.get("LEAK_SEED", "7"))
# Between two changes of rights.
REQUESTS_A_CHANGE = 6


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    address: str
    body: dict[str, Any] = field(default_factory=dict)
    is_json: bool = False


def of(model):
    return lambda world: world.some(model)


# These are the objects of addresses' parameters, where the address's name does not show them.
PARAMETERS = {
    "answer_id": World.some_answer,
    "conversation_id": World.some_conversation,
    "token": lambda world: world.chance.choice(world.tokens or [uuid.UUID(int=7)]),
    "model": lambda world: f"ragsite/{world.slug()}",
    "action": lambda world: world.chance.choice(["sync", "preview", "pause"]),
    "document_id": of(Document),
    "source_id": of(Source),
    "collection_id": of(Collection),
    "draft_id": of(Draft),
    "policy_id": of(GatePolicy),
    "question_id": of(EvaluationQuestion),
    "run_id": of(EvaluationRun),
    "baseline_id": of(EvaluationRun),
    "set_id": of(EvaluationSet),
    "version_id": of(SearchProfileVersion),
}
# These end the sessions, or take a second each and use no documents.
LEFT_OUT = {"account_logout", "admin:logout", "admin:None", "schema", "api_docs", "readyz"}
ADDRESSES = {name: route for name, route, _view in addresses() if name not in LEFT_OUT}


def address_of(world, name):
    """Return the address with the ids of its parameters: rows of the model, as in `admin:chat_answer_history`."""
    known = {f"admin:{each._meta.label_lower.replace('.', '_')}": each for each in admin.site._registry}
    of_model = next((model for begins, model in known.items() if name.startswith(f"{begins}_")), None)

    def value(kind, parameter):
        if parameter in PARAMETERS:
            return PARAMETERS[parameter](world)
        if parameter in ("pk", "object_id") and not (name.startswith("admin:") and of_model is None):
            return World.some_conversation(world) if kind == "uuid" else world.some(of_model or Document)
        return 1

    return filled(ADDRESSES[name], value)


def request(method, name, **body):
    def call(world, person):
        values = {key: value(world) if callable(value) else value for key, value in body.items()}
        return Call(method, address_of(world, name), values)

    return call


get, post = partial(request, "get"), partial(request, "post")


def either(*rules):
    return lambda world, person: world.chance.choice(rules)(world, person)


def asking(name, **others):
    """Return a call that sends a question as JSON: to one collection or to all, and of all kinds."""
    field_name = "query" if name.endswith("search") else "question"

    def call(world, person):
        collection = world.scope()
        body = {field_name: world.question(person, collection), **others}
        if collection:
            body["collection"] = collection
        if field_name == "query":
            body |= {"explain": True, "top_k": 20, "method": world.chance.choice(["default", "lexical", "vector"])}
        return Call("post", reverse(name), body, is_json=True)

    return call


def completion(world, person):
    collection = world.scope()
    # The protocol has keys and no cookies: any caller with its id can use a conversation.
    messages = [{"role": "user", "content": world.chance.choice(QUESTIONS)}]
    body = {"model": f"ragsite/{collection}" if collection else "ragsite", "messages": messages}
    return Call("post", reverse("openai_api:completions"), body, is_json=True)


def mcp_tool(world, person):
    collection = world.scope()
    scope = {"collection": collection} if collection else {}
    document = world.chance.choice(list(Document.objects.values_list("pk", flat=True)))
    name, arguments = world.chance.choice(
        [
            ("search", {"query": world.question(person, collection), **scope}),
            ("ask", {"question": world.question(person, collection), **scope}),
            ("fetch", {"id": str(document)}),
        ]
    )
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    return Call("post", reverse("mcp"), body, is_json=True)


def ask_page(world, person):
    collection = world.scope()
    body = {"question": world.question(person, collection), "collection": collection}
    return Call("post", reverse("chat:ask"), body)


def playground(world, person):
    collection = world.scope()
    query = {"question": world.question(person, collection), "a": "built-in", "b": "built-in"}
    if collection:
        query["collection"] = collection
    return Call("get", reverse("admin:retrieval_searchprofile_playground"), query)


def pushed(method, as_batch=False, chosen=None):
    """Return a call for a document that was sent, a random one unless it is named; a PUT sends the same again."""

    def call(world, person):
        item = chosen or world.chance.choice(list(PushedItem.objects.exclude(name="").order_by("pk")))
        address = reverse("retrieval_api:pushed_document", args=[item.source_id, item.external_id])
        document = Document.objects.filter(origin=item.source_id, source=item.name).first()
        if method == "get" or document is None:
            return Call("get", address)
        body = {"text": document.file.read().decode()}
        if as_batch:
            address = reverse("retrieval_api:push_batch", args=[item.source_id])
            body = {"items": [{"external_id": item.external_id, **body}]}
        return Call(method, address, body, is_json=True)

    return call


def documents_api(world, person):
    return Call("get", reverse("retrieval_api:document-list"), {"collection": world.slug()})


def expected_passages(world, person):
    address = reverse("admin:evaluation_evaluationquestion_change", args=[world.some(EvaluationQuestion)])
    return Call("get", address, {"passages": "boiler house"})


def share_page(world, person):
    """Shares something of a conversation with somebody."""
    chosen = World.some_conversation(world)
    scope, audience = world.chance.choice(["answer", "now", "following"]), world.chance.choice(["link", "signed_in"])
    first = Answer.objects.filter(conversation=chosen).order_by("created_at").first()
    body = {"scope": scope, "audience": audience, "answer": str(first.pk) if first else ""}
    return Call("post", reverse("chat:share", args=[chosen]), body)


# These addresses need a call of their own.
RULES = {
    "retrieval_api:search": asking("retrieval_api:search"),
    "retrieval_api:document-list": either(get("retrieval_api:document-list"), documents_api),
    "retrieval_api:pushed_document": either(pushed("get"), pushed("put")),
    "retrieval_api:push_batch": either(pushed("get"), pushed("post", as_batch=True)),
    "chat_api:ask": asking("chat_api:ask"),
    "chat_api:stop": post("chat_api:stop"),
    "chat_api:feedback": post("chat_api:feedback", helpful=False, comment="No."),
    "chat_api:conversation-list": either(
        get("chat_api:conversation-list"), get("chat_api:conversation-list", q="boiler")
    ),
    "openai_api:completions": completion,
    "mcp": mcp_tool,
    "retrieval:library": either(
        get("retrieval:library"), get("retrieval:library", collection=World.slug), get("retrieval:library", q="boiler")
    ),
    "chat:home": either(get("chat:home"), get("chat:home", q="boiler"), get("chat:home", document=of(Document))),
    "chat:ask": ask_page,
    "chat:share": share_page,
    "chat:stop_sharing": post("chat:stop_sharing"),
    "chat:conversations": get("chat:conversations", q="boiler"),
    "chat:stop": post("chat:stop"),
    "chat:feedback": either(post("chat:feedback", helpful="false"), post("chat:feedback", helpful="?")),
    "admin:autocomplete": get(
        "admin:autocomplete",
        term="e",
        app_label="evaluation",
        model_name="evaluationquestion",
        field_name="evaluation_set",
    ),
    "admin:retrieval_document_status": get(
        "admin:retrieval_document_status", ids=lambda world: ",".join(map(str, range(1, 400)))
    ),
    "admin:retrieval_draft_publish": either(
        get("admin:retrieval_draft_publish"), post("admin:retrieval_draft_publish")
    ),
    "admin:retrieval_source_act": post("admin:retrieval_source_act"),
    "admin:retrieval_searchprofile_playground": playground,
    "admin:evaluation_dashboard_gaps": either(
        get("admin:evaluation_dashboard_gaps"), get("admin:evaluation_dashboard_gaps", collection=World.slug)
    ),
    "admin:evaluation_evaluationquestion_expect": post("admin:evaluation_evaluationquestion_expect", chunk=of(Chunk)),
    "admin:evaluation_evaluationquestion_change": expected_passages,
    "admin:why": either(
        get("admin:why", document=of(Document), account="bob"), get("admin:why", answer=World.some_answer, account="")
    ),
    "admin:chat_answer_mend": either(
        get("admin:chat_answer_mend"),
        post("admin:chat_answer_mend", action="ask"),
        post("admin:chat_answer_mend", action="try", passage=of(Chunk)),
    ),
    "admin:chat_collectioninstructions_activate": post("admin:chat_collectioninstructions_activate"),
    "admin:chat_collectioninstructions_withdraw": post("admin:chat_collectioninstructions_withdraw"),
    "admin:evaluation_make_case": post("admin:evaluation_make_case", answer=lambda world: str(world.some_answer())),
    "admin:evaluation_evaluationset_run": post("admin:evaluation_evaluationset_run", kind="x"),
}
ALL_RULES = {name: RULES.get(name) or get(name) for name in ADDRESSES}
# The pages that the admin makes by itself, and the accounts' pages, are many and alike.
OFTEN = sorted({*RULES, *(name for name in ADDRESSES if name.startswith(("chat", "retrieval", "openai_api", "llms")))})


def content_of(response):
    """All that the response says, its headers too."""
    # Over the response: a stream that is written by an event loop is read by one of its own.
    body = b"".join(response) if response.streaming else response.content
    return f"{body.decode(errors='replace')} {response.headers}".lower()


def send(world, person, call):
    client = world.clients[person]
    if call.is_json:
        return getattr(client, call.method)(call.address, json.dumps(call.body), content_type="application/json")
    return getattr(client, call.method)(call.address, call.body)


def look_for_leaks(world, person, name, call):
    """Return a sentence about a word that the person must not read, and did; empty if there is none."""
    response = send(world, person, call)
    said = content_of(response)
    assert response.status_code != 500, (person, name, call)
    for secret, spoken in world.hidden_from(person):
        for word in (secret, spoken):
            if word in said and (person, word) not in world.said and not was_taken_into_a_set(name, word):
                place = said.index(word)
                return f"{person} read {word} at {name}: {call} -> …{said[max(0, place - 200) : place + 60]}…"
    return ""


def was_taken_into_a_set(name, word):
    """Return whether a reader of the word took a question with it into an evaluation set."""
    cases = EvaluationQuestion.objects.filter(origin=EvaluationQuestion.Origin.FEEDBACK)
    return name.startswith("admin:evaluation_") and cases.filter(text=f"What does {word} keep?").exists()


def learn(world):
    """Record the objects that requests made: links to share, answers to judge."""
    tokens = Conversation.objects.exclude(share_token=None).values_list("share_token", flat=True)
    world.tokens = sorted(map(str, tokens))
    for made in Answer.objects.filter(judgements=None)[:5]:
        judge(made)


def search_for_misspelt_words(world, people):
    """Search for words near hidden ones, to see whether corrections reveal them.

    The visitor tries all words, each of the others one.
    """
    for number, person in enumerate(people):
        hidden = [secret for secret, _spoken in world.hidden_from(person)]
        for secret in hidden if person == VISITOR else hidden[number % len(hidden) :][:1]:
            asked = {"query": f"What is {misspelt(secret)} of the boiler house?", "explain": True}
            call = Call("post", reverse("retrieval_api:search"), asked, is_json=True)
            if leak := look_for_leaks(world, person, "retrieval_api:search", call):
                yield leak


def ask_for_all_that_was_sent(world, people):
    for item in PushedItem.objects.exclude(name=""):
        for person in people:
            for call in (pushed("get", chosen=item), pushed("put", chosen=item), pushed("post", True, item)):
                name = "retrieval_api:pushed_document"
                if leak := look_for_leaks(world, person, name, call(world, person)):
                    yield leak


def assert_the_rule_is_that_of_the_site(world):
    """Assert that this test's rule of rights and the site's agree, whatever was changed."""
    for person in PEOPLE:
        user = User.objects.get(username=person)
        readable = {shelf.secret for shelf in world.shelves if world.may_read(person, shelf)}
        seen = set(Document.objects.readable_by(user).values_list("source", flat=True))
        shelved = {f"{shelf.secret}.md" for shelf in world.shelves}
        assert {f"{word}.md" for word in readable} == seen & shelved
        assert (f"{world.narrowed_words[0]}.md" in seen) == world.may_read_narrowed(person)
        assert (f"{world.followed_words[0]}.md" in seen) == world.may_read_followed(person)


def test_nobody_reads_what_they_may_not_see(ingest, settings, monkeypatch):
    settings.CHAT_DEBUG_FOR_EVERYONE = True
    settings.METRICS_PUBLIC = True
    monkeypatch.setattr("retrieval.api.throttling.FixedWindowThrottle.allow_request", lambda *_arguments: True)
    world = build_world(SEED, ingest)
    begin_draft(world.shelves[4])
    people = [*PEOPLE, VISITOR]
    # Everybody has asked everything once, so that there is something to find.
    for person in people:
        for _ in range(2):
            send(world, person, asking("chat_api:ask")(world, person))
    learn(world)
    names = [*sorted(ALL_RULES), *OFTEN * 4]
    leaks = [*search_for_misspelt_words(world, people), *ask_for_all_that_was_sent(world, people)]
    for number in range(REQUESTS):
        if number % REQUESTS_A_CHANGE == 0:
            world.change_a_right()
            assert_the_rule_is_that_of_the_site(world)
            learn(world)
        person, name = world.chance.choice(people), world.chance.choice(names)
        if name.startswith("admin:") and world.chance.random() < 0.8:
            person = world.chance.choice([each for each in people if world.is_staff(each)])
        world.person = person
        if leak := look_for_leaks(world, person, name, ALL_RULES[name](world, person)):
            leaks.append(leak)
    assert leaks == [], "\n".join(leaks)
