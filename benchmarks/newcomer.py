"""How long somebody new waits: a clean clone with an empty compile cache does what README.md and docs/start.md say.

python3 benchmarks/newcomer.py               # everything, with the installation; below 15 minutes
python3 benchmarks/newcomer.py --list        # only what would be done, and what is left out and why
python3 benchmarks/newcomer.py --lectures 1  # fewer lectures

It fails if all together take more than 15 minutes, or if something of ours says nothing for more than 8 seconds.
It needs git, make and Python, and for the installation a network.  What is committed is cloned, not what is edited.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/start.md")
LIMIT = 15 * 60
SILENCE = 8.0  # seconds without a line, of what is ours, that are too long
NOT_OURS = (  # whose silences are not counted: what in the name, and why
    ("git clone", "git's"),
    ("lecture", "a notebook shows a bar in its cell"),
)
LEFT_OUT = (  # commands of the pages that are not run: what in them, and why
    (r"path/to|my_\w+\.py|<record>", "a file of one's own"),
    (r"^make (docs|test)|--html", "takes minutes by nature, and no reader waits for it"),
    (r"^python3 -m venv|pip install|mpirun|^uv ", "the same without make"),
    (r"^make sheets$", "all sheets; some are made below"),
    (r"^make slides", "executes a lecture, which is timed by itself"),
)
CHANGED = ((r"^make lectures.*", 'make lectures ARGS="--version"'),)  # installs and prepares, and opens no browser
EXECUTE = """
import sys, nbformat, nbclient
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=1200, kernel_name="python3").execute()
"""


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a page in one language, without what a test has inserted twice."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def plan(lectures: list[int]) -> tuple[list[tuple[str, list[str]]], list[tuple[str, str]]]:
    """Names and commands in their order, and what is left out with the reason."""
    todo: dict[str, list[str]] = {}
    left_out = []
    python = ".venv/bin/python"
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for line in "\n".join(blocks(text, "sh")).splitlines():
            command = line.split("  #")[0].strip()
            reason = next((why for what, why in LEFT_OUT if re.search(what, command)), None)
            if reason:
                left_out.append((command, reason))
                continue
            for what, instead in CHANGED:
                command = re.sub(what, instead, command)
            if command:
                todo.setdefault(command, ["sh", "-c", command])
        for number, block in enumerate(blocks(text, "python"), 1):
            if [python, "-c", block] not in todo.values():
                todo[f"{page}, Python {number}"] = [python, "-c", block]
    for number in lectures:
        (path,) = (ROOT / "notebooks").glob(f"{number:02d}-*.md")
        todo[f"lecture {number}"] = [python, "-c", EXECUTE, f"lectures/{path.stem}.ipynb"]
    return list(todo.items()), left_out


def watched(command: list[str], **how: Any) -> tuple[int, str, float, str]:
    """Run a command: its exit code, what it printed, its longest silence in seconds, and the line before that."""
    lines: list[str] = []
    longest, before, last = 0.0, "the start", time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how) as process:
        for line in itertools.chain(process.stdout or (), [""]):  # "": the end
            now = time.perf_counter()
            if now - last > longest:
                longest, before = now - last, lines[-1].strip() if lines else "the start"
            lines.append(line)
            last = now
    return process.returncode, "".join(lines), longest, before


def main() -> int:
    """Run it and print a line for each step; 1 if a step fails or is silent for long, or all take too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="only say what would be done")
    parser.add_argument("--lectures", type=int, nargs="*", default=[1, 2, 3, 4])
    arguments = parser.parse_args()
    todo, left_out = plan(arguments.lectures)
    for command, reason in left_out:
        print(f"left out: {command}  ({reason})")
    if arguments.list:
        for name, _ in todo:
            print(name)
        return 0
    total, failed = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        clone, cache = Path(folder) / "theory", Path(folder) / "cache"
        hidden = ("THEORY_", "PYTHON", "MAKE", "MFLAGS", "VIRTUAL_ENV")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
        environment |= {"THEORY_CACHE": str(cache), "PYTHONUNBUFFERED": "1"}  # a pipe shows lines when they are said
        todo.insert(0, ("git clone", ["git", "clone", "--quiet", str(ROOT), str(clone)]))
        for name, steps in todo:
            begin = time.perf_counter()
            where = clone if clone.exists() else None
            code, said, silence, before = watched(steps, cwd=where, env=environment)
            seconds = time.perf_counter() - begin
            silent = silence > SILENCE and not any(what in name for what, _ in NOT_OURS)
            total, failed = total + seconds, failed + (code != 0 or silent)
            print(f"{seconds:7.1f} s  {name}{'' if code == 0 else '  FAILED'}", flush=True)
            if silent:
                print(f"           SILENT for {silence:.1f} s, more than {SILENCE:g}, after: {before}", flush=True)
            if code:
                print(said[-4500:], flush=True)
    print(f"{total:7.1f} s  in all, of {LIMIT} allowed")
    return int(bool(failed) or total > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
