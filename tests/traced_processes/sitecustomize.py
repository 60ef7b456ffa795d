"""On the path of processes that a test starts while ``pytest --keep`` notes what is executed."""

import os
import sys
from pathlib import Path

if os.environ.get("THEORY_TRACE"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from kept_tests import trace_this_process

    trace_this_process()
