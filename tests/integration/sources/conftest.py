import pytest


@pytest.fixture(autouse=True)
def _may_be_read(tmp_path, settings):
    """What the servers of these tests need."""
    settings.SOURCE_FOLDERS = [tmp_path]
    settings.SOURCE_PRIVATE_HOSTS = ["127.0.0.1"]
    settings.SOURCE_TIMEOUT_SECONDS = 5
