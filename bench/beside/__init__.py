"""Comparison of this site with other libraries, on the same folder and questions; see :mod:`bench.beside.compare`."""
