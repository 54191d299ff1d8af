"""A program of a Procfile that is a module of Python."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    print(Path(sys.argv[0]).name, os.environ["ADDED"], flush=True)
    time.sleep(1000)
