"""`python -I actions/_run COMMAND`: the program of the composite actions. A folder, because `-I` hides a script's own.

It needs only the standard library: `sealpipe.ci_systems`, which it shares with the command line, is imported from this
checkout, whatever sealpipe is installed, and imports nothing else.
"""

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "core"))

from sealpipe_action.main import main

sys.exit(main(sys.argv[1]))
