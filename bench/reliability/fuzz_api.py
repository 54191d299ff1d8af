"""Test the API against its own schema with schemathesis, with and without a key.

make fuzz-api, or .venv/bin/python -m bench.reliability.fuzz_api --schemathesis PATH [--examples 50] [--seed 1]

The check `positive_data_acceptance` is left out: it fails when the API refuses a valid request for an object that does
not exist.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from bench.reliability.running_site import SiteFailed, running_site
from bench.reporting import format_markdown_table

LONGEST_SECONDS = 1800.0
_GENERATED = re.compile(r"(\d+) generated")
_FAILURES = re.compile(r"❌ (ST\d+ [^:\n]+): (\d+)")


def fuzz(schemathesis: Path, url: str, key: str, examples: int, seed: int) -> tuple[int, dict[str, int], str]:
    """Return the number of requests, the failures by kind, and the output. Raises: SiteFailed if it did not finish."""
    command = [str(schemathesis), "run", f"{url}/api/schema/", "--checks", "all", "--continue-on-failure"]
    command += ["--exclude-checks", "positive_data_acceptance", "--max-examples", str(examples), "--seed", str(seed)]
    command += ["--phases", "examples,coverage,fuzzing,stateful", "--suppress-health-check", "all", "--warnings", "off"]
    command += ["--request-timeout", "60"]
    if key:
        command += ["--header", f"Authorization: Token {key}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False)
    generated = _GENERATED.search(done.stdout)
    if generated is None:
        raise SiteFailed(f"schemathesis did not finish: {(done.stdout + done.stderr)[-2000:]}")
    return int(generated[1]), {kind: int(number) for kind, number in _FAILURES.findall(done.stdout)}, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemathesis", type=Path, required=True, help="Its program; it has an environment apart.")
    parser.add_argument("--examples", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=8234)
    given = parser.parse_args()
    rows, failed = [], False
    with running_site(given.port) as site:
        token = site.administrators_key()
        for name, key in (("no key", ""), ("an administrator's key", token)):
            requests, failures, output = fuzz(given.schemathesis, site.url, key, given.examples, given.seed)
            failed = failed or bool(failures)
            told = ", ".join(f"{number} x {kind}" for kind, number in failures.items())
            rows.append([name, requests, sum(failures.values()), told or "-"])
            if failures:
                print(output, file=sys.stderr)
    print(format_markdown_table(["caller", "requests", "failures", "kinds"], rows))
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
