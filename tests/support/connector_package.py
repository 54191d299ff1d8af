"""A wheel with `fake_connector` as its console script, which pip installs without a network."""

import zipfile
from pathlib import Path

from tests.support import fake_connector

_NAME = "airbyte_source_fake-1.0"


def make_wheel(folder):
    """Write the wheel, and return the variables by which pip finds it alone."""
    info = f"{_NAME}.dist-info"
    files = {
        "airbyte_source_fake.py": Path(fake_connector.__file__).read_text(),
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: airbyte-source-fake\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\nsource-fake = airbyte_source_fake:main\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{_NAME}-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}
