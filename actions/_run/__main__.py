"""`python -I actions/_run COMMAND`: what the composite actions call. A folder, because `-I` hides a script's own.

The standard library's is all that it needs: `sealpipe.ci_systems` and `sealpipe.ci_systems`, which it shares with the
command line, come from this checkout, whatever sealpipe is installed, and import nothing else.
"""

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "core"))

from sealpipe_action.run import main

sys.exit(main(sys.argv[1]))
