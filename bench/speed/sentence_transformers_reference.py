"""all-MiniLM-L6-v2 as sentence-transformers runs it with PyTorch; started by `benchmark_ingestion`, in an environment
that has both.

For each line of JSON, a list of texts, it writes one with the wall-clock and the processor seconds that encoding them
took, and the first vector.
"""

from __future__ import annotations

import json
import os
import sys
import time

MOST_TOKENS = 256


def main(model_dir: str, threads: int) -> None:
    # Only here: the site's own environment has neither.
    import torch  # type: ignore[import-not-found]
    from sentence_transformers import SentenceTransformer  # type: ignore[import-not-found]

    torch.set_num_threads(threads)
    model = SentenceTransformer(model_dir, device="cpu")
    model.max_seq_length = MOST_TOKENS
    model.encode(["A text that is not counted."])
    # What libraries print must not come between the lines.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        texts = json.loads(line)
        started, worked = time.perf_counter(), time.process_time()
        vectors = model.encode(texts, batch_size=32, normalize_embeddings=True, show_progress_bar=False)
        taken = [time.perf_counter() - started, time.process_time() - worked]
        answers.write(json.dumps([*taken, [float(number) for number in vectors[0]]]) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
