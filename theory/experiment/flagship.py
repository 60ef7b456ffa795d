"""The experiment: every cell of the grid on the same data with the same number of samples, recorded incrementally."""

from __future__ import annotations

import math
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.arguments import usable_cores
from ..data.dataset import UNSCALED
from ..methods.theorems import Constants, Theorem, judge, measure_constants, theorem_for
from ..reporting.files import ConfigurationError, versions
from ..reporting.progress import Progress
from .method_names import Entry, find, method_of_file, parts, title
from .ranks import Interruption, Stopping, Watcher, compile_together, from_root
from .record_table import compression_ratio, gradient_numbers, stated_ratio
from .records import Cell, Configuration, Recorder, read_record

K_SHARE = 500  # the letter k in a method's name means d/500, at least 1
FIRST_STEP = 0.25  # the first step size, times L
MOST_TIMES = 100  # a run is at most so many times longer until its bound says something
STOPPED = 99  # SciPy's status for a run that its callback stopped


class Job(NamedTuple):
    """A cell of the grid, ready to run."""

    cell: Cell
    entry: Entry
    title: str
    method: Any
    origin: str = ""  # of its step


def make_problem(data: Any, l2: float | None, problem: str = "auto") -> Any:
    """The problem of this name; by default that of the labels.  l2 = 1/n unless it is given."""
    from .. import problems

    if problem == "auto":
        problem = "logistic" if data.task == "binary" else "ridge"
    try:
        return getattr(problems, problem)(data, 1.0 / data.n if l2 is None else l2)
    except ValueError as error:
        raise ConfigurationError(f"problem {problem!r} on {data.name}: {error}") from None


def make_jobs(configuration: Configuration, cells: list[Cell], constants: Constants, problem: Any = None) -> list[Job]:
    """The cells with their methods; raises ``ConfigurationError`` for methods that do not fit the data.

    If the problem is given, settings that would fail in a later run are also refused.
    """
    from ..compressors import Identity
    from ..compressors.closed_forms import check, for_workers
    from ..compressors.sparsifiers.random_and_top_k import of_length
    from ..methods import LocalSGD, ParallelSGD
    from ..methods.custom import for_these_workers
    from ..methods.schedules import InverseTime

    k = max(1, constants.d // K_SHARE)
    shift = configuration.shift or max(2.0, configuration.c * constants.smoothness / (FIRST_STEP * constants.mu))
    step = InverseTime(c=configuration.c, mu=constants.mu, shift=shift)
    jobs = []
    for cell in cells:
        entry = find(cell.method)
        if entry.family == "file":
            method = method_of_file(cell.method)
            jobs.append(_job(cell, entry, k, method, "its own, in its file"))
            continue
        made = parts(entry, constants.d, k, configuration.bucket)
        try:
            what = for_workers(of_length(made.compressor, constants.d), cell.workers)
            check(what, constants.d)
        except ValueError as error:
            raise ConfigurationError(f"method {cell.method!r} on data with d = {constants.d}: {error}") from None
        method = ParallelSGD(
            what,
            step,
            batch=cell.batch,
            average="quadratic",
            compress="loss" if what == Identity(sparse=True) else "full",  # the l2 term has no zeros
        )
        own = "step" in made.given or "step" in made.fields
        if "step" in made.fields:
            method = _with_step(method, made.fields.pop("step"))
        if made.method is not None:
            method = for_these_workers(made.method, cell.workers)
            common = {"step": step, "batch": cell.batch}
            if "average" in method._fields and "step" not in made.given:  # its weights are those of this step
                common["average"] = "quadratic"  # clients have the last model
            method = method._replace(**{name: value for name, value in common.items() if name not in made.given})
        elif "local_steps" in made.fields:
            shared = {name: getattr(method, name) for name in ("compressor", "step", "batch", "average")}
            method = LocalSGD(**(shared | made.fields))
        else:
            method = method._replace(**made.fields)
        origin = "its own, as written" if own else "the common one, c/(mu (shift + t)) of the configuration"
        jobs.append(_job(cell, entry, k, method, origin))
    if configuration.step is not None:
        jobs = [_with_common_step(job, configuration.step) for job in jobs]
    for job in jobs if problem is not None else []:
        _check_job(job, problem)
    return jobs


def _job(cell: Cell, entry: Entry, k: int, method: Any, origin: str) -> Job:
    """A job; a method with its own batch size takes as many samples as the others, not as many steps."""
    batch, name = getattr(method, "batch", cell.batch), title(entry, k) + cell.label[len(cell.method) :]
    if batch != cell.batch:
        from ..cluster.setup import plan_batches

        try:
            _, steps = plan_batches(batch, None, cell.steps * cell.batch, method.local_steps)
        except ValueError as error:
            raise ConfigurationError(f"method {cell.method!r}: {error}") from None
        cell = cell._replace(batch=batch if isinstance(batch, int) else cell.batch, steps=steps)
    return Job(cell, entry, name, method, origin)


def _with_step(method: Any, step: Any) -> Any:
    """The method with another step; a quadratic average, whose weights need the step's shift, becomes the last one."""
    method = method._replace(step=step)
    no_shift = getattr(method, "average", None) == "quadratic" and not hasattr(step, "shift")
    return method._replace(average="last") if no_shift else method


def _with_common_step(job: Job, step: Any) -> Job:
    """The job with the step that ``--step`` gives to all methods; "theory" and "best" are replaced later."""
    from ..methods.schedules import Constant

    if "step" not in job.method._fields:
        raise ConfigurationError(f"step: got {step}, allowed: none, since {job.title} has no step size")
    if step == "theory":  # without a memory, theorems are about the last model
        common = (
            job.entry.family != "file" and not job.entry.memory and getattr(job.method, "average", "last") != "last"
        )
        return job._replace(method=job.method._replace(step=step, **({"average": "last"} if common else {})))
    return job._replace(method=_with_step(job.method, Constant(1.0 if step == "best" else step)), origin="--step")


def _by_theory(job: Job, problem: Any) -> Job:
    """The job with the step of the theorem that covers its method."""
    from ..methods.theory_steps import theory_step

    try:
        found = theory_step(job.method.settled(problem), problem, job.cell.workers)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"method {job.cell.method!r}: {error}") from None
    return job._replace(method=_with_step(job.method, found.step), origin=f"{found.how}, of bounds.{found.formula}")


def _by_search(jobs: list[Job], problem: Any, comm: Any) -> list[Job]:
    """The jobs with the constant step for which each ends lowest in its first run."""
    from ..methods.schedules import Constant
    from ..plots.sweep import choose_steps

    chosen: dict[str, Any] = {}
    for job in jobs:
        label = job.cell.label.partition(" #")[0]
        if label not in chosen:
            run = {"workers": job.cell.workers, "steps": _whole_rounds(job), "seed": job.cell.seed, "comm": comm}
            try:
                (chosen[label],) = choose_steps([job.method], problem, **run)
            except ValueError as error:
                raise ConfigurationError(f"method {job.cell.method!r}: {error}") from None
    found = [chosen[job.cell.label.partition(" #")[0]] for job in jobs]
    return [
        job._replace(method=job.method._replace(step=Constant(one.step)), origin=str(one))
        for job, one in zip(jobs, found, strict=True)
    ]


def _check_job(job: Job, problem: Any) -> None:
    """Refuse before the first run what would fail later."""
    from ..cluster.setup import prepare

    method = job.method
    if job.cell.steps < method.local_steps:
        raise ConfigurationError(
            f"method {job.cell.method!r}: got {method.local_steps} local steps, allowed: at most the {job.cell.steps} "
            "steps of the run (--steps)"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the run itself warns
            prepare(method, problem, workers=job.cell.workers, steps=_whole_rounds(job))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"method {job.cell.method!r}: {error}") from None


def _whole_rounds(job: Job) -> int:
    """The steps of a job, rounded down to whole rounds."""
    return job.cell.steps - job.cell.steps % job.method.local_steps


def experiment(
    configuration: Configuration,
    *,
    comm: Any = None,
    command: str = "",
    say: Callable[[str], object] = print,
    stopping: Stopping | None = None,
    json_file: str | None = None,
) -> int:
    """Run a configuration, print its table and write its record.

    Parameters
    ----------
    configuration : Configuration
    comm : mpi4py communicator, optional
        Every rank calls with the same arguments.  Without it all workers are in this process.
    command : str
        For the record.
    say : callable
        Called with the lines of output, on rank 0 only.
    stopping : Stopping, optional
        Where checkpoints are stored, and from which folder to continue.
    json_file : str, optional
        Where the row of each method is written as JSON, "-" for standard output.

    Returns
    -------
    int
        An exit code, the same on all ranks: 0; 75 if a signal ended it with a checkpoint; else 128 + the signal's
        number.

    Raises
    ------
    ValueError
        On all ranks, if the configuration does not fit the data or the ranks.
    """
    from ..cluster.checkpoints import Interrupted, ResumeError
    from ..cluster.mpi import oversubscribed

    root = comm is None or comm.Get_rank() == 0
    ranks = 1 if comm is None else comm.Get_size()
    for workers in np.atleast_1d(configuration.workers).tolist():
        if workers % ranks:
            raise ConfigurationError(f"workers: got {workers}, allowed: multiples of the number of ranks, {ranks}")
    with Interruption(root) as interruption:
        if root:
            say(f"data {configuration.data}: loading, and solving for f*")
        from_root(comm, lambda: _require_writable(configuration.out))
        with Progress(f"data {configuration.data}: still loading, or solving for f*", here=root):
            data, problem, constants, cells = prepare(configuration, comm)
        if root and data.scale_ratio >= UNSCALED:
            ratio = f"{data.scale_ratio:.1g}"
            say(f"columns differ by a factor of {ratio} in scale, which slows every method; --scaled divides them")
        jobs = make_jobs(configuration, cells, constants)
        if configuration.until_bound:
            jobs = [_until_bound(job, constants) for job in jobs]
        if configuration.step == "theory":
            jobs = [_by_theory(job, problem) for job in jobs]
        if ranks > 1:
            compile_together(jobs, problem, comm, say)
        if configuration.step == "best":
            jobs = _by_search(jobs, problem, comm)
        opened: list[Recorder] = []
        at_start = gradient_numbers(problem, np.zeros(problem.d), comm)
        more = {"ranks": ranks, "at_start": at_start, "cores": usable_cores()}
        more["oversubscribed"] = comm is not None and oversubscribed(comm)
        if root and (unequal := _unequal(jobs, configuration.step)):
            more["unequal"] = unequal
            say(unequal)
        from_root(comm, lambda: opened.append(_open_record(configuration, command, data, problem, constants, more)))
        recorder = opened[0] if root else None
        try:
            _run_all(jobs, problem, constants, configuration, comm, recorder, interruption, stopping or Stopping())
        except Interrupted as stopped:
            interruption.signal = stopped.signal
            from_root(comm, lambda: _finish(recorder, interruption, say, json_file))
            if root and stopped.folder:
                say(f"go on: the same command with --resume {stopped.folder.parents[1]}")
            return stopped.exit_code
        except ResumeError as error:
            if recorder is not None:
                recorder.close("failed", str(error))
            raise ConfigurationError(str(error)) from None
        except KeyboardInterrupt:
            _finish(recorder, interruption, say, json_file)
            raise
        except Exception as error:
            if recorder is not None:
                recorder.close("failed", repr(error))
            raise
        return from_root(comm, lambda: _finish(recorder, interruption, say, json_file))


def prepare(configuration: Configuration, comm: Any) -> Any:
    """Data, problem, constants and cells.  Rank 0 fills the caches; while it solves, the others load."""
    from ..data import DataError, load_data
    from ..data.load import is_path_of_shards
    from ..problems.evaluate import is_large

    def load(comm=None):
        data = load_data(configuration.data, n_features=configuration.features, target=configuration.target, comm=comm)
        data = data.scaled() if configuration.scaled else data
        return data, make_problem(data, configuration.l2, configuration.problem)

    mine = []

    # shards, which all ranks check together: rank 0 decides for all, since not every rank may see the folder
    if comm is not None and from_root(comm, lambda: is_path_of_shards(configuration.data)):
        try:
            mine.extend(load(comm))
        except DataError as error:
            raise ConfigurationError(str(error)) from None

    def first() -> None:
        try:
            if not mine:
                mine.extend(load())
            unsolved = Constants(mine[0].n, mine[1].d, *[1.0] * (len(Constants._fields) - 2))
            make_jobs(configuration, configuration.cells(), unsolved, mine[1])  # refuses before anything is solved
        except DataError as error:
            raise ConfigurationError(str(error)) from None

    from_root(comm, first)
    data, problem = mine or load()
    if comm is not None and is_large(problem):
        constants: Any = measure_constants(problem, comm)
        cells = from_root(comm, configuration.cells)
    else:
        constants, cells = from_root(comm, lambda: [measure_constants(problem), configuration.cells()])
    return data, problem, Constants(*constants), [Cell(*cell) for cell in cells]


def _unequal(jobs: list[Job], step: Any) -> str:
    """A text on what makes a comparison of these methods unfair; empty if it is fair."""
    from ..plots.appearance import differences

    found = differences([job.method for job in jobs], step)
    return f"UnequalMethodsWarning: {found}" if found else ""


def _require_writable(out: str) -> None:
    """Refuse a folder where no record could be written, before anything is measured; nothing is left there."""
    folder = Path(out)
    fresh = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        if fresh:
            folder.rmdir()
    except OSError as error:
        raise ConfigurationError(f"out: cannot write to {out}: {error.strerror or error}") from None


def _open_record(configuration: Any, command: Any, data: Any, problem: Any, constants: Any, more: Any) -> Recorder:
    """A new record with its first line."""
    from ..core.digests import digest

    try:
        recorder = Recorder(configuration.out, configuration.digest())
    except OSError as error:
        raise ConfigurationError(f"out: cannot write to {configuration.out}: {error.strerror or error}") from None
    recorder.text("configuration.toml", configuration.to_toml())
    recorder.line(
        "experiment",
        format=1,
        started=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        command=command,
        **more,
        configuration=configuration.as_dict(),
        seed=configuration.seed,
        versions=versions(),
        data={
            "name": data.name,
            "n": data.n,
            "d": data.d,
            "nnz": data.nnz,
            "task": data.task,
            "notes": list(data.notes),
            "digest": digest((problem.A, problem.b)),
        },
        problem=type(problem).__name__,
        constants=constants._asdict(),
    )
    recorder.flush()
    return recorder


def _run_all(
    jobs: Any,
    problem: Any,
    constants: Any,
    configuration: Any,
    comm: Any,
    recorder: Any,
    interruption: Any,
    stopping: Stopping,
) -> None:
    """Run the jobs one after the other; each is on disk before the next one starts."""
    from ..cluster import run

    root = recorder is not None
    total = sum(job.cell.steps * job.cell.workers * job.cell.batch for job in jobs)
    with Progress("", total, " samples", here=root) as bar:
        for job in jobs:
            watch = Watcher(problem, bar, interruption)
            steps = _whole_rounds(job)
            bar.start(job.title)
            interruption.running = True
            result = run(
                job.method,
                problem,
                workers=job.cell.workers,
                steps=steps,
                seed=job.cell.seed,
                comm=comm,
                record_every=max(1, steps // configuration.points),
                callback=watch,
                compression_error=True,
                **stopping.arguments(job.cell.label),
            )
            at_end = gradient_numbers(problem, result.x, comm) if np.isfinite(result.x).all() else {}
            if root and result.nit > 0:
                _record(recorder, job, problem, result, constants, watch.state, at_end)
            interruption.running = False
            if result.status == STOPPED:
                return


def _theorem(job: Job, constants: Constants) -> Theorem:
    """The theorem that covers a job."""
    return theorem_for(
        job.entry,
        job.method.compressor,
        constants,
        c=getattr(job.method.step, "c", math.nan),
        shift=getattr(job.method.step, "shift", math.nan),
        workers=job.cell.workers,
        batch=job.cell.batch,
    )


def _until_bound(job: Job, constants: Constants) -> Job:
    """The job with the number of steps from which its bound is not vacuous, if that is not much larger."""
    from_there = _theorem(job, constants).speaks_from(constants.trivial, job.cell.steps) or 0
    more = job.cell.steps < from_there <= MOST_TIMES * job.cell.steps
    return job._replace(cell=job.cell._replace(steps=from_there)) if more else job


def _record(
    recorder: Recorder, job: Job, problem: Any, result: Any, constants: Constants, largest: float, at_end: dict
) -> None:
    """Write one run to disk: its history, arrays, costs and verdict."""
    from ..methods.schedules import as_step
    from ..plots.appearance import short

    end = result.history[-1]
    gap = float(result.fun) - constants.lower
    theorem = _theorem(job, constants)
    verdict = judge(theorem, int(result.nit), gap, constants.trivial, largest, constants.start)
    stated, constant = stated_ratio(job.method.settled(problem).compressor, constants.d)
    measured = {
        "compression_measured": compression_ratio(result),
        "compression_stated": stated,
        "compression_constant": constant,
    }
    recorder.history(job.cell.label, result.history)
    recorder.arrays(job.cell.label, x=result.x, last=result.last)
    recorder.line(
        "result",
        run=job.cell.label,
        **job.cell._asdict(),
        family=job.entry.family,
        title=job.title,
        settings=repr(job.method),
        step=short(as_step(job.method.step)) if "step" in getattr(job.method, "_fields", ()) else "",
        step_origin=job.origin,
        success=bool(result.success),
        status=int(result.status),
        message=result.message,
        f=float(result.fun),
        gap=gap,
        largest_f=float(largest),
        taken=int(result.nit),
        **{name: end[name] for name in end.dtype.names if name not in ("step", "f")},
        **({"at_end": at_end} | measured if at_end else {}),
        theorem=theorem._asdict(),
        bound=verdict.bound,
        verdict=verdict.word,
        sentence=verdict.sentence,
    )
    recorder.flush()


def _finish(recorder: Recorder | None, interruption: Interruption, say: Any, json_file: str | None = None) -> int:
    """Write table, figure and the last line of the record; do nothing on ranks without a recorder."""
    if recorder is None:
        return 0
    from ..reporting.progress import at_width
    from .command_parser import write_json
    from .record_table import (
        draw_record,  # here and in other functions: the other ranks need neither pictures nor tables
        report,
    )

    interrupted = interruption.signal is not None
    interruption.running = True  # from here on a signal must not interrupt writing
    reason = interruption.reason if interrupted else ""
    folder: Path = recorder.close("interrupted" if interrupted else "complete", reason)  # before what may fail
    record, code = read_record(folder), interruption.exit_code if interrupted else 0
    if record.results:
        say(report(record))
        try:
            with at_width():
                recorder.text("table.txt", report(record) + "\n")
            if json_file:
                write_json(json_file, record.results)
            draw_record(record, formats=("png",))  # `plot` also writes the PDF, which takes as long again
        except OSError as error:
            say(f"the table and the figure cannot be written: {error}; once there is space: plot {folder}")
            code = code or 1
    if interrupted:
        done = sum(r["success"] for r in record.results.values())
        say(f"{reason}; {done} run(s) complete and what there is of the others are saved")
    say(f"record: {folder}")
    return code
