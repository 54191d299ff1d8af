"""Nobody reads a word of documents that they may not see: seeded random requests over every address of the site, and
every kind of page that a link leads to.

Each address needs a rule that says how it is called, or an entry that says that it holds no documents: a new one
without either fails. LEAK_REQUESTS in the environment makes more requests, LEAK_SEED others.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import Group, User
from django.http import HttpResponseBase
from django.urls import URLPattern, URLResolver, get_resolver, resolve, reverse

from chat.models import Answer, ApprovedAnswer, CollectionInstructions, Conversation, LanguageModel, QuestionBudget
from evaluation.models import (
    EvaluationQuestion,
    EvaluationRun,
    EvaluationSet,
    Experiment,
    GatePolicy,
    Judgement,
    JudgeUsage,
)
from ragsite.models import ApiKey, AuditEntry, Invitation
from retrieval.models import (
    Chunk,
    Collection,
    Document,
    Draft,
    SearchProfile,
    SearchProfileVersion,
    Source,
    Webhook,
    WebhookDelivery,
)
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
# Of one walk along the links.
MOST_PAGES = 40


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    address: str
    body: dict[str, Any] = field(default_factory=dict)
    is_json: bool = False


Rule = Callable[[World, str], Call]


def get(name: str, *keys: Callable[[World], Any], **query: Any) -> Rule:
    def call(world: World, person: str) -> Call:
        values = {key: value(world) if callable(value) else value for key, value in query.items()}
        return Call("get", reverse(name, args=[key(world) for key in keys]), values)

    return call


def post(name: str, *keys: Callable[[World], Any], **body: Any) -> Rule:
    def call(world: World, person: str) -> Call:
        values = {key: value(world) if callable(value) else value for key, value in body.items()}
        return Call("post", reverse(name, args=[key(world) for key in keys]), values)

    return call


def either(*rules: Rule) -> Rule:
    return lambda world, person: world.chance.choice(rules)(world, person)


def asking(name: str, **others: Any) -> Rule:
    """A question as JSON: of one collection or of all, and of all kinds."""
    field_name = "query" if name.endswith("search") else "question"

    def call(world: World, person: str) -> Call:
        collection = world.scope()
        body: dict[str, Any] = {field_name: world.question(person, collection), **others}
        if collection:
            body["collection"] = collection
        if field_name == "query":
            body |= {"explain": True, "top_k": 20, "method": world.chance.choice(["default", "lexical", "vector"])}
        return Call("post", reverse(name), body, is_json=True)

    return call


def completion(world: World, person: str) -> Call:
    collection = world.scope()
    # The protocol knows keys and no cookies: its conversations are of nobody, and of whoever knows their ids.
    messages = [{"role": "user", "content": world.chance.choice(QUESTIONS)}]
    body = {"model": f"ragsite/{collection}" if collection else "ragsite", "messages": messages}
    return Call("post", reverse("openai_api:completions"), body, is_json=True)


def mcp_tool(world: World, person: str) -> Call:
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


def ask_page(world: World, person: str) -> Call:
    collection = world.scope()
    body = {"question": world.question(person, collection), "collection": collection}
    return Call("post", reverse("chat:ask"), body)


def playground(world: World, person: str) -> Call:
    collection = world.scope()
    query = {"question": world.question(person, collection), "a": "built-in", "b": "built-in"}
    if collection:
        query["collection"] = collection
    return Call("get", reverse("admin:retrieval_searchprofile_playground"), query)


def documents_api(world: World, person: str) -> Call:
    return Call("get", reverse("retrieval_api:document-list"), {"collection": world.slug()})


def expected_passages(world: World, person: str) -> Call:
    address = reverse("admin:evaluation_evaluationquestion_change", args=[world.some(EvaluationQuestion)])
    return Call("get", address, {"passages": "boiler house"})


answer, conversation = World.some_answer, World.some_conversation


def share_page(world: World, person: str) -> Call:
    """Shares something of a conversation with somebody."""
    chosen = conversation(world)
    scope, audience = world.chance.choice(["answer", "now", "following"]), world.chance.choice(["link", "signed_in"])
    first = Answer.objects.filter(conversation=chosen).order_by("created_at").first()
    body = {"scope": scope, "audience": audience, "answer": str(first.pk) if first else ""}
    return Call("post", reverse("chat:share", args=[chosen]), body)


def of(model: Any) -> Callable[[World], Any]:
    return lambda world: world.some(model)


def shared(world: World, person: str) -> Call:
    token = world.chance.choice(world.tokens) if world.tokens else "00000000-0000-4000-8000-000000000000"
    return Call("get", reverse("chat:shared", args=[token]))


DOCUMENT = of(Document)
RULES: dict[str, Rule] = {
    "retrieval_api:search": asking("retrieval_api:search"),
    "retrieval_api:collections": get("retrieval_api:collections"),
    "retrieval_api:document-list": either(get("retrieval_api:document-list"), documents_api),
    "retrieval_api:document-detail": get("retrieval_api:document-detail", DOCUMENT),
    "chat_api:ask": asking("chat_api:ask"),
    "chat_api:answer": get("chat_api:answer", answer),
    "chat_api:answer_stream": get("chat_api:answer_stream", answer),
    "chat_api:stop": post("chat_api:stop", answer),
    "chat_api:feedback": post("chat_api:feedback", answer, helpful=False, comment="No."),
    "chat_api:conversation-list": either(
        get("chat_api:conversation-list"), get("chat_api:conversation-list", q="boiler")
    ),
    "chat_api:conversation-detail": get("chat_api:conversation-detail", conversation),
    "openai_api:completions": completion,
    "mcp": mcp_tool,
    "llms_txt": get("llms_txt"),
    "chat:widget_answer": get("chat:widget_answer", answer),
    "openai_api:models": get("openai_api:models"),
    "openai_api:model": get("openai_api:model", lambda world: f"ragsite/{world.slug()}"),
    "retrieval:library": either(
        get("retrieval:library"), get("retrieval:library", collection=World.slug), get("retrieval:library", q="boiler")
    ),
    "retrieval:document": get("retrieval:document", DOCUMENT),
    "retrieval:original": get("retrieval:original", DOCUMENT),
    "retrieval:pdf": get("retrieval:pdf", DOCUMENT),
    "retrieval:page_picture": get("retrieval:page_picture", DOCUMENT, lambda world: 1),
    "chat:home": either(get("chat:home"), get("chat:home", q="boiler"), get("chat:home", document=DOCUMENT)),
    "chat:ask": ask_page,
    "chat:conversation": get("chat:conversation", conversation),
    "chat:rename_conversation": get("chat:rename_conversation", conversation),
    "chat:conversation_entry": get("chat:conversation_entry", conversation),
    "chat:share": share_page,
    "chat:stop_sharing": post("chat:stop_sharing", conversation),
    "chat:conversations": get("chat:conversations", q="boiler"),
    "chat:shared": shared,
    "chat:stream": get("chat:stream", answer),
    "chat:stop": post("chat:stop", answer),
    "chat:feedback": either(post("chat:feedback", answer, helpful="false"), post("chat:feedback", answer, helpful="?")),
    "chat:debug": get("chat:debug", answer),
    "chat:debug_scores": get("chat:debug_scores", answer),
    "account_keys": get("account_keys"),
    "account_data": get("account_data"),
    "account_export": get("account_export"),
    "account_overview": get("account_overview"),
    "metrics": get("metrics"),
    "admin:index": get("admin:index"),
    "admin:autocomplete": get(
        "admin:autocomplete",
        term="e",
        app_label="evaluation",
        model_name="evaluationquestion",
        field_name="evaluation_set",
    ),
    "admin:view_on_site": get("admin:view_on_site", lambda world: 1, lambda world: 1),
    "admin:retrieval_document_status": get(
        "admin:retrieval_document_status", ids=lambda world: ",".join(map(str, range(1, 400)))
    ),
    "admin:retrieval_document_original": get("admin:retrieval_document_original", DOCUMENT),
    "admin:retrieval_draft_begin": get("admin:retrieval_draft_begin", of(Collection)),
    "admin:retrieval_draft_publish": either(
        get("admin:retrieval_draft_publish", of(Draft)), post("admin:retrieval_draft_publish", of(Draft))
    ),
    "admin:retrieval_draft_discard": get("admin:retrieval_draft_discard", of(Draft)),
    "admin:retrieval_source_act": post(
        "admin:retrieval_source_act", of(Source), lambda world: world.chance.choice(["sync", "preview", "pause"])
    ),
    "admin:retrieval_searchprofile_playground": playground,
    "admin:evaluation_dashboard_changelist": get("admin:evaluation_dashboard_changelist"),
    "admin:evaluation_dashboard_gaps": either(
        get("admin:evaluation_dashboard_gaps"), get("admin:evaluation_dashboard_gaps", collection=World.slug)
    ),
    "admin:evaluation_gatepolicy_check": get(
        "admin:evaluation_gatepolicy_check", of(GatePolicy), of(SearchProfileVersion)
    ),
    "admin:evaluation_gatepolicy_check_draft": get(
        "admin:evaluation_gatepolicy_check_draft", of(GatePolicy), of(Draft)
    ),
    "admin:evaluation_evaluationquestion_expect": post(
        "admin:evaluation_evaluationquestion_expect", of(EvaluationQuestion), chunk=of(Chunk)
    ),
    "admin:evaluation_evaluationquestion_change": expected_passages,
    "admin:evaluation_evaluationrun_compare": get(
        "admin:evaluation_evaluationrun_compare", of(EvaluationRun), of(EvaluationRun)
    ),
    "admin:evaluation_evaluationset_import": get("admin:evaluation_evaluationset_import"),
    "admin:why": either(
        get("admin:why", document=DOCUMENT, account="bob"), get("admin:why", answer=answer, account="")
    ),
    "admin:chat_answer_mend": either(
        get("admin:chat_answer_mend", answer), post("admin:chat_answer_mend", answer, action="ask")
    ),
    "admin:chat_collectioninstructions_preview": get(
        "admin:chat_collectioninstructions_preview", of(CollectionInstructions)
    ),
    **{
        f"admin:chat_collectioninstructions_{name}": post(
            f"admin:chat_collectioninstructions_{name}", of(CollectionInstructions)
        )
        for name in ("activate", "withdraw")
    },
    "admin:evaluation_make_case": post("admin:evaluation_make_case", answer=lambda world: str(answer(world))),
    "admin:evaluation_evaluationset_run": post("admin:evaluation_evaluationset_run", of(EvaluationSet), kind="x"),
}
# The five pages that the admin makes of each model.
MODELS: dict[str, Any] = {
    "auth_group": Group,
    "auth_user": User,
    "chat_answer": Answer,
    "chat_approvedanswer": ApprovedAnswer,
    "chat_collectioninstructions": CollectionInstructions,
    "chat_conversation": Conversation,
    "chat_languagemodel": LanguageModel,
    "chat_questionbudget": QuestionBudget,
    "evaluation_evaluationquestion": EvaluationQuestion,
    "evaluation_evaluationrun": EvaluationRun,
    "evaluation_evaluationset": EvaluationSet,
    "evaluation_experiment": Experiment,
    "evaluation_gatepolicy": GatePolicy,
    "evaluation_judgement": Judgement,
    "evaluation_judgeusage": JudgeUsage,
    "mfa_authenticator": Authenticator,
    "ragsite_apikey": ApiKey,
    "retrieval_webhook": Webhook,
    "retrieval_webhookdelivery": WebhookDelivery,
    "ragsite_auditentry": AuditEntry,
    "ragsite_invitation": Invitation,
    "retrieval_chunk": Chunk,
    "retrieval_collection": Collection,
    "retrieval_document": Document,
    "retrieval_draft": Draft,
    "retrieval_searchprofile": SearchProfile,
    "retrieval_source": Source,
    "socialaccount_socialaccount": SocialAccount,
}
PAGES = ("changelist", "add", "history", "delete", "change")
# Name of the address and why it holds nothing of documents.
NO_DOCUMENTS = {
    "admin:login": "the form to sign in",
    "admin:logout": "signs out",
    "admin:password_change": "one's own password",
    "admin:password_change_done": "one's own password",
    "admin:jsi18n": "texts of the interface",
    "admin:app_list": "names of models",
    "admin:None": "leads to another address, or nowhere",
    "admin:auth_user_password_change": "a password",
    "admin:chat_languagemodel_test": "a model's answer to two passages of its own",
    "admin:retrieval_searchprofile_withdraw": "a button about profiles",
    "admin:retrieval_searchprofile_publish": "a button about profiles; objections name sets alone",
    "admin:evaluation_experiment_start": "a button about profiles",
    "admin:evaluation_experiment_end": "a button about profiles",
    "account_login": "the form to sign in",
    "account_logout": "signs out",
    "account_signup": "the form to sign up",
    "account_invitation": "the form to sign up",
    "account_change_password": "a password",
    "account_set_password": "a password",
    "account_reset_password": "a password",
    "account_reset_password_done": "a password",
    "account_reset_password_from_key": "a password",
    "account_reset_password_from_key_done": "a password",
    "account_reauthenticate": "a password",
    "account_inactive": "a sentence",
    "account_email": "one's own address",
    "account_confirm_email": "one's own address",
    "account_email_verification_sent": "one's own address",
    "account_key_revoke": "one's own keys",
    "mfa_index": "one's own second factor",
    "mfa_authenticate": "one's own second factor",
    "mfa_reauthenticate": "one's own second factor",
    "mfa_activate_totp": "one's own second factor",
    "mfa_deactivate_totp": "one's own second factor",
    "mfa_generate_recovery_codes": "one's own second factor",
    "mfa_view_recovery_codes": "one's own second factor",
    "mfa_download_recovery_codes": "one's own second factor",
    "openid_connect_login": "leads to the provider",
    "openid_connect_callback": "comes from the provider",
    "socialaccount_login_cancelled": "a sentence",
    "socialaccount_login_error": "a sentence",
    "socialaccount_signup": "the form to sign up",
    "help": "the handbook",
    "help_chapter": "the handbook",
    "chat:widget_script": "a script",
    "chat:widget": "an empty form",
    "oauth_protected_resource": "where /mcp is, and that it takes keys",
    "openai_api:embeddings": "vectors of the caller's own text",
    "openai_api:not_offered": "says that there is nothing",
    "schema": "the API's description",
    "api_docs": "the API's description",
    "healthz": "whether the site is alive",
    "readyz": "whether the site can answer",
    "chat:delete_conversation": "deletes; the list that it shows is that of chat:conversations",
}


def addresses() -> set[str]:
    def walk(patterns: list[Any], namespace: str) -> Iterator[str]:
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
                yield from walk(pattern.url_patterns, inner)
            elif isinstance(pattern, URLPattern):
                yield f"{namespace}{pattern.name}"

    return set(walk(get_resolver().url_patterns, ""))


def page_rules() -> dict[str, Rule]:
    rules = {}
    for name, model in MODELS.items():
        for page in PAGES:
            keys = () if page in ("changelist", "add") else (of(model),)
            rules[f"admin:{name}_{page}"] = get(f"admin:{name}_{page}", *keys)
    return rules


ALL_RULES = {**page_rules(), **RULES}


def test_every_address_has_a_rule() -> None:
    assert addresses() - ALL_RULES.keys() - NO_DOCUMENTS.keys() == set()
    assert (ALL_RULES.keys() | NO_DOCUMENTS.keys()) - addresses() == set()
    assert ALL_RULES.keys() & NO_DOCUMENTS.keys() == set()


def content_of(response: HttpResponseBase) -> str:
    """All that the response says, its headers too."""
    # Over the response: a stream that is written by an event loop is read by one of its own.
    body = b"".join(response) if response.streaming else response.content  # type: ignore[arg-type, attr-defined]
    return f"{body.decode(errors='replace')} {response.headers}".lower()


def send(world: World, person: str, call: Call) -> HttpResponseBase:
    client = world.clients[person]
    if call.is_json:
        return client.post(call.address, json.dumps(call.body), content_type="application/json")
    return getattr(client, call.method)(call.address, call.body)


def look_for_leaks(world: World, person: str, name: str, call: Call) -> str:
    """A sentence about the word that the person must not read, and did; empty without one."""
    response = send(world, person, call)
    said = content_of(response)
    assert response.status_code != 500, (person, name, call)
    for secret, spoken in world.hidden_from(person):
        for word in (secret, spoken):
            if word in said and (person, word) not in world.said and not was_taken_into_a_set(name, word):
                place = said.index(word)
                return f"{person} read {word} at {name}: {call} -> …{said[max(0, place - 200) : place + 60]}…"
    return ""


def was_taken_into_a_set(name: str, word: str) -> bool:
    """Whether somebody who might read it took a question that was typed with this word into an evaluation set."""
    cases = EvaluationQuestion.objects.filter(origin=EvaluationQuestion.Origin.FEEDBACK)
    return name.startswith("admin:evaluation_") and cases.filter(text=f"What does {word} keep?").exists()


def learn(world: World) -> None:
    """What requests have made: links to share, answers to judge."""
    tokens = Conversation.objects.exclude(share_token=None).values_list("share_token", flat=True)
    world.tokens = sorted(map(str, tokens))
    for made in Answer.objects.filter(judgements=None)[:5]:
        judge(made)


def search_for_misspelt_words(world: World, people: list[str]) -> Iterator[str]:
    """Whether a word that is near a hidden one tells of it."""
    for person in people:
        for secret in world.secrets:
            asked = {"query": f"What is {misspelt(secret)} of the boiler house?", "explain": True}
            call = Call("post", reverse("retrieval_api:search"), asked, is_json=True)
            if leak := look_for_leaks(world, person, "retrieval_api:search", call):
                yield leak


def assert_the_rule_is_that_of_the_site(world: World) -> None:
    """Who may read what is told twice, here and by the site: both agree, whatever was changed."""
    for person in PEOPLE:
        user = User.objects.get(username=person)
        readable = {shelf.secret for shelf in world.shelves if world.may_read(person, shelf)}
        seen = set(Document.objects.readable_by(user).values_list("source", flat=True))
        shelved = {f"{shelf.secret}.md" for shelf in world.shelves}
        assert {f"{word}.md" for word in readable} == seen & shelved
        assert (f"{world.narrowed_words[0]}.md" in seen) == world.may_read_narrowed(person)


def test_nobody_reads_what_they_may_not_see(ingest: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CHAT_DEBUG_FOR_EVERYONE = True
    settings.METRICS_PUBLIC = True
    monkeypatch.setattr("retrieval.api.throttling.CountedTogether.allow_request", lambda *_arguments: True)
    world = build_world(SEED, ingest)
    begin_draft(world.shelves[4])
    people = [*PEOPLE, VISITOR]
    # Everybody has asked everything once, so that there is something to find.
    for person in people:
        for _ in range(2):
            send(world, person, asking("chat_api:ask")(world, person))
    learn(world)
    # The pages that the admin makes by itself are many, and alike.
    names = [*sorted(ALL_RULES), *sorted(RULES) * 4]
    leaks = [*search_for_misspelt_words(world, people)]
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


def walk(world: World, person: str, addresses: Sequence[str] = ()) -> dict[str, str]:
    """What the person reads at the addresses and where links lead to, at most two pages of each kind; by address."""
    read: dict[str, str] = {}
    kinds: Counter[str] = Counter()
    waiting = deque(["/", "/accounts/", *addresses])
    while waiting and len(read) < MOST_PAGES + len(addresses):
        address = waiting.popleft()
        kind = resolve(urlsplit(address).path).view_name
        if address in read or (address not in addresses and kinds[kind] >= 2):
            continue
        kinds[kind] += 1
        read[address] = content_of(world.clients[person].get(address))
        links = re.findall(r'\b(?:href|hx-get)="([^"]+)"', read[address])
        found = (urljoin(address, unescape(link)).partition("#")[0] for link in links)
        # Help is the same for everybody.
        waiting.extend(link for link in found if re.match(r"/(?!accounts/logout/|admin/logout/|static/|help/|/)", link))
    return read


def test_no_page_that_a_link_leads_to_tells_what_is_closed(ingest: Any) -> None:
    world = build_world(SEED, ingest)
    people = ["bob", "dora"]
    for person in people:
        send(world, person, Call("post", "/api/v1/ask/", {"question": QUESTIONS[0]}, is_json=True))
    visited: list[str] = []
    leaks, told = [], set()
    for _ in range(2):
        for person in people:
            # What the others were led to is read, too.
            pages = walk(world, person, visited)
            visited += [address for address in pages if address not in visited]
            hidden = {word for words in world.hidden_from(person) for word in words}
            leaks += [(person, address) for address, said in pages.items() for word in hidden if word in said]
            told |= {word for said in pages.values() for word in world.secrets if word in said}
        for _ in range(10):
            world.change_a_right()
    assert leaks == []
    assert len(told) > len(world.secrets) / 2
    assert {"chat:conversation", "retrieval:document", "account_overview", "admin:retrieval_document_change"} <= {
        resolve(urlsplit(address).path).view_name for address in visited
    }
