"""The naive way with a file: python large.py FILE."""

import sys
from pathlib import Path

from naive import share

print(share("FILE", Path(sys.argv[1]).read_text(), "multiline"))
