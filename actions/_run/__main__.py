"""`python -I actions/_run COMMAND`: what the composite actions call. A folder, because `-I` hides a script's own."""

import sys

from sealpipe_action.run import main

sys.exit(main(sys.argv[1]))
