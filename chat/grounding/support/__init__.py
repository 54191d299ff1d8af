"""How far the sources bear out the sentences of an answer."""
