"""Tests on a real language model: `make test-model`."""
