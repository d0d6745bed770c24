"""Fill in a collect link of the rehearsal service: COLLECT_LINK, and ANSWERS as JSON of prompt to
value.
"""

import json
import os

from sealpipe_rehearsal.people import Submitter

Submitter().submit(os.environ["COLLECT_LINK"], json.loads(os.environ["ANSWERS"]))
