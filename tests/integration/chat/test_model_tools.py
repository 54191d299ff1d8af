"""A language model that asks the documents' tables by a function call, over real HTTP."""

import asyncio
import json
import logging
import threading
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser, User
from django.test import Client
from django.utils import timezone

from chat.answering import model_trial
from chat.answering.tool_calls import LONGEST_ARGUMENTS, MOST_CALLS
from chat.api.completion_chunks import stream_chunks
from chat.api.completion_responses import ChatCompletion
from chat.debugging.panel import build_panel
from chat.models import ModelTrial
from chat.streaming import asking, readers
from chat.tasks import try_model
from retrieval.models import Document
from tests.support.asking import ask
from tests.support.libraries import library_of, remembered
from tests.support.model_server import call_pieces

pytestmark = pytest.mark.django_db(transaction=True)

PUMP = "# MX-9920-W\n\nThe MX-9920-W is a wet-rotor pump for heating. It may carry glycol."
PARTS = """sku,name,category,weight_g,price_eur
MX-9920-W,Wet pump 9920,pump,3450,418.50
HX-2200,Hand pump,pump,1640,96.00
BV-100,Ball valve,valve,210,12.40
GV-200,Gate valve,valve,640,48.00
"""
# The table has more rows than the sources can contain.
PARTS += "".join(f"MX-{number},Heating pump {number},pump,{number},{number}.50\n" for number in range(3000, 3040))
QUESTION = "May the MX-9920-W carry glycol?"
HEAVY = '{"question": "How heavy is the GV-200?"}'


library = library_of({"pump.md": PUMP})


@pytest.fixture
@remembered
def parts(library, ingest):
    return ingest(library, "parts.csv", PARTS)


@pytest.fixture
def model(db, model):
    model.pieces = ["It may carry glycol [1]."]
    ModelTrial.objects.create(model=f"tiny at {model.url}", uses_functions=True, tried_at=timezone.now())
    return model


class Cites(list[str]):
    """The model's last words, with the last marker that it was given."""

    def __init__(self, model, text):
        super().__init__()
        self._model, self._text = model, text

    def __iter__(self):
        told = self._model.requests[-1]["messages"][-1]["content"]
        marker = told[told.index("sources [") :].split("]")[0].rpartition("[")[2]
        return iter([self._text, f" [{marker}", "]."])


def told(model):
    """Return the results of the model's calls."""
    return [each["content"] for each in model.requests[-1]["messages"] if each["role"] == "tool"]


async def test_a_row_that_the_model_asks_for_is_a_source_and_cited(parts, model):
    model.rounds = [call_pieces(HEAVY)]
    model.pieces = Cites(model, "The Gate valve GV-200 has weight_g: 640")
    model.usage = {"prompt_tokens": 100, "completion_tokens": 10}
    answer, events = await ask(QUESTION)
    names = [event.name for event in events]
    assert names[0] == "searched"
    assert names[-1] == "completed"
    (again,) = [at for at, name in enumerate(names) if name == "searched" and at]
    assert again < names.index("token")
    first, second = events[0].payload["sources"], events[again].payload["sources"]
    assert second[: len(first)] == first
    (row,) = second[len(first) :]
    assert "GV-200" in row["content"]
    assert answer.sources == second
    (citation,) = events[-1].payload["citations"]
    assert (citation["marker"], citation["document"]["id"]) == (row["marker"], parts.pk)
    assert "640" in citation["quote"]
    assert (answer.text, answer.notice) == (f"The Gate valve GV-200 has weight_g: 640 [{row['marker']}].", "")
    assert (answer.usage["prompt_tokens"], answer.usage["completion_tokens"]) == (200, 20)
    # The call is sent back as it was, the result is quoted as documents are, and room is left for the second answer.
    asked, result = model.requests[1]["messages"][2:]
    assert json.loads(asked["tool_calls"][0]["function"]["arguments"]) == json.loads(HEAVY)
    assert result["tool_call_id"] == asked["tool_calls"][0]["id"]
    assert result["content"].startswith("Computed by this site over all rows of the table")
    assert "> The weight of GV-200 is 640 g" in result["content"]
    assert model.requests[1]["max_tokens"] == model.requests[0]["max_tokens"] - 10
    assert "Parts: sku, name, category, weight_g, price_eur\n" in model.requests[0]["messages"][1]["content"]
    call = answer.trace["prompt"]["calls"][0]
    assert (call["arguments"], call["document_id"]) == (HEAVY, parts.pk)
    # Clients of OpenAI's protocol get the row too, streamed and whole.
    completion = ChatCompletion("id", 0, "ragsite", QUESTION, "")
    sent = [piece async for piece in stream_chunks(answer.pk, AnonymousUser(), completion, include_usage=False)]
    passages = json.loads(sent[-2].removeprefix(b"data: "))["passages"]
    assert [each["content"] for each in passages[:1]] == [each["content"] for each in second[-1:]]


async def test_the_debug_panel_tells_what_the_model_asked_and_to_whom_it_may(parts, model):
    nothing = '{"question": "Who won the cup?"}'
    model.rounds = [[*call_pieces(HEAVY), *call_pieces(nothing, index=1)]]
    answer, _ = await ask(QUESTION)
    boss = await User.objects.acreate_superuser("boss")
    panel = await sync_to_async(build_panel)(answer, boss)
    assert [(call.arguments, call.document_id) for call in panel.trace.prompt.calls] == [
        (HEAVY, parts.pk),
        (nothing, None),
    ]
    client = Client()
    await sync_to_async(client.force_login)(boss)
    page = (await sync_to_async(client.get)(f"/answers/{answer.pk}/debug/")).content.decode()
    assert "How heavy is the GV-200?" in page
    assert "640 g" in page
    assert "nothing was computed" in page
    # A user who may not read the table does not get a result computed over it.
    await Document.objects.filter(pk=parts.pk).aupdate(metadata={"groups": ["staff-only"]})
    panel = await sync_to_async(build_panel)(answer, AnonymousUser())
    assert [call.told for call in panel.trace.prompt.calls][0] == ""


async def test_without_tables_no_function_is_offered(library, model, ingest):
    await ask(QUESTION)
    await sync_to_async(ingest)(library, "parts.csv", PARTS)
    await ask(QUESTION)
    assert ["tools" in request for request in model.requests] == [False, True]


async def test_tables_that_the_asker_may_not_read_are_not_there(parts, model, library, ingest):
    # Another table is readable, so that the function is offered.
    await sync_to_async(ingest)(library, "towns.csv", "town,inhabitants\nUrk,21000\nEde,120000\nOss,93000\n")
    await Document.objects.filter(pk=parts.pk).aupdate(metadata={"groups": ["staff-only"]})
    model.rounds = [call_pieces(HEAVY)]
    answer, events = await ask(QUESTION)
    assert told(model) == ["No table answers this with confidence: nothing was computed."]
    assert "weight_g" not in json.dumps(model.requests)
    assert [event.name for event in events].count("searched") == 1
    assert parts.pk not in [source["document"]["id"] for source in answer.sources]


async def test_a_reader_who_loses_the_right_to_a_row_gets_no_word_of_it(parts, model):
    asked, narrowed = threading.Event(), threading.Event()

    class Waiting(Cites):
        """Goes on when the right to the row, which was computed meanwhile, is lost."""

        def __iter__(self):
            asked.set()
            assert narrowed.wait(60)
            return super().__iter__()

    model.rounds, model.pieces = [call_pieces(HEAVY)], Waiting(model, "It weighs 640 g")
    owner = await User.objects.acreate_user("owner")
    begun = await sync_to_async(asking.create_answer)(QUESTION, user=owner, visitor="")
    seen = []
    async for event in readers.follow_as_reader(begun.pk, owner):
        seen.append(event)
        if event.name == "searched":
            assert await asyncio.to_thread(asked.wait, 60)
            await Document.objects.filter(pk=parts.pk).aupdate(metadata={"groups": ["staff-only"]})
            readers._RIGHTS.clear()
            narrowed.set()
    assert [event.name for event in seen] == ["searched", "failed"]
    assert seen[-1].payload["withheld"]


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (call_pieces('{"question": "How hea'), "must be a JSON object"),
        (call_pieces('["How heavy is it?"]'), "must be a JSON object"),
        (call_pieces('{"question": "' + "x" * LONGEST_ARGUMENTS + '"}', size=500), "too long"),
        (call_pieces(HEAVY, name="rm -rf"), "no such function"),
        (call_pieces('{"question": "Who won the \\ud800 \x00 cup?"}'), "nothing was computed"),
    ],
)
async def test_a_call_that_cannot_be_run_is_told_to_the_model(parts, model, pieces, said):
    model.rounds, model.preamble = [pieces], "Let me look."
    answer, _ = await ask(QUESTION)
    assert said in told(model)[0]
    assert (answer.text, answer.generator) == ("Let me look.\n\nIt may carry glycol [1].", "tiny")
    # Some servers fail over what their own model wrote.
    (sent,) = model.requests[-1]["messages"][2]["tool_calls"]
    assert isinstance(json.loads(sent["function"]["arguments"]), dict)
    assert sent["function"]["name"] in ("ask_tables", "unknown")
    assert said in answer.trace["prompt"]["calls"][0]["told"]


async def test_calls_at_once_are_told_apart_and_bounded(parts, model):
    light = '{"question": "What is the price of the BV-100?"}'
    mixed = [piece for both in zip(call_pieces(HEAVY), call_pieces(light, index=1), strict=False) for piece in both]
    mixed += call_pieces(HEAVY)[len(mixed) // 2 :] + call_pieces(light, index=1)[len(mixed) // 2 :]
    model.rounds = [mixed]
    answer, _ = await ask(QUESTION)
    assert ["tools" in request for request in model.requests] == [True, False]
    results = told(model)
    assert len(results) == 2
    assert "640 g" in results[0]
    assert "12.40" in results[1]
    assert answer.text == "It may carry glycol [1]."
    # Ollama sends whole calls under one index.
    model.rounds = [
        [
            {"index": 0, "id": f"id-{number}", "function": {"name": "ask_tables", "arguments": HEAVY}}
            for number in range(MOST_CALLS + 2)
        ]
    ]
    answer, _ = await ask("May the pump MX-9920-W carry glycol?")
    assert len(told(model)) == MOST_CALLS
    assert all("640 g" in each for each in told(model))
    # A row that is asked for again is the source that it was.
    assert len([source for source in answer.sources if "GV-200" in source["content"]]) == 1


@pytest.mark.parametrize(
    ("status", "sentence"),
    [(400, '"auto" tool choice requires --enable-auto-tool-choice'), (500, "tools param requires --jinja flag")],
)
async def test_a_server_that_knows_no_functions_is_asked_without_and_remembered(parts, model, caplog, status, sentence):
    model.statuses, model.said = [status], sentence
    with caplog.at_level(logging.WARNING):
        answer, _ = await ask(QUESTION)
    assert answer.generator == "tiny"
    await ask("May the pump MX-9920-W carry glycol?")
    assert ["tools" in request for request in model.requests] == [True, False, False]
    assert "without tools from now on" in caplog.text


async def test_a_model_that_declines_after_a_call_is_answered_by_the_passage(parts, model):
    model.rounds, model.preamble, model.pieces = [call_pieces(HEAVY)], "Let me look.", ["NO_", "ANSWER"]
    answer, _ = await ask(QUESTION)
    assert (answer.refused, answer.generator) == (False, "extractive")
    assert "Let me look" not in answer.text


async def test_a_model_that_nobody_tried_is_offered_nothing_and_tried_once(parts, model, monkeypatch):
    trials = []
    monkeypatch.setattr(
        model_trial.current_app, "send_task", lambda *sent: trials.append(sent) if "try" in sent[0] else None
    )
    await ModelTrial.objects.all().adelete()
    await ask(QUESTION)
    await ask("May the pump MX-9920-W carry glycol?")
    assert ["tools" in request for request in model.requests] == [False, False]
    assert trials == [("chat.tasks.try_model", ["tiny"])]
    # Its worker was killed.
    await ModelTrial.objects.all().aupdate(tried_at=timezone.now() - timedelta(hours=1))
    await ask("May it carry glycol, the MX-9920-W?")
    assert len(trials) == 2


@pytest.mark.parametrize(
    ("rounds", "pieces", "passes"),
    [
        ([call_pieces('{"question": "How many pumps weigh more than 2 kg?"}')], ["17 pumps; it opens at 9."], True),
        # Never calls; calls with nonsense; calls where the source answers.
        ([], ["17 pumps; it opens at 9."], False),
        ([call_pieces('{"q": 1}')], ["17 pumps; it opens at 9."], False),
        ([call_pieces('{"question": "How many pumps?"}'), [], call_pieces('{"question": "When?"}')], ["17, 9."], False),
        # Writes its call as the answer.
        ([], ['{"name": "ask_tables", "arguments": {"question": "How many pumps?"}}'], False),
    ],
)
def test_the_trial_of_a_model(model, rounds, pieces, passes):
    model.rounds, model.pieces = rounds, pieces
    try_model("tiny")
    assert ModelTrial.objects.get().uses_functions is passes


def test_a_server_that_does_not_answer_leaves_no_trial(model):
    model.statuses = [500] * 9
    try_model("tiny")
    assert not ModelTrial.objects.exists()
