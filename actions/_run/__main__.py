"""The program of the composite actions: `python -I actions/_run COMMAND`.

It is a folder, because `-I` removes a script's own folder from the path. It needs only the standard
library. It imports `sealpipe.ci_systems` and `sealpipe.ci_commands`, which it shares with the
command line, from this checkout, whichever sealpipe is installed; these modules import nothing
else.
"""

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "core"))

from sealpipe_action.main import main

sys.exit(main(sys.argv[1]))
