"""Grade the sheets of a class: a table of points, and a text for each student.

python notebooks/grade_class.py FOLDER --sheet 04                  # writes grades.csv and feedback/ into FOLDER/graded
python notebooks/grade_class.py FOLDER --sheet 04 --out grades.csv --jobs 4

FOLDER has a notebook for each student: the sheet that ``make sheets`` wrote, filled in.  The checks are those of the
lecture here, not those of the notebook.  They run in one process, and what the student wrote in another, which answers
with numbers and arrays alone (``apart.py``).  That process has limits of time, memory and files, and, where the system
allows it, no network, no other processes to see, and no file that it can change.  A proof is left for you to read.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from apart import Lost, Peer, Raised, words
from prepare import NOTEBOOKS
from sheets import EXERCISE, Lecture, asked, groups, is_solution, lectures, names, points, read, sheet

LARGEST = 4 << 20  # bytes of a notebook that is handed in
CELLS = 400
SETUP = 600.0  # seconds for the cells of the lecture, which may compile


# --- what is handed in ----------------------------------------------------------------------------------------------


class Refused(Exception):
    """Why a file is not graded."""


def handed_in(path: Path, known: set[str]) -> list[tuple[int, str]]:
    """The cells that a student wrote, each with the number of its exercise; those of the sheet are left out."""
    if path.is_symlink() or not path.is_file():
        raise Refused("it is not an ordinary file")
    with open(path, "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Refused(f"it is larger than {LARGEST >> 20} MB: clear the outputs of its cells")
    try:
        cells = [(cell["cell_type"], cell["source"]) for cell in json.loads(data)["cells"]]
        cells = [(kind, "".join(source)) for kind, source in cells]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Refused("it is no Jupyter notebook") from None
    if len(cells) > CELLS:
        raise Refused(f"it has more than {CELLS} cells")
    found, number = [], 0
    for kind, source in cells:
        heading = re.search(rf"^{EXERCISE}(\d{{1,2}})\b", source, re.MULTILINE)
        if kind == "markdown" and heading:
            number = int(heading[1])
        elif kind == "code" and source.strip() and source.strip() not in known:
            found.append((number, re.sub(r"(?m)^\s*[%!].*$", "", source)))  # no lines for Jupyter or the shell
    return found


# --- the student's process ------------------------------------------------------------------------------------------

WAYS = {  # from the most that a system may allow to what every system has
    "no network, no other processes, and files that cannot be changed (bubblewrap)": (
        *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", "{folder}", "{folder}"),
        *("--unshare-all", "--die-with-parent", "--new-session"),
    ),
    "no network and no other processes (unshare); files of yours could be changed, bubblewrap would prevent it": (
        *("unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"),
    ),
    "a NETWORK, and files of yours could be changed: neither bwrap nor unshare works here": (),
}


def way() -> str:
    """How far a process can be shut off here."""
    for said, command in WAYS.items():
        tried = [part.format(folder=tempfile.gettempdir()) for part in command]
        if not command or (
            shutil.which(command[0]) and subprocess.run([*tried, "true"], capture_output=True).returncode == 0
        ):
            return said
    raise AssertionError


def processes() -> int:
    """How many processes and threads this user has."""
    found = 0
    for folder in Path("/proc").glob("[0-9]*/task"):
        try:
            found += len(os.listdir(folder)) if folder.stat().st_uid == os.getuid() else 0
        except OSError:  # it has ended
            pass
    return found


@contextmanager
def student(how: str, folder: Path, limits: Limits) -> Iterator[Clock]:
    """A process for what a student wrote, and the line to it; it is ended with all that it started."""
    mine, theirs = socket.socketpair()
    command = [part.format(folder=folder) for part in WAYS[how]]
    command += [sys.executable, str(NOTEBOOKS / "apart.py"), str(theirs.fileno()), str(limits.seconds)]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"THEORY_CACHE": str(folder / "cache"), "TMPDIR": str(folder), "HOME": str(folder)},
        pass_fds=(theirs.fileno(),),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # what it prints is of no interest, however much it is
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    theirs.close()
    try:
        yield Clock(Connection(mine.detach()))
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


class Clock:
    """The line to a student's process, with a time for each answer."""

    def __init__(self, connection: Connection):
        self.end = 0.0
        self.peer = Peer(connection, trusting=False, wait=lambda: self.end - time.monotonic())

    def ask(self, seconds: float, method: str, *arguments: Any) -> Any:
        self.end = time.monotonic() + seconds
        return self.peer.call(0, method, arguments, {})


# --- one student ----------------------------------------------------------------------------------------------------


class Limits(NamedTuple):
    """Of one student's process: seconds of a cell or a call, and of a check; megabytes beside what the lecture has.

    After ``grace`` more seconds without an answer the process is ended.
    """

    seconds: float = 20.0
    check: float = 300.0
    megabytes: int = 1024
    grace: float = 10.0


class Sheet(NamedTuple):
    """The cells before the exercises, and the exercises: solution and checks."""

    setup: list[str]
    exercises: list[tuple[str, Any, list]]
    known: set[str]


def sheet_of(lecture: Lecture) -> Sheet:
    """What is graded of a lecture."""
    found = [
        (heading, cells[0], [c for c in cells[1:] if not is_solution(c)])
        for heading, cells in groups(lecture.exercises)
    ]
    blank = [cell.source for cell in sheet(lecture, solutions=False).cells if cell.cell_type == "code"]
    own = sum(len(checks) + 1 for _, _, checks in found)
    return Sheet(blank[: len(blank) - own], found, {source.strip() for source in blank})


def said_of(error: BaseException, returned_none: set[str]) -> str:
    """Why a check did not pass, for the student."""
    unsaid = [] if "returned None" in str(error) else sorted(returned_none)
    none = "".join(f"; the function {name} returned None: is `return` missing?" for name in unsaid)
    if isinstance(error, NameError):
        return f"{error.name} is not defined{none}"
    if isinstance(error, AssertionError):
        return f"{error}{none}"
    if isinstance(error, (Raised, Lost)):
        return f"what you wrote failed: {error}{none}"
    return f"the check fails with {type(error).__name__}: {words(error)}{none}"


class Result(NamedTuple):
    """Of an exercise: whether the check passes, and what it said."""

    passed: bool
    said: str


def graded(given: Sheet, cells: list[tuple[int, str]], how: str, folder: Path, limits: Limits) -> list[Result]:
    """The results of one student, in the order of the exercises."""
    space: dict[str, Any] = {"__name__": "__main__"}
    results: list[Result] = []
    for source in given.setup:
        exec(source, space)  # noqa: S102
    with student(how, folder, limits) as clock:
        lost = ""
        try:
            clock.ask(SETUP, "prepare", given.setup)
            clock.ask(limits.seconds + limits.grace, "limit", limits.megabytes << 20, processes() + 64)
        except (Lost, Raised) as error:
            raise RuntimeError(f"the lecture's cells do not run in the student's process: {error}") from error
        for number, (_, solution, checks) in enumerate(given.exercises, 1):
            # what stands below no heading runs first; what stands below another's, with that one
            mine = [
                source
                for n, source in cells
                if n == number or (number == 1 and n not in range(1, len(given.exercises) + 1))
            ]
            wrong, wanted = [], asked(solution, checks)
            for name in wanted:
                space.pop(name, None)
            clock.peer.without.clear()
            try:
                if lost:
                    raise Lost(lost)
                wrong = [text for text in clock.ask(limits.seconds * len(mine) + limits.grace, "run", mine) if text]
                found = clock.ask(limits.grace, "give", wanted)
                if not isinstance(found, dict):
                    raise Raised("its process has sent what is no answer")
                space.update({name: found[name] for name in wanted if name in found})
                clock.end = time.monotonic() + limits.check
                for check in checks:
                    checked(check.source, space)
                results.append(Result(True, "passed"))
            except BaseException as error:
                if isinstance(error, Lost):
                    lost = str(error)
                told = said_of(error, clock.peer.without)
                results.append(Result(False, "\n".join([told, *(f"a cell of yours fails: {text}" for text in wrong)])))
            if not lost and (later := later_needs(given, number, cells)):
                clock.ask(limits.check, "run", later)
    return results


def later_needs(given: Sheet, number: int, cells: list[tuple[int, str]]) -> list[str]:
    """The checks of an exercise, if what the student wrote for later ones uses their names: imports, for example."""
    used: set[str] = set()
    for n, source in cells:
        try:
            used |= names(source).needs if n > number else set()
        except SyntaxError:
            pass
    checks = [check.source for check in given.exercises[number - 1][2]]
    return checks if any(names(source).sets & used for source in checks) else []


def checked(source: str, space: dict[str, Any]) -> None:
    """Run a check; its error states the expected and the actual value."""
    from theory.plots.notebook import ExplainAsserts

    tree = ast.fix_missing_locations(ExplainAsserts().visit(ast.parse(source)))
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        exec(compile(tree, "<a check>", "exec"), space)  # noqa: S102


def one(job: dict) -> None:
    """Grade one notebook, in this process; the result goes into a file."""
    given = sheet_of(read(lectures(job["sheet"])[0]))
    warnings.simplefilter("ignore")
    try:
        cells = solved(given) if job["path"] is None else handed_in(Path(job["path"]), given.known)
        found = graded(given, cells, job["how"], Path(job["folder"]), Limits(*job["limits"]))
        made: dict = {"results": found}
    except Refused as error:
        made = {"refused": str(error)}
    Path(job["result"]).write_text(json.dumps(made), encoding="utf-8")


def solved(given: Sheet) -> list[tuple[int, str]]:
    """The lecture's own solutions, as a student would hand them in."""
    return [(number, solution.source) for number, (_, solution, _) in enumerate(given.exercises, 1)]


# --- the class ------------------------------------------------------------------------------------------------------


def grade(path: Path | None, number: str, how: str, limits: Limits, cache: Path) -> dict:
    """The results of a notebook, or of the lecture's solutions; or why there are none."""
    with tempfile.TemporaryDirectory(prefix="graded-") as place:
        folder = Path(place).resolve() / "student"
        folder.mkdir(0o700)
        if path is None:
            (folder / "cache").mkdir(0o700)
        else:  # its own, so that nobody compiles for another
            shutil.copytree(cache, folder / "cache")
        job = dict(path=path and str(path.absolute()), sheet=number, how=how, limits=limits, folder=str(folder))
        job["result"] = str(folder.parent / "result.json")
        process = subprocess.Popen(
            [sys.executable, str(NOTEBOOKS / "grade_class.py"), "--one", json.dumps(job)],
            cwd=folder.parent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _, error = process.communicate(timeout=2 * SETUP + 10 * limits.check)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"refused": "grading did not end"}
        if not Path(job["result"]).exists():
            last = error.decode(errors="replace").strip().splitlines()[-1:]
            return {"refused": f"grading failed: {words(' '.join(last))}"}
        if path is None:
            shutil.copytree(folder / "cache", cache, dirs_exist_ok=True)
        return json.loads(Path(job["result"]).read_text(encoding="utf-8"))


def feedback(name: str, lecture: Lecture, made: dict, by_hand: set[str]) -> str:
    """The text for a student."""
    lines = [f"{name}: lecture {int(lecture.path.name[:2])}, {lecture.title}", ""]
    if "refused" in made:
        return "\n".join([*lines, f"Not graded: {made['refused']}.", ""])
    results = iter(made["results"])
    for one in points(lecture):
        lines.append(f"{one.name.capitalize()}, {one.heading}")
        if one.checked:
            passed, said = next(results)
            got = "read by hand" if one.name in by_hand else f"{one.checked if passed else 0} of {one.checked} points"
            lines += [f"    {line}" for line in (got, *said.splitlines())]
        lines += [f"    the proof is read by hand: {one.proof} points"] if one.proof else []
        lines.append("")
    return "\n".join(lines)


def row(name: str, lecture: Lecture, made: dict, by_hand: set[str]) -> dict[str, Any]:
    """The line of a student in the table: what is read by hand is left empty."""
    found: dict[str, Any] = {"student": f"'{name}" if name[0] in "=+-@" else name}  # no formula of a spreadsheet
    results = iter(made.get("results", ()))
    for one in points(lecture):
        if one.checked:
            passed, _ = next(results, (False, ""))
            found[one.name] = "" if one.name in by_hand else one.checked * passed
        if one.proof:
            found[f"{one.name}, proof"] = ""
    total = sum(number for number in found.values() if isinstance(number, int))
    return found | {"points": total, "remark": made.get("refused", "")}


def main(*arguments: str) -> int:
    """Grade a class; 1 if the lecture's own solutions do not pass."""
    if arguments[:1] == ("--one",):
        one(json.loads(arguments[1]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the notebooks that were handed in")
    parser.add_argument("--sheet", required=True, help="the lecture, 04 for example")
    parser.add_argument("--out", type=Path, help="the table (FOLDER/graded/grades.csv); feedback/ is written beside it")
    parser.add_argument("--jobs", type=int, default=1, help="students at once")
    parser.add_argument("--seconds", type=float, default=Limits().seconds, help="for a cell or a call of a function")
    parser.add_argument("--megabytes", type=int, default=Limits().megabytes, help="of memory")
    given = parser.parse_args(arguments)
    if not given.sheet.isdecimal() or not lectures(given.sheet):
        parser.error(f"--sheet: got {given.sheet}, allowed: {', '.join(path.name[:2] for path in lectures())}")
    if not given.folder.is_dir():
        parser.error(f"folder: got {given.folder}, allowed: a folder with notebooks")
    out = given.out or given.folder / "graded" / "grades.csv"
    paths = [path for path in sorted(given.folder.rglob("*.ipynb")) if ".ipynb_checkpoints" not in path.parts]
    lecture, how = read(lectures(given.sheet)[0]), way()
    limits = Limits(given.seconds, megabytes=given.megabytes)
    print(f"{len(paths)} notebooks; each runs with {how}", flush=True)
    print("the lecture's own solutions are graded first, which compiles what they need", flush=True)
    with tempfile.TemporaryDirectory(prefix="graded-") as place:
        cache = Path(place) / "cache"
        right = grade(None, given.sheet, how, limits, cache)
        if "refused" in right:
            print(f"FAILED: {right['refused']}", flush=True)
            return 1
        by_hand, rows = set(), []
        for k, (passed, why) in enumerate(right["results"], 1):
            if not passed:  # what cannot be graded from another process is not graded
                by_hand.add(f"exercise {k}")
                print(f"exercise {k} is left to you, as its solution does not pass here: {why}", flush=True)
        (out.parent / "feedback").mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(max(1, given.jobs)) as pool:
            for path, made in zip(
                paths, pool.map(lambda p: grade(p, given.sheet, how, limits, cache), paths), strict=True
            ):
                name = "-".join(path.relative_to(given.folder).with_suffix("").parts)
                rows.append(row(name, lecture, made, by_hand))
                text = feedback(name, lecture, made, by_hand)
                (out.parent / "feedback" / f"{name}.txt").write_text(text, encoding="utf-8")
                print(f"{name}: {rows[-1]['points']} points {rows[-1]['remark']}", flush=True)
    with open(out, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(row("-", lecture, {}, by_hand)))
        table.writeheader()
        table.writerows(rows)
    print(out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
