import pytest


@pytest.fixture(autouse=True)
def _may_be_read(tmp_path, settings):
    """Let the site read the servers of these tests."""
    settings.SOURCE_FOLDERS = [tmp_path]
    settings.SOURCE_PRIVATE_HOSTS = ["127.0.0.1"]
    settings.SOURCE_CONNECTORS = True
    settings.SOURCE_TIMEOUT_SECONDS = 5
