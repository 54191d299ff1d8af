"""A program of a Procfile that is a module of Python: it writes its name to a file that its environment names."""

import os
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    Path(os.environ["ADDED"]).write_text(sys.argv[0])
    time.sleep(1000)
