"""``python -m theory.experiment`` on a rank that says at its end how much memory it held at most."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path


def peak() -> float:
    """MB of memory that this process held at most, files that are mapped and shared with other ranks included."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the launcher held before it became this process
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text()).group(1)) * 1.024e-3  # KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1e-6 if sys.platform == "darwin" else 1.024e-3)


if __name__ == "__main__":
    from theory.experiment.__main__ import leave  # which sets what the command sets before NumPy is loaded
    from theory.experiment.cli import main

    code = main()
    sys.stdout.write(f"\npeak {peak():.1f} MB\n")
    sys.stdout.flush()
    leave(code)
