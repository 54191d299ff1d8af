"""Other libraries beside this site, on the same folder and questions: see :mod:`bench.beside.compare`."""
