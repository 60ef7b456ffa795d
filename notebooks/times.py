"""How long each lecture runs: measured, and written into the table of notebooks/README.md.

python notebooks/times.py             # all lectures
python notebooks/times.py 10 11 12    # these three; the other rows stay
python notebooks/times.py 06 --cells  # and which of its cells take longest

Each lecture runs twice in a fresh folder: first with an empty compile cache, then with what the first run left there.
Beside the seconds stand the seconds of processor time, kernel and ranks included: on a machine that does other things,
too, they say more.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from sheets import NOTEBOOKS, lectures

INDEX = NOTEBOOKS / "README.md"
RUN = """
import sys, jupytext, nbclient
from datetime import datetime
notebook = jupytext.read(sys.argv[1])
nbclient.NotebookClient(notebook, timeout=1200, kernel_name="python3").execute()
for cell in notebook.cells if sys.argv[2:] else ():
    times = cell.metadata.get("execution", {})
    ends = [times.get(name) for name in ("iopub.execute_input", "shell.execute_reply")]
    if all(ends):
        begin, end = (datetime.fromisoformat(text.replace("Z", "+00:00")) for text in ends)
        if (end - begin).total_seconds() > 1:
            print(f"{(end - begin).total_seconds():8.1f} s  {cell.source.strip().splitlines()[0][:90]}", flush=True)
"""


class Taken(NamedTuple):
    """Seconds by the clock, and seconds of processor time."""

    seconds: float
    cpu: float

    def __str__(self):
        return f"{self.seconds:.0f} s ({self.cpu:.0f} s)"


def run(lecture: Path, cache: Path, *options: str) -> Taken:
    """Run all cells of a lecture; an error in one of them is an error here."""
    environment = os.environ | {"THEORY_CACHE": str(cache), "PYTHONPATH": f"{NOTEBOOKS.parent}"}
    environment["PYTHONDONTWRITEBYTECODE"] = ""  # as a user's Python has it
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        child = subprocess.Popen([sys.executable, "-c", RUN, lecture, *options], cwd=folder, env=environment)
        _, status, usage = os.wait4(child.pid, 0)  # with the kernel, for which the child has waited
        child.returncode = os.waitstatus_to_exitcode(status)
        taken = Taken(time.perf_counter() - begin, usage.ru_utime + usage.ru_stime)
    if child.returncode:
        raise SystemExit(f"{lecture.name} failed, see above; its times were not written")
    return taken


def record(text: str, lecture: Path, first: Taken, again: Taken) -> str:
    """The index with the last two cells of the lecture's row replaced."""
    row = re.compile(rf"^(\|.*\]\({re.escape(lecture.name)}\).*\|)[^|\n]*\|[^|\n]*\|$", re.MULTILINE)
    if not row.search(text):
        raise SystemExit(f"{INDEX.name} has no row for {lecture.name}")
    return row.sub(lambda found: f"{found[1]} {first} | {again} |", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", help="lectures, 04 for example; all of them if none is named")
    parser.add_argument("--cells", action="store_true", help="say which cells take more than a second, in both runs")
    arguments = parser.parse_args()
    for path in lectures(*arguments.numbers):
        with tempfile.TemporaryDirectory() as cache:
            first, again = (run(path, Path(cache), *["--cells"] * arguments.cells) for _ in range(2))
        print(f"{path.stem:<45} first {first}, again {again}", flush=True)
        INDEX.write_text(record(INDEX.read_text(encoding="utf-8"), path, first, again), encoding="utf-8")
