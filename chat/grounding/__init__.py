"""Answers and their sources: whether the sources answer a question, and whether they bear an answer out.

``evidence`` is weighed before an answer, ``support`` after it, by ``verification``. Of an answer's text are
``citations`` and ``code_spans``.
"""
