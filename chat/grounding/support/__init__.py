"""Whether the sentences of an answer are borne out by the passages they rest on. PURE; the embedder is handed in.

`claims` says what of a sentence can be checked, `passages` holds what it is checked against, `features` what was found
and missed, `scoring` what that is worth, and `scorer` puts them together.
"""
