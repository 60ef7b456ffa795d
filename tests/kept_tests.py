"""Tests that are run again only when something changed: those marked ``kept``, for tests that take long.

``pytest --keep`` runs those that changed, each in a process of its own, and notes in ``tests/kept.jsonl`` what was
executed for it, with a digest.  While the digest is the same, the test is not run but for one in ten, drawn from the
commit's name, and pytest's summary says so.  It is run if there is another version of what it is measured with, if a
Python process that it started did not tell what it executed, or if its line was edited.  Not seen are other programs,
files outside the checkout, and where an import leads; the one in ten, and ``--afresh``, which runs all, are for these.
"""

from __future__ import annotations

import faulthandler
import fcntl
import functools
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "tests" / "kept.jsonl"
FOLDER = "THEORY_TRACE"  # processes that a test starts write there what they executed
START = ROOT / "tests" / "traced_processes"  # on the path of a process it makes it do so
SHARE = 10  # one in so many is run although nothing changed


@functools.cache
def commit() -> str:
    """Name of the commit; of a folder that is none, an empty string."""
    try:
        answer = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:  # there is no git
        return ""
    return answer.stdout.strip()


def drawn(name: str) -> bool:
    """Whether a test or claim is measured again although nothing changed: one in ten, others at another commit."""
    return int(hashlib.sha256(f"{commit()} {name}".encode()).hexdigest(), 16) % SHARE == 0


def checksum(entry: dict) -> str:
    """Of what a line says."""
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()[:12]


def read(path: Path = FILE) -> dict[str, dict]:
    """The tests that are kept, by name; lines that were edited are left out."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            entry = json.loads(line)
            if entry.pop("checksum") == checksum(entry):
                found[entry["test"]] = entry
        except (ValueError, KeyError, AttributeError):
            continue  # it is run
    return found


def unchanged(entry: dict | None, sources) -> bool:
    """Whether all that was executed for a test is what it was."""
    from theory.experiment.kept_evidence import same_software

    return bool(entry and same_software(entry["versions"]) and sources.digest(entry["executed"]) == entry["digest"])


# --- pytest -----------------------------------------------------------------------------------------------------------


def pytest_addoption(parser):
    group = parser.getgroup("kept", "tests that are run again only when something changed")
    group.addoption("--keep", action="store_true", help="run tests marked `kept` and note what was executed for them")
    group.addoption("--share", default="1/1", metavar="K/N", help="with --keep, every N-th test from the K-th on")
    group.addoption("--afresh", action="store_true", help="run and measure everything, whatever was kept")


def pytest_collection_modifyitems(config, items):
    """Decide which are run; the same on every worker."""
    from theory.reporting.dependencies import Sources

    marked, known, sources = [i for i in items if i.get_closest_marker("kept")], read(), Sources(ROOT)
    afresh, keep = config.getoption("--afresh"), config.getoption("--keep")
    same = {item for item in marked if not afresh and unchanged(known.get(item.nodeid), sources)}
    if keep:
        if hasattr(config, "workerinput"):
            raise pytest.UsageError(
                "--keep: got several processes, allowed: -n 0, as each test runs in a forked process"
            )
        number, of = map(int, config.getoption("--share").split("/"))
        wanted = set([item for item in marked if item not in same][number - 1 :: of])
        config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
        items[:] = [item for item in items if item in wanted]
    for item in same if not keep else ():
        if not drawn(item.nodeid):
            reason = f"unchanged: kept evidence of {known[item.nodeid]['commit'][:10]}"
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_report_header(config):
    return f"kept tests and claims: one in {SHARE} is run although nothing changed, drawn from commit {commit()[:10]}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """With ``--keep``, run a test in a forked process, which nothing was executed in before."""
    if not item.config.getoption("--keep"):
        return None
    there, here = os.pipe()
    faulthandler.cancel_dump_traceback_later()  # its thread would be missing in the fork, which then waits for it
    process = os.fork()
    if process == 0:
        os.close(there)
        _child(item, here)
    os.close(here)
    with os.fdopen(there, "rb") as file:
        answer = file.read().decode()
    os.waitpid(process, 0)
    try:
        found = json.loads(answer)
    except ValueError:
        raise RuntimeError(f"{item.nodeid}: {answer or 'its process was ended from outside'}") from None
    reports = [item.config.hook.pytest_report_from_serializable(config=item.config, data=one) for one in found["runs"]]
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    passed = all(report.passed for report in reports)
    _note(item.nodeid, found["entry"] if passed else None)
    return True


def _note(name: str, entry: dict | None) -> None:
    """Write what a test depends on; of a test that did not pass, nothing stays."""
    from theory.reporting.files import write_whole

    with open(__file__, encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # `make keep` has a process for each core
        known = {test: one for test, one in read().items() if test != name} | ({name: entry} if entry else {})
        lines = (
            json.dumps(one | {"checksum": checksum(one)}, separators=(",", ":")) for _, one in sorted(known.items())
        )
        write_whole(FILE, "".join(f"{line}\n" for line in lines))


def _child(item, pipe: int) -> None:
    try:
        answer = json.dumps(_traced(item))
    except BaseException:
        answer = traceback.format_exc()
    with os.fdopen(pipe, "wb") as file:
        file.write(answer.encode())
    os._exit(0)


def _traced(item) -> dict:
    from _pytest.runner import runtestprotocol

    from theory.data import load
    from theory.experiment.kept_evidence import software
    from theory.reporting.dependencies import Sources
    from theory.reporting.tracing import merged, traced

    load.load_entry = lambda name: None  # stored data would hide what made them
    sources = Sources(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER] = folder
        os.environ["PYTHONPATH"] = os.pathsep.join([str(START), str(ROOT)])
        sys.addaudithook(_watch)
        with traced() as trace:
            reports = runtestprotocol(item, log=False, nextitem=None)
        others, whole = processes(Path(folder))
    executed = merged(one.executed(sources) for one in (trace, *others))
    own = sources.node_at(Path(item.path).relative_to(ROOT).as_posix(), item.function.__code__.co_firstlineno)
    executed = merged([executed, {own.file: [own.name]}])
    entry = {"test": item.nodeid, "commit": commit(), "versions": software(), "executed": executed}
    entry["digest"] = sources.digest(executed) if whole else ""
    runs = [item.config.hook.pytest_report_to_serializable(config=item.config, report=one) for one in reports]
    return {"runs": runs, "entry": entry if entry["digest"] else None}


def tells(command, variables) -> bool:
    """Whether Python, started so, imports our ``sitecustomize`` and no other."""
    folders = map(Path, str(variables.get("PYTHONPATH", "")).split(os.pathsep))
    first = next((one for one in folders if any(one.glob("sitecustomize*"))), None)
    ignored = {"-I", "-E", "-S"} & set(command if isinstance(command, (list, tuple)) else ())
    return bool(variables.get(FOLDER)) and first == START and not ignored


def _watch(event: str, arguments: tuple) -> None:
    """A process that will not tell what it executes begins and never ends: nothing is kept of the test."""
    if event == "subprocess.Popen":
        told = tells(arguments[1], os.environ if arguments[3] is None else arguments[3])
    else:
        told = event not in ("os.fork", "os.forkpty", "os.system")
    if not told and os.environ.get(FOLDER):
        (Path(os.environ[FOLDER]) / "untold.begun").touch()


def processes(folder: Path) -> tuple[list, bool]:
    """The traces of other processes, and whether each of them told it."""
    from theory.reporting.tracing import Trace

    found = []
    for path in folder.glob("*.json"):
        trace, told = Trace(), json.loads(path.read_text())
        trace.places = {(file, line) for file, line in told["places"]}
        trace.files, trace.compiled = set(told["files"]), set(told["compiled"])
        found.append(trace)
    return found, all(path.with_suffix(".json").is_file() for path in folder.glob("*.begun"))


def trace_this_process() -> None:
    """Trace a process that a test started, and write at its end what was executed."""
    from multiprocessing.util import Finalize

    from theory.data import load
    from theory.reporting.tracing import traced

    load.load_entry = lambda name: None  # stored data would hide what made them
    sys.addaudithook(_watch)
    name = Path(os.environ[FOLDER]) / str(os.getpid())
    name.with_suffix(".begun").touch()
    context = traced()
    trace = context.__enter__()

    def write() -> None:
        if os.getpid() == int(name.name):
            context.__exit__(None, None, None)
            told = {part: sorted(found) for part, found in vars(trace).items()}
            name.with_suffix(".json").write_text(json.dumps(told))

    Finalize(None, write, exitpriority=0)


def pytest_sessionfinish(session, exitstatus):
    """With ``--keep``, that nothing changed is no failure."""
    if session.config.getoption("--keep") and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK
