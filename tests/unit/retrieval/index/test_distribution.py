"""Statements for Citus, which most runs of the tests lack: `make test-citus` runs them."""

import ast
import re
from pathlib import Path

from retrieval.index import distribution

# These are arguments of Citus's functions. A rename in Python must not change them.
NAMED_ARGUMENTS = {"colocate_with", "give_warning_for_connection_errors", "shard_count"}


def test_arguments_have_the_names_that_citus_gave_them():
    texts = [
        node.value
        for node in ast.walk(ast.parse(Path(distribution.__file__).read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert {name for text in texts for name in re.findall(r"(\w+) => ", text)} == NAMED_ARGUMENTS
