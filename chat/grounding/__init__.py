"""Answers and their sources: whether the sources answer a question, and whether they bear an answer out.

Each module imports only those named after it. Before an answer: weighing, answerability, relevance, blocks, words.
After it: verification, support, similarity, passages, assertions, blocks, words. Of an answer's text: citations,
code_spans.
"""
