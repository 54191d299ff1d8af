"""compose.yaml has no password: a service makes one at the first start, and keeps it."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

COMPOSE = Path(__file__).parents[2] / "compose.yaml"


@pytest.fixture
def services():
    return yaml.safe_load(COMPOSE.read_text())["services"]


def make(services, folder, password=""):
    """Run the service's script in ``folder``, with the accounts of this machine."""
    script = services["secrets"]["command"][-1].replace("$$", "$").replace("cd /secrets", f"cd {folder}")
    script = script.replace("chown postgres", "chown $(id -u)").replace("chown 10001", "chown $(id -u)")
    subprocess.run(["sh", "-euc", script], env={"PATH": "/bin:/usr/bin", "POSTGRES_PASSWORD": password}, check=True)
    written = (folder / "postgres").read_text()
    assert (folder / "site").read_text() == f"*:*:*:*:{written}\n"
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == {"postgres": 0o600, "site": 0o600}
    return written


def test_no_password_is_in_the_file(services):
    assert not re.search(r"PASSWORD[A-Z_]*: +[^$/\s]|PASSWORD:-[^}]|//\w+:[^@/]+@", COMPOSE.read_text())
    site = services["web"]["environment"]
    assert "password" not in conninfo_to_dict(site["DATABASE_URL"])
    for name in ("web", "worker", "scheduler", "migrate"):
        environment = services[name]["environment"]
        assert (environment["PGPASSFILE"], environment["DATABASE_URL"]) == ("/secrets/site", site["DATABASE_URL"])
        assert "secrets:/secrets:ro" in services[name]["volumes"]
    assert services["postgres"]["environment"]["POSTGRES_PASSWORD_FILE"] == "/secrets/postgres"
    assert services["postgres"]["depends_on"] == {"secrets": {"condition": "service_completed_successfully"}}


def test_one_is_made_once_and_one_that_is_set_counts(services, tmp_path):
    made = make(services, tmp_path)
    assert re.fullmatch("[0-9a-f]{48}", made)
    assert make(services, tmp_path) == made
    assert make(services, tmp_path, "ofBefore1") == "ofBefore1"
    assert make(services, tmp_path) == "ofBefore1"
    other = tmp_path.with_name("other")
    other.mkdir()
    assert make(services, other) != made
