"""The site's settings as another process would read them."""

import importlib
import sys

import pytest

import ragsite


def fresh_settings(**environment):
    """Return the settings of a process that starts with these variables. Raises: ImproperlyConfigured."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        # The patch restores them afterwards.
        patch.setattr(ragsite, "settings", None)
        for module in [name for name in sys.modules if name.startswith("ragsite.settings")]:
            patch.delitem(sys.modules, module)
        return importlib.import_module("ragsite.settings")
