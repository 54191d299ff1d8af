"""No module imports itself by way of others, inside functions and for type checking included.

import-linter's contract `acyclic_siblings` compares whole packages, which is stricter: `retrieval.models` may import
`core.jobs`, whose sweep looks at the models.
"""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

from ragsite.settings import BASE_DIR


def test_no_module_imports_itself(monkeypatch):
    monkeypatch.syspath_prepend(str(BASE_DIR))
    graph = grimp.build_graph("bench", "ragsite", "evaluation", "chat", "retrieval", "core", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))
