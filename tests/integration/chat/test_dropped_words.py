"""Words that PostgreSQL's parser drops or joins: symbols, languages without blanks, versions, codes and measures."""

import unicodedata

import pytest

from retrieval.index import embedder_choice
from retrieval.index.embedders.e5 import find_weights
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search
from retrieval.types import SearchMethod
from tests.support.asking import answered
from tests.support.libraries import library_of, remembered

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = {
    "panel.md": """# Panel

When the panel shows 🚨 close valve V3 at once.

When the panel shows 🟢 the line may be started.

When the panel shows ⚠️ call the foreman.
""",
    "firmware.md": "# Firmware\n\nFirmware v2.10.3 repairs the timer.\n\nFirmware v2.11.0 repairs the clock.\n",
    "screens.md": "# Screens\n\nThe screen in the hall has 1920 × 1080 dots. That at the door has 1280x720 dots.\n",
    "norms.md": "# Norms\n\nThe kitchen is certified by ISO 22000. The foundry is certified by ISO-9001.\n",
    "cable.md": "# Cables\n\nA plug for 16 A needs a cable of 2.5 mm.\n",
    "kantoor.md": "# Verlof\n\nWerknemers hebben 25 dagen verlof. Een café is er niet.\n",
    "urlaub.md": "# Urlaub\n\nDie Angestellten haben dreißig Tage Urlaub im Jahr.\n",
    "rules.md": """# 就業規則

在宅勤務は週三日まで認められます。有給休暇は年間十日です。出張費は月末に精算してください。
""",
    "leave.md": "# 员工手册\n\n员工每年享有十五天带薪年假。加班费按月支付。办公室六点关门。\n",
    "korea.md": "# 사규\n\n재택근무는 주 이틀까지 가능합니다. 연차휴가는 연간 십오일입니다. 점심은 무료입니다.\n",
}


library = library_of(TEXTS)


def first_by_words(question):
    hits = search(question, build_unrestricted_filters(), method=SearchMethod.LEXICAL).hits
    return hits[0].passage.source if hits else ""


@pytest.mark.parametrize(
    ("question", "source"),
    [
        ("🟢", "panel.md"),
        ("⚠", "panel.md"),
        ("café", "kantoor.md"),
        (unicodedata.normalize("NFD", '"café"'), "kantoor.md"),
        ("2.10.3", "firmware.md"),
        ("V 2.10.3", "firmware.md"),
        ("1920x1080", "screens.md"),
        ("1280 × 720", "screens.md"),
        ("ISO22000", "norms.md"),
        ("iso 9001", "norms.md"),
        ("2.5mm", "cable.md"),
        ("有給休暇", "rules.md"),
        ("年假有几天", "leave.md"),
        ("연차휴가", "korea.md"),
    ],
)
def test_search_by_words_finds_what_the_parser_drops_or_joins(library, question, source):
    assert first_by_words(question) == source


@pytest.mark.skipif(not find_weights(), reason="The weights come for Linux on x86-64 only.")
@pytest.mark.parametrize(
    ("question", "quoted", "other"),
    [
        ("What to do when the panel shows 🟢?", "When the panel shows 🟢 the line may be started.", "🚨"),
        ("What does firmware 2.10.3 repair?", "Firmware v2.10.3 repairs the timer.", "v2.11.0"),
        ("有給休暇は何日ですか", "有給休暇は年間十日です。", "在宅勤務"),
        ("带薪年假有几天？", "员工每年享有十五天带薪年假。", "加班费"),
        ("연차휴가는 며칠입니까?", "연차휴가는 연간 십오일입니다.", "재택근무"),
    ],
)
def test_the_right_line_is_quoted(library_of_a_new_site, question, quoted, other):
    answer = answered(question)
    assert not answer.refused
    citation = answer.citations.get()
    assert quoted in answer.text
    assert citation.quote == quoted
    assert other not in citation.quote


@pytest.fixture
def _new_site(settings):
    """Use the embedder of a site whose settings name none."""
    settings.EMBEDDER = {}
    embedder_choice._build_site_embedder.cache_clear()
    yield
    embedder_choice._build_site_embedder.cache_clear()


@pytest.fixture
@remembered
def library_of_a_new_site(_new_site, collection, ingest):
    for name, text in TEXTS.items():
        ingest(collection, name, text)
