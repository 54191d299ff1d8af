"""A site of people and collections with a rule of its own for rights: who may see which word.

Each part with its own readers has words that occur only there: a collection, a narrowed document, and a document with
readers by source.
"""

import random
from dataclasses import dataclass, field

from allauth.account.models import EmailAddress
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone

from chat.curation import approval
from chat.models import Answer, ApprovedAnswer, Conversation
from evaluation.models import EvaluationQuestion, EvaluationRun, EvaluationSet, ExpectedPassage, GatePolicy, Judgement
from retrieval.models import (
    Chunk,
    Collection,
    CollectionGrant,
    Document,
    PushedItem,
    SearchProfile,
    Source,
    SourceItem,
    SourceRun,
)
from retrieval.search.profiles import profiles
from retrieval.sources.protocol import ItemReaders, RemoteItem
from retrieval.sources.taking_readers import ReadersBySource

GROUPS = ("sales", "care", "law")
# Name: groups, and whether it is staff, with all permissions.
PEOPLE = {
    "anna": (("sales",), False),
    "bob": (("sales", "care"), False),
    "carol": (("care",), False),
    "dora": (("law",), True),
    "erik": (("care", "law"), True),
    "fred": ((), False),
}
VISITOR = "visitor"
VISIBILITIES = ("public", "signed_in", "staff", "granted")
QUESTIONS = (
    "What is the code of the boiler house?",
    "Which code opens the boiler house?",
    "Who keeps the key of the boiler house?",
    "What does the sheet say about the boiler house?",
)
TEXT = """# Sheet {secret}

The code of the boiler house is {secret}. The key of the boiler house is kept by {spoken}.

## Winter

In winter, whoever knows {secret} heats the boiler house twice a day.
"""


@dataclass(slots=True)
class Shelf:
    """A collection. ``grants`` are the roles of groups and of people, by name."""

    collection: Collection
    secret: str
    spoken: str
    visibility: str = "granted"
    grants: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class World:
    """No one types ``secret`` words; ``spoken`` words are typed, and ``said`` has their speakers."""

    chance: random.Random
    shelves: list[Shelf]
    narrowed: Document
    # None: it is not narrowed.
    narrowed_to: set[str] | None
    narrowed_words: tuple[str, str]
    # The source of this document says who may read it: ``followed_by`` are their names, or None for all readers.
    followed: SourceItem
    followed_by: set[str] | None
    followed_words: tuple[str, str]
    members: dict[str, set[str]]
    clients: dict[str, Client]
    tokens: list[str] = field(default_factory=list)
    said: set[tuple[str, str]] = field(default_factory=set)
    # This person makes the next request.
    person: str = VISITOR

    # Rights, computed without the site's own code -----------------------------------------------------------------

    def is_staff(self, person):
        return person in PEOPLE and PEOPLE[person][1]

    def roles(self, person, shelf):
        return {shelf.grants[name] for name in {person, *self.members.get(person, ())} if name in shelf.grants}

    def may_read(self, person, shelf):
        open_to = {"public": True, "signed_in": person != VISITOR, "staff": self.is_staff(person), "granted": False}
        return open_to[shelf.visibility] or (person != VISITOR and bool(self.roles(person, shelf)))

    def may_read_narrowed(self, person):
        return self._is_admitted(person, self.narrowed_to)

    def may_read_followed(self, person):
        return self._is_admitted(person, self.followed_by)

    def _is_admitted(self, person, named):
        shelf = self.shelves[0]
        curates = bool(self.roles(person, shelf) & {"curator", "manager"})
        curates |= self.is_staff(person) and shelf.visibility != "granted"
        names = self.members.get(person, set()) | {_mail_of(person)}
        is_named = named is None or bool(names & named)
        return self.may_read(person, shelf) and (curates or is_named)

    def hidden_from(self, person):
        """Return the words, secret and spoken, that must not be in a response to this person now."""
        words = [(shelf.secret, shelf.spoken) for shelf in self.shelves if not self.may_read(person, shelf)]
        words += [] if self.may_read_narrowed(person) else [self.narrowed_words]
        return words + ([] if self.may_read_followed(person) else [self.followed_words])

    # Changes --------------------------------------------------------------------------------------------------------

    def change_a_right(self):
        self.chance.choice([self._move, self._open, self._grant, self._narrow, self._follow])()

    def _move(self):
        person, group = self.chance.choice(list(PEOPLE)), self.chance.choice(GROUPS)
        self.members[person] ^= {group}
        User.objects.get(username=person).groups.set(Group.objects.filter(name__in=self.members[person]))

    def _open(self):
        shelf = self.chance.choice(self.shelves)
        shelf.visibility = self.chance.choice(VISIBILITIES)
        Collection.objects.filter(pk=shelf.collection.pk).update(visibility=shelf.visibility)

    def _grant(self):
        shelf, name = self.chance.choice(self.shelves), self.chance.choice([*GROUPS, *PEOPLE])
        holder = (
            {"group": Group.objects.get(name=name)} if name in GROUPS else {"user": User.objects.get(username=name)}
        )
        CollectionGrant.objects.filter(collection=shelf.collection, **holder).delete()
        shelf.grants.pop(name, None)
        if self.chance.random() < 0.5:
            shelf.grants[name] = self.chance.choice(["reader", "curator", "manager"])
            CollectionGrant.objects.create(collection=shelf.collection, role=shelf.grants[name], **holder)

    def _narrow(self):
        names = [*GROUPS, *map(_mail_of, PEOPLE)]
        self.narrowed_to = set(self.chance.sample(names, self.chance.randint(0, 2)))
        if self.chance.random() < 0.2:
            self.narrowed_to = None
        metadata = {} if self.narrowed_to is None else {"groups": sorted(self.narrowed_to)}
        Document.objects.filter(pk=self.narrowed.pk).update(metadata=metadata)

    def _follow(self):
        """Let a run find other readers at the source, and the same content."""
        people = self.chance.sample([*PEOPLE], self.chance.randint(0, 2))
        groups = self.chance.sample(GROUPS, self.chance.randint(0, 1))
        readers = ItemReaders(tuple(groups), tuple(f"{name}@example.org" for name in people))
        self.followed_by = {*groups, *map(_mail_of, people)}
        if self.chance.random() < 0.2:
            self.followed_by, readers = None, ItemReaders(is_everybody=True)
        follow(self.followed, readers)

    # Questions ------------------------------------------------------------------------------------------------------

    def question(self, person, collection=""):
        """Return one of the questions, sometimes with a misspelt secret word, or with a spoken word.

        The person may read the spoken word's collection, and searches it: an answer then rests on it.
        """
        secret = self.chance.choice(self.secrets)
        match self.chance.randint(0, 5):
            case 0:
                searched = [shelf for shelf in self.shelves if collection in ("", shelf.collection.slug)]
                readable = [shelf for shelf in searched if self.may_read(person, shelf)]
                if readable:
                    spoken = self.chance.choice(readable).spoken
                    self.said.add((person, spoken))
                    return f"What does {spoken} keep?"
            case 1:
                return f"What is {misspelt(secret)}?"
            case 2:
                return f"What is {secret[:-2]}x{secret[-1]} in winter?"
        return self.chance.choice(QUESTIONS)

    @property
    def secrets(self):
        return [*(shelf.secret for shelf in self.shelves), self.narrowed_words[0], self.followed_words[0]]

    def scope(self):
        """Return the short name of a collection, or "" for all."""
        return self.chance.choice(["", "", self.slug()])

    def slug(self):
        return self.chance.choice([shelf.collection.slug for shelf in self.shelves])

    def some(self, model):
        """Return the key of a random row of the model, or of a missing one if there are none."""
        keys = list(model.objects.order_by("pk").values_list("pk", flat=True))
        return self.chance.choice(keys) if keys else 10**6

    def some_answer(self):
        return self._own_or_other(Answer.objects.order_by("created_at"), "conversation__owner")

    def some_conversation(self):
        return self._own_or_other(Conversation.objects.order_by("created_at"), "owner")

    def _own_or_other(self, rows, owner):
        own = rows.filter(**{f"{owner}__username": self.person} if self.person != VISITOR else {owner: None})
        chosen = own if own.exists() and self.chance.random() < 0.7 else rows
        return self.chance.choice(list(chosen.values_list("pk", flat=True)))


def _mail_of(person):
    return f"mail:{person}@example.org"


def misspelt(word):
    """Return the word without one of its letters, near enough to be corrected."""
    return word[:4] + word[5:]


def build_world(seed, ingest):
    chance = random.Random(seed)
    for name in GROUPS:
        Group.objects.create(name=name)
    clients = {VISITOR: Client(raise_request_exception=False)}
    clients[VISITOR].session.save()
    for name, (groups, is_staff) in PEOPLE.items():
        user = User.objects.create_user(name, is_staff=is_staff)
        user.groups.set(Group.objects.filter(name__in=groups))
        EmailAddress.objects.create(user=user, email=f"{name}@example.org", verified=True)
        if is_staff:
            user.user_permissions.set(Permission.objects.all())
        clients[name] = Client(raise_request_exception=False)
        clients[name].force_login(user)
    shelves = [
        _build_shelf(name, visibility, words, ingest)
        for name, visibility, words in zip(_SHELVES, _OPEN, _WORDS, strict=True)
    ]
    # No question asks about these, so that the other words are rare enough to be searched for.
    for plant in ("rose", "tulip", "daisy", "lily", "fern", "moss", "ivy", "oak", "elm", "ash", "yew", "fir", "box"):
        ingest(shelves[0].collection, f"{plant}.md", f"# Garden: {plant}\n\nThe {plant} grows well with much water.")
    secret, spoken = _NARROWED
    narrowed = ingest(
        shelves[0].collection, f"{secret}.md", TEXT.format(secret=secret, spoken=spoken), metadata={"groups": ["sales"]}
    )
    sent_to = Source.objects.create(collection=shelves[0].collection, name="Sent", kind="push")
    _note_push(sent_to, narrowed)
    followed = _build_followed(shelves[0].collection, ingest)
    profiles.add_version(SearchProfile.objects.create(slug="shop", name="Shop"), profiles.get_built_in_profile())
    world = World(
        chance=chance,
        shelves=shelves,
        narrowed=narrowed,
        narrowed_to={"sales"},
        narrowed_words=_NARROWED,
        followed=followed,
        followed_by={"care"},
        followed_words=_FOLLOWED,
        members={name: set(groups) for name, (groups, _staff) in PEOPLE.items()},
        clients=clients,
    )
    for shelf, name, role in (
        (3, "sales", "reader"),
        (4, "care", "reader"),
        (4, "erik", "curator"),
        (5, "carol", "manager"),
    ):
        holder = (
            {"group": Group.objects.get(name=name)} if name in GROUPS else {"user": User.objects.get(username=name)}
        )
        CollectionGrant.objects.create(collection=shelves[shelf].collection, role=role, **holder)
        shelves[shelf].grants[name] = role
    return world


_SHELVES = ("square", "hall", "office", "shop", "ward", "vault")
_PUSHED = ("hall", "ward")
_OPEN = ("public", "signed_in", "staff", "granted", "granted", "granted")
_WORDS = (
    ("zalvorquim", "yelbrantix"),
    ("wubriphant", "vexolmarde"),
    ("tirquenaby", "skolvetrun"),
    ("quibrandol", "plomvexira"),
    ("oxtrabulim", "nerquolade"),
    ("moxivantel", "lurbqueden"),
)
_NARROWED = ("kubrelvoth", "jaxorimble")
_FOLLOWED = ("dwenquilbar", "frostumvile")


def _build_shelf(name, visibility, words, ingest):
    secret, spoken = words
    collection = Collection.objects.create(slug=name, name=f"Shelf {secret}", visibility=visibility)
    document = ingest(collection, f"{secret}.md", TEXT.format(secret=secret, spoken=spoken))
    chunk = Chunk.objects.filter(document=document).order_by("ordinal")[0]
    Chunk.objects.filter(document=document).update(canonical_questions=[f"What is {secret} of the boiler house for?"])
    evaluation_set = EvaluationSet.objects.create(slug=f"set-{name}", name=f"Set of {name}", collection=collection)
    question = EvaluationQuestion.objects.create(
        evaluation_set=evaluation_set, text=f"What is {secret}?", expected_answer=secret
    )
    ExpectedPassage.objects.create(
        question=question, source=document.source, quote=secret, content_hash=chunk.content_hash
    )
    GatePolicy.objects.create(evaluation_set=evaluation_set, metric="ndcg@10", required_for_publishing=True)
    approved = ApprovedAnswer(
        question=f"What is the {spoken} approved for?", text=f"{secret} [1]", collection=collection
    )
    approval.approve_answer(approved, None)
    approval.save_sources(approved, [(1, chunk)])
    approval.save_wordings(approved, [])
    EvaluationRun.objects.create(evaluation_set=evaluation_set, profile_name="built-in", settings={})
    kind = "push" if name in _PUSHED else "folder"
    source = Source.objects.create(
        collection=collection, name=f"Source of {secret}", kind=kind, options={"path": f"/srv/{secret}"}
    )
    if kind == "push":
        _note_push(source, document)
    named = [f"{secret}.md", *([f"{_NARROWED[0]}.md"] if name == _SHELVES[0] else [])]
    SourceRun.objects.create(source=source, status="done", details={"added": named})
    Document.objects.filter(pk=document.pk).update(origin=source)
    return Shelf(collection, secret, spoken, visibility)


def _build_followed(collection, ingest):
    """Return an item whose source names its readers, with an approved answer, questions and a run that names it."""
    secret, spoken = _FOLLOWED
    document = ingest(collection, f"{secret}.md", TEXT.format(secret=secret, spoken=spoken))
    chunk = Chunk.objects.filter(document=document).order_by("ordinal")[0]
    Chunk.objects.filter(document=document).update(canonical_questions=[f"What is {secret} of the boiler house for?"])
    source = Source.objects.create(
        collection=collection, name="Wiki", kind="confluence", options={"takes_readers": True}
    )
    Document.objects.filter(pk=document.pk).update(origin=source)
    item = SourceItem.objects.create(source=source, key="1", name=document.source, outcome="added")
    follow(item, ItemReaders(groups=("care",)))
    SourceRun.objects.create(source=source, status="done", details={"added": [document.source]})
    approved = ApprovedAnswer(
        question=f"What is the {spoken} approved for?", text=f"{secret} [1]", collection=collection
    )
    approval.approve_answer(approved, None)
    approval.save_sources(approved, [(1, chunk)])
    approval.save_wordings(approved, [])
    return item


def follow(item, readers):
    """Do what a run does that finds these readers."""
    taken = ReadersBySource(item.source, {})
    names = taken.find_readers(RemoteItem("1", "page", readers=readers), item)
    taken.change_readers(item, Document.objects.get(origin=item.source), item.source.metadata, names)
    item.save()


def _note_push(source, document):
    """Store what a program's request would have stored."""
    Document.objects.filter(pk=document.pk).update(origin=source)
    PushedItem.objects.create(
        source=source,
        external_id=f"sent-{document.pk}",
        name=document.source,
        content_hash=document.content_hash,
        readers=document.metadata.get("groups"),
        result=PushedItem.Result.ADDED,
        sent_at=timezone.now(),
    )


def judge(answer):
    """Store a judgement without a judge."""
    Judgement.objects.get_or_create(answer=answer, judge=Judgement.Judge.OFFLINE)


def begin_draft(shelf):
    from retrieval.documents.drafts import lifecycle

    draft = lifecycle.begin_draft(shelf.collection)
    lifecycle.resume_draft(draft.pk)
    return draft
