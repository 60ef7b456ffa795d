"""The command line, its records and tables: on one process, on ranks, and when it is interrupted."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT, run_group, run_mpi

from theory.experiment import Configuration, read_record
from theory.experiment.cli import main
from theory.experiment.flagship import make_problem
from theory.experiment.method_names import FLAGSHIP, UnknownName, find, parts, title
from theory.experiment.record_table import report
from theory.experiment.records import Recorder
from theory.methods.theorems import Theorem, judge, measure_constants, theorem_for
from theory.plots.appearance import bits, factor, number, text_table
from theory.reporting import launcher, progress
from theory.reporting.launcher import LAUNCHERS, SIZES
from theory.reporting.progress import WIDTH, Progress, on_terminal

SMALL = ["--data", "breast_cancer", "--steps", "20", "--batch", "4", "--methods", "sgd,qsgd-4,top-3-memory,top-3"]
COMMAND = [sys.executable, "-m", "theory.experiment"]


def run_main(capsys, *arguments) -> tuple[int, str, str]:
    """Exit code and what was printed, in this process."""
    try:
        code = main([str(a) for a in arguments])
    except SystemExit as stop:
        code = stop.code
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def only_record(folder):
    """The one record in a folder."""
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def small_record(tmp_path_factory):
    """A complete record of a small experiment, and what was printed."""
    folder = tmp_path_factory.mktemp("runs")
    done = run_group([*COMMAND, *SMALL, "--seed", "3", "--out", folder], timeout=300)
    assert done.returncode == 0, done.stderr
    return only_record(folder), done


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [[], ["run"], ["list"], ["verify"], ["study"], ["plot"]], ids=" ".join)
def test_help_has_an_example(capsys, command):
    code, out, _ = run_main(capsys, *command, "--help")
    assert code == 0
    assert "example:\n" in out and f"python -m theory.experiment {' '.join(command)}".strip() in out


def test_list_names_methods_data_studies_and_claims(capsys):
    code, out, _ = run_main(capsys, "list")
    assert code == 0
    for name in ("top-K-memory", "rcv1-like", "breast_cancer", "ternary-dimension", "qsgd.variance"):
        assert name in out


def test_verify_prints_a_ledger_and_writes_json(capsys, tmp_path):
    path = tmp_path / "ledger.json"
    code, out, _ = run_main(capsys, "verify", "topk.contraction", "--quick", "--seed", "1", "--json", path)
    assert code == 0 and "topk.contraction" in out and "1 of 1 claims" in out
    written = json.loads(path.read_text())
    assert written["exit_code"] == 0 and written["seed"] == 1
    assert [result["id"] for result in written["results"]] == ["topk.contraction"]


@pytest.mark.parametrize(
    ("verdict", "refuted", "fates", "expected"),
    [
        ("holds", "", {"m": "caught"}, 0),
        ("vacuous", "", {}, 0),
        ("fails", "quoted", {}, 0),
        ("fails", "", {}, 1),
        ("holds", "", {"m": "survived"}, 1),
    ],
)
def test_verify_exit_code(capsys, monkeypatch, verdict, refuted, fates, expected):
    import dataclasses

    import theory.claims

    true = theory.claims.verify("topk.contraction", quick=True)
    changed = dataclasses.replace(true, verdict=verdict, refuted=refuted, mutants=fates)
    monkeypatch.setattr("theory.claims.verification.judged", lambda claim, record: changed)
    code, out, _ = run_main(capsys, "verify", "topk.contraction", "--quick")
    assert code == expected
    assert ("survived: m" in out) == ("survived" in fates.values())


# --- configuration ----------------------------------------------------------------------------------------------------


def test_configuration_survives_toml_and_json(tmp_path):
    first = Configuration(
        data='odd "name"\\x.svm', workers=[2, 4], batch=3, seed=2**62, methods="sgd, top-7", l2=1e-3, shift=12.5
    )
    path = tmp_path / "c.toml"
    path.write_text(first.to_toml(), encoding="utf-8")
    assert Configuration.from_toml(path) == first
    assert Configuration.from_dict(json.loads(json.dumps(first.as_dict()))) == first
    assert Configuration.from_toml(path).digest() == first.digest() != Configuration().digest()


def test_a_cell_keeps_its_seed_whatever_is_beside_it():
    alone = Configuration(methods=("qsgd-4",), batch=16).cells()[0]
    wide = Configuration(methods=("sgd", "qsgd-4"), batch=(4, 16), workers=(8, 2), steps=800).cells()
    same = [c for c in wide if (c.method, c.workers, c.batch) == ("qsgd-4", 8, 16)]
    assert [c.seed for c in same] == [alone.seed]
    assert len({c.seed for c in wide}) == len(wide) == 8
    assert len({c.steps * c.workers * c.batch for c in wide}) == 1  # the same number of samples everywhere
    assert Configuration(methods=("qsgd-4",), batch=16, seed=1).cells()[0].seed != alone.seed


def test_catalogue():
    import theory as th

    def made(name):
        return parts(find(name), d=100, k=5, bucket=64).compressor

    assert made("qsgd-2") == th.Bucketed(th.QSGD(s=1), 64)
    assert made("qsgd-8-inf") == th.Bucketed(th.QSGD(s=127, norm=math.inf), 64)
    assert made("top-k") == th.TopK(5)
    assert made("rand-9-memory") == th.RandK(9)
    assert made("rand-9") == th.RandK(9, unbiased=True)
    assert [find(name).memory for name in FLAGSHIP] == [False] * 5 + [True] * 2 + [False]
    assert title(find("top-k-memory"), 94) == "top-94 + memory"
    for name in ("top-0", "qsgd-17", "sgd2", ""):
        with pytest.raises(UnknownName):
            find(name)


# --- a small experiment -----------------------------------------------------------------------------------------------


def test_small_experiment_prints_its_table(small_record):
    folder, done = small_record
    assert "breast_cancer" in done.stdout and f"record: {folder}" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if "record:" not in line) <= WIDTH
    for word in ("SGD, dense", "QSGD, 4 bits", "top-3 + memory", "not covered"):
        assert word in done.stdout
    assert done.stderr == ""  # no bar where nobody watches


def test_small_experiment_leaves_a_record(small_record):
    folder, done = small_record
    names = {path.name for path in folder.iterdir()}
    assert names >= {"record.jsonl", "configuration.toml", "table.txt", "figure.png", "sgd.npz"}
    record = read_record(folder)
    assert record.status == "complete" and record.experiment["seed"] == 3
    assert record.experiment["data"]["name"] == "breast_cancer"
    assert record.experiment["versions"]["numpy"] == np.__version__
    assert "--seed 3" in record.experiment["command"]
    assert list(record.results) == ["sgd", "qsgd-4", "top-3-memory", "top-3"]
    assert {result["samples"] for result in record.results.values()} == {20 * 8 * 4}
    assert (folder / "table.txt").read_text().strip() in done.stdout
    for line in (folder / "record.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_record_agrees_with_a_run(small_record):
    import theory as th

    folder, _ = small_record
    record = read_record(folder)
    problem = th.logistic(data := th.load_data("breast_cancer"), l2=1 / data.n)
    for label, result in record.results.items():
        stored = record.arrays(label)
        assert stored["x"].shape == (30,) and stored["x"].dtype == np.float64
        assert th.value(problem, stored["x"]) == pytest.approx(result["f"], rel=1e-12)
        assert record.histories[label]["f"][-1] == result["f"]
        assert record.histories[label]["step"][0] == 0 and record.histories[label]["step"][-1] == 20
        assert (record.histories[label]["bits_up"] == record.histories[label]["payload_bits_up"]).all()
        assert result["gap"] == pytest.approx(result["f"] - record.experiment["constants"]["lower"], abs=1e-15)
    full = record.results["sgd"]
    assert full["payload_bits_up"] == 32 * 30 * 20 and full["payload_bits_down"] == full["payload_bits_up"]  # reduced
    coded = record.results["qsgd-4"]
    assert coded["payload_bits_down"] == 7 * coded["payload_bits_up"]  # gathered


def test_runs_have_files_of_their_own(tmp_path):
    labels = ("\u03b1", "\u03b2", "topk(k=3)+memory", "topk(k=3) + memory", "sgd #2", "a" * 300, "a" * 301)
    recorder = Recorder(tmp_path, "names")
    recorder.line("experiment")
    for k, label in enumerate(labels):
        recorder.arrays(label, x=np.array([k]))
    record = read_record(recorder.close("complete"))
    assert [record.arrays(label)["x"][0] for label in labels] == list(range(len(labels)))


def test_a_record_is_closed_before_its_figure_is_drawn(tmp_path, monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("theory.experiment.record_table.draw_record", full)
    assert main(["--methods", "sgd", "--steps", "4", "--data", "breast_cancer", "--out", str(tmp_path)]) == 1
    (folder,) = tmp_path.iterdir()
    assert read_record(folder).status == "complete" and folder.suffix != ".unfinished"
    assert f"once there is space: plot {folder}" in " ".join(capsys.readouterr().out.split())


def test_record_holds_no_pickle(small_record):
    folder, _ = small_record
    for path in folder.glob("*.npz"):
        with np.load(path, allow_pickle=False) as stored:
            assert set(stored) == {"x", "last"}


def test_config_of_a_record_repeats_it(small_record, tmp_path):
    folder, _ = small_record
    config = ["run", "--config", folder / "configuration.toml", "--methods", "top-3,sgd", "--out", tmp_path]
    done = run_group([*COMMAND, *config], timeout=300)
    assert done.returncode == 0, done.stderr
    first, second = read_record(folder), read_record(only_record(tmp_path))
    for label in ("top-3", "sgd"):
        assert (first.arrays(label)["x"] == second.arrays(label)["x"]).all()


def test_plot_redraws_and_prints(capsys, small_record, tmp_path):
    folder, _ = small_record
    code, out, _ = run_main(capsys, "plot", folder, "--out", tmp_path / "elsewhere")
    assert code == 0
    assert (folder / "table.txt").read_text().strip() in out
    assert (tmp_path / "elsewhere" / "figure.png").stat().st_size > 10_000
    assert (tmp_path / "elsewhere" / "figure.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.mpi
def test_ranks_give_the_same_record(small_record, tmp_path):
    done = run_mpi(2, "-m", "theory.experiment", *SMALL, "--seed", "3", "--out", tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("record:") == 1 and "on 2 ranks" in done.stdout
    alone, together = read_record(small_record[0]), read_record(only_record(tmp_path))
    for label in alone.results:
        assert (alone.arrays(label)["x"] == together.arrays(label)["x"]).all()
        for name in ("f", "payload_bits_up", "payload_bits_down"):
            assert (alone.histories[label][name] == together.histories[label][name]).all()


@pytest.mark.mpi
def test_a_table_is_read_on_the_command_line(tmp_path, capsys):
    pytest.importorskip("pandas")
    rows = [f"{k % 7},{k % 5},{'yes' if k % 3 else 'no'}" for k in range(30)]
    (tmp_path / "mine.csv").write_text("\n".join(["a,b,label", *rows]))
    run = ["--data", str(tmp_path / "mine.csv"), "--methods", "sgd", "--steps", "4", "--batch", "2", "--out"]
    run.append(str(tmp_path / "runs"))
    assert main([*run, "--target", "label"]) == 0 and "mine: n = 30, d = 2, logistic" in capsys.readouterr().out
    (record,) = (tmp_path / "runs").iterdir()
    assert Configuration.from_toml(record / "configuration.toml").target == "label"
    with pytest.raises(SystemExit):
        main(run)
    assert "or --target label" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--methods", "topk"],
        ["--workers", "3"],
        ["--data", "no_such_file.svm"],
        ["vrify"],
        ["figures", "rcv1-like", "--fresh"],
    ],
    ids=" ".join,
)
def test_ranks_answer_a_mistake_once(arguments):
    done = run_mpi(2, "-m", "theory.experiment", *arguments, timeout=120, env={"THEORY_DATA": None})
    assert done.returncode == 2
    assert done.stderr.count("error:") == 1 and "Traceback" not in done.stderr


@pytest.mark.mpi
@pytest.mark.parametrize("code", [0, 7])
def test_ranks_end_with_their_code(code):
    """Where a rank does not say that it ends, the launcher kills the others, and the code is 9."""
    text = f"from mpi4py import MPI; from theory.experiment.__main__ import leave; print('here'); leave({code})"
    done = run_mpi(4, "-c", text, timeout=120)
    assert done.returncode == code and done.stdout.count("here") == 4


def test_the_command_sets_what_numpy_reads_before_it_is_loaded():
    text = "import sys, theory.experiment.__main__; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], cwd=ROOT).returncode == 0


@pytest.mark.parametrize(
    "said",
    [
        {"PMI_SIZE": "4"},
        {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"},
        {"SLURM_STEP_NUM_TASKS": "4", "PMIX_RANK": "2"},
        {"SLURM_STEP_NUM_TASKS": "4"},
    ],
    ids=" ".join,
)
def test_processes_that_a_strange_launcher_started_do_not_all_run(monkeypatch, said):
    # mpirun or srun of another MPI than mpi4py's library: every process believes to be alone.
    strange(monkeypatch, size=1, **said)
    monkeypatch.setattr(launcher, "at_a_terminal", lambda: False)  # though these tests may run at one
    with pytest.raises(SystemExit, match=r"started 4 processes, and each is alone.*Some MPI 1\.0"):
        main(["list"])


@pytest.mark.parametrize(
    "said", [{"PMI_SIZE": "1", "SLURM_STEP_NUM_TASKS": "2"}, {"PMI_RANK": "0"}, {"PMI_SIZE": "many"}], ids=" ".join
)
def test_one_process_is_no_strange_launch(monkeypatch, capsys, said):
    strange(monkeypatch, size=1, **said)  # mpirun -n 1, whose daemons Slurm started on two machines, say
    assert main(["list"]) == 0


def test_a_shell_that_srun_gave_is_no_strange_launch():
    # srun --ntasks=4 --pty bash: Slurm's number is that of four tasks, of which the shell alone is left.
    environment = {name: text for name, text in os.environ.items() if name not in (*LAUNCHERS, *SIZES)}
    environment |= {"SLURM_STEP_NUM_TASKS": "4", "PYTHONPATH": str(ROOT)}
    ask = [sys.executable, "-c", "from theory.reporting.launcher import processes; print(processes(), 'processes')"]
    tasks = subprocess.run(ask, env=environment, start_new_session=True, capture_output=True, text=True, timeout=120)
    assert tasks.stdout == "4 processes\n", tasks.stderr
    in_a_terminal = f"import pty, sys; sys.exit(pty.spawn({ask!r}))"
    shell = [sys.executable, "-c", in_a_terminal]
    answer = subprocess.run(shell, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    assert b"1 processes" in answer.stdout, answer.stderr


def strange(monkeypatch, size, **variables):
    """An environment as a launcher leaves it, and an MPI whose world has so many ranks."""
    world = SimpleNamespace(Get_size=lambda: size, Get_rank=lambda: 0)
    library = SimpleNamespace(COMM_WORLD=world, Get_library_version=lambda: "Some MPI 1.0\nbuilt somewhere")
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=library))
    for name in (*LAUNCHERS, *SIZES):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


# --- interruptions ----------------------------------------------------------------------------------------------------


def interrupt(command, folder, which) -> tuple[int, str]:
    """Start an experiment, send a signal once one run is on disk, and wait for its end."""
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        begin = time.monotonic()
        while not any('"result"' in path.read_text() for path in folder.glob("*/record.jsonl")):
            assert process.poll() is None and time.monotonic() - begin < 200, "no run was finished"
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(which)
        out, _ = process.communicate(timeout=60)
        return process.returncode, out
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


LONG = ["--data", "breast_cancer", "--steps", "10000", "--batch", "1", "--workers", "2"]


@pytest.mark.slow
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_interrupted_experiment_leaves_a_readable_record(capsys, tmp_path, which):
    methods = ",".join(["sgd", *(f"top-{k}-memory" for k in range(1, 31)), *(f"qsgd-{b}" for b in range(2, 17))])
    command = [*COMMAND, *LONG, "--methods", methods, "--out", tmp_path]
    code, out = interrupt(command, tmp_path, which)
    assert code == 128 + which, out
    assert f"interrupted by {which.name}" in out and "Traceback" not in out
    record = read_record(only_record(tmp_path))
    assert record.status == "interrupted" and which.name in record.reason
    assert 1 <= len(record.results) < 46
    assert record.results["sgd"]["success"] and "sgd" in record.histories
    code, out, _ = run_main(capsys, "plot", record.folder)
    assert code == 0 and "figure.png" in out


@pytest.mark.mpi
@pytest.mark.slow
def test_interrupted_ranks_leave_a_readable_record(tmp_path):
    from conftest import find_mpirun

    methods = ",".join(["sgd", *(f"top-{k}-memory" for k in range(1, 31))])
    long = [*LONG[:3], "300", *LONG[4:]]
    command = [find_mpirun(), "-n", "2", *COMMAND, *long, "--methods", methods, "--out", tmp_path]
    code, out = interrupt(command, tmp_path, signal.SIGINT)
    assert code != 0
    record = read_record(only_record(tmp_path))
    assert record.status == "interrupted" and "sgd" in record.results, out


# --- records ----------------------------------------------------------------------------------------------------------


def test_records_never_overwrite_each_other(tmp_path):
    first, second = Recorder(tmp_path, "abc"), Recorder(tmp_path, "abc")
    assert first.folder != second.folder
    for recorder in (first, second):
        recorder.line("experiment", format=1)
        recorder.close("complete")
    third = Recorder(tmp_path, "abc")
    third.line("experiment", format=1)
    assert len({first.folder, second.folder, third.close("complete")}) == 3


def test_a_killed_process_leaves_a_readable_record(tmp_path):
    recorder = Recorder(tmp_path, "abc")
    recorder.line("experiment", format=1, value=math.inf)
    rows = np.array([(0, 0.7), (5, math.nan)], dtype=[("step", np.int64), ("f", np.float64)])
    recorder.history("one", rows)
    recorder.flush()
    path = recorder.folder / "record.jsonl"
    with open(path, "a") as file:
        file.write('{"kind": "history", "run": "one", "st')  # what a kill leaves
    record = read_record(recorder.folder)
    assert record.status == "unfinished" and record.experiment == {"format": 1, "value": None}
    assert record.histories["one"]["step"].tolist() == [0, 5] and math.isnan(record.histories["one"]["f"][1])


# --- theorems and verdicts --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def constants():
    import theory as th

    return measure_constants(make_problem(th.load_data("breast_cancer"), None))


def test_constants_bound_what_they_claim_to(constants):
    import theory as th

    problem = make_problem(th.load_data("breast_cancer"), None)
    optimum = th.solve(problem)
    assert constants.lower <= optimum.fun <= constants.start == pytest.approx(math.log(2))
    for x in (np.zeros(30), optimum.x, 0.5 * optimum.x):
        slope = np.zeros(30)
        from theory.problems.base import gradient

        gradient(problem, x, slope)
        assert slope @ slope <= constants.gradient
        assert th.second_moment(problem, x) <= constants.row_moment
    assert optimum.x @ optimum.x <= constants.distance


@pytest.mark.parametrize("name", FLAGSHIP)
def test_theorem_of_every_flagship_method(constants, name):
    entry = find(name)
    theorem = theorem_for(entry, parts(entry, 30, 3, 16).compressor, constants, c=8.0, shift=100.0, workers=8, batch=4)
    if name == "top-k":
        assert not theorem.function and theorem(10) == math.inf
        return
    assert theorem.function == ("mem_sgd" if entry.memory else "sgd_average")
    assert Theorem(**json.loads(json.dumps(theorem._asdict())))(50) == theorem(50)  # as a record holds it
    assert theorem(100_000 if entry.memory else 2000) < theorem(50) and theorem(0) == math.inf


def test_theorem_needs_its_step_size(constants):
    entry = find("top-3-memory")
    theorem = theorem_for(entry, parts(entry, 30, 3, 16).compressor, constants, c=2.0, shift=100.0, workers=8, batch=4)
    assert not theorem.function and "c = 8" in theorem.reason


def test_verdicts_speak_of_one_run(constants):
    entry = find("sgd")
    theorem = theorem_for(entry, parts(entry, 30, 3, 16).compressor, constants, c=8.0, shift=100.0, workers=8, batch=4)
    bound = theorem(50)
    assert judge(theorem, 50, 0.1, 2 * bound, 0.6, 0.7).word == "below"
    assert judge(theorem, 50, 1.5 * bound, 2 * bound, 0.6, 0.7).word == "ABOVE"
    assert judge(theorem, 50, 0.1, 0.5 * bound, 0.6, 0.7).word == "vacuous"
    assert judge(theorem, 50, 0.1, 2 * bound, 0.8, 0.7).word == "not covered"
    assert judge(theorem, 50, 0.1, 2 * bound, math.inf, 0.7).word == "not covered"
    assert judge(Theorem("", {}, "why"), 50, 0.1, 1.0, 0.6, 0.7)[::2] == ("not covered", "why")


def test_vacuous_bound_says_from_where_it_would_speak(constants):
    entry = find("top-3-memory")
    theorem = theorem_for(entry, parts(entry, 30, 3, 16).compressor, constants, c=8.0, shift=100.0, workers=8, batch=4)
    far = theorem.speaks_from(constants.trivial, 50)
    assert theorem(far) <= constants.trivial < theorem(int(0.9 * far))


# --- texts ------------------------------------------------------------------------------------------------------------


def test_units():
    assert [bits(x) for x in (0, 999, 1000, 999_999, 1.5e13)] == ["0 bit", "999 bit", "1 kbit", "1 Mbit", "15 Tbit"]
    assert [factor(x) for x in (7.94, 480.2, 0.0, math.inf)] == ["7.9x", "480x", "-", "-"]
    assert [number(x) for x in (0.0, 0.5, 1e-7, 3e9, math.nan)] == ["0", "0.5", "1.00e-07", "3.00e+09", "-"]


def test_table_is_aligned():
    lines = text_table([["a", "b"]], [["long name", "1"], ["x", "1000"]]).splitlines()
    assert lines == ["a             b", "---------------", "long name     1", "x          1000", "---------------"]


def test_report_of_an_incomplete_record_marks_what_stopped(small_record):
    record = read_record(small_record[0])
    record.results["sgd"] |= {"success": False, "message": "f is no longer finite", "f": None, "gap": None}
    text = report(record)
    assert "SGD, dense *" in text and "f is no longer finite" in text


def test_progress_is_quiet_unless_somebody_watches(capfd, monkeypatch):
    monkeypatch.setenv("THEORY_PROGRESS", "0")
    assert not on_terminal()
    with Progress("", 100) as bar:
        bar.start("sgd")
        bar.at(50)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("THEORY_PROGRESS", "1")
    with Progress("", 100) as bar:
        bar.start("sgd")
        bar.at(100)
    assert "sgd" in capfd.readouterr().err


def test_a_file_gets_a_line_every_few_seconds(capfd, monkeypatch):
    for name in ("PYTEST_CURRENT_TEST", "THEORY_PROGRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(progress, "on_terminal", lambda: False)
    monkeypatch.setattr(progress, "BETWEEN_LINES", 0.02)

    def heard(text):
        said = ""
        while text not in said:
            said += capfd.readouterr().err

    with Progress("", 200, " samples") as bar:
        bar.start("sgd")
        bar.at(50)
        heard("sgd: 50 of 200 samples, for ")
        bar.start("qsgd")
        bar.at(10)
        heard("qsgd: 60 of 200 samples, for ")
    for _, text in zip(progress.track([("one", 1), ("two", 2)], "work"), ("one: 0", "two: 1"), strict=True):
        heard(f"work: {text} of 2, for ")
    with Progress("solving", 200, here=False):
        threading.Event().wait(0.1)
    assert "solving" not in capfd.readouterr().err


def test_importing_the_command_line_stays_light():
    heavy = ("matplotlib", "sklearn", "mpi4py")
    code = f"import sys, theory.experiment.cli; print([m for m in {heavy} if m in sys.modules])"
    done = run_group([sys.executable, "-c", code], timeout=120)
    assert done.stdout.strip() == "[]", done.stderr


# --- explain, and the line about compiling ----------------------------------------------------------------------------


def test_explain_prints_claims(capsys):
    from theory.claims import explain

    assert main(["explain", "topk.contraction", "qsgd.variance"]) == 0
    assert capsys.readouterr().out == f"{explain('topk.contraction')}\n\n{explain('qsgd.variance')}\n"


def test_repeats_are_runs_of_their_own_and_one_curve():
    from theory.experiment.record_table import goal_table, repetitions

    one, three = Configuration(methods=("sgd", "qsgd-4")), Configuration(methods=("sgd", "qsgd-4"), repeats=3)
    cells = three.cells()
    assert [cell.label for cell in cells] == ["sgd", "sgd #2", "sgd #3", "qsgd-4", "qsgd-4 #2", "qsgd-4 #3"]
    assert len({cell.seed for cell in cells}) == 6
    assert cells[0] == one.cells()[0] and one.digest() != three.digest()
    from pathlib import Path

    from theory.experiment.record_table import figure_of
    from theory.experiment.records import Record
    from theory.reporting.json_values import read_record as read_figure

    found = read_figure(Path(__file__).parents[2] / "figures" / "records" / "flagship.json").found
    record = Record(Path(), **found)
    record.results["sgd #2"], record.histories["sgd #2"] = record.results["sgd"], record.histories["sgd"]
    assert repetitions(record)["sgd"] == ["sgd", "sgd #2"]
    lines = goal_table(record).splitlines()
    said = " ".join(" ".join(lines[-2:]).split())  # wrapped where the terminal ends
    assert lines[1].split()[0] == "method" and said.endswith("means over 2 runs ± half of their 95 % intervals")
    figure = figure_of(record)
    assert [axes.get_xlabel() for axes in figure.axes] == ["bits sent by a worker", "time (s)"]
    notes = " ".join(text.get_text() for text in figure.texts).replace("\n", " ")
    assert "no bound for top-94, no memory: biased and without memory" in notes
    assert "Measured curves and, dotted, bounds: logistic loss on rcv1-like (synthetic) with 8 workers" in notes
    figure.draw_without_rendering()
    bottom, top = figure.axes[1].get_xlim()
    ticks = figure.axes[1].xaxis.get_minor_ticks()
    assert sum(bottom <= tick.get_loc() <= top and bool(tick.label1.get_text()) for tick in ticks) >= 2


def test_a_record_says_that_ranks_share_cores(small_record):
    """Times of ranks that wait for a processor are not those of an exchange."""
    record = read_record(small_record[0])
    assert "share" not in report(record)
    record.experiment |= {"ranks": 8, "cores": 2, "oversubscribed": True}
    assert "8 ranks share the 2 cores" in " ".join(report(record).split())


def test_every_table_has_the_mean_of_repeats_and_its_interval(tmp_path, capsys):
    """The numbers of three runs, with Student's interval by hand: t = 4.303 with two degrees of freedom."""
    given = ("--data", "breast_cancer", "--scaled", "--steps", 40, "--batch", 4, "--repeats", 3)
    code, shown, _ = run_main(capsys, *given, "--methods", "top-3-memory", "--step", 0.5, "--out", tmp_path)
    record = read_record(only_record(tmp_path))
    gaps = np.array([run["gap"] for run in record.results.values()])
    variances = np.array([run["at_end"]["variance"] for run in record.results.values()])
    assert code == 0 and gaps.size == 3 and "means over 3 runs" in shown.partition("\nmethod")[0]
    for values in (gaps, variances):
        half = 4.302653 * values.std(ddof=1) / math.sqrt(3.0)
        assert f"{number(values.mean())} ± {number(half)}" in shown
    assert shown.count("\ntop-3 + memory ") == 3 and shown.count("means over 3 runs") == 3


def test_a_study_asks_for_data_that_there_are(capsys):
    code, _, said = run_main(capsys, "study", "nuqsgd", "--data", "rcv1like")
    assert code == 2 and "did you mean rcv1-like" in said


def test_a_run_until_its_bound_says_something():
    """Of SGD, whose bound is evaluated along its steps: the first T at which it is below f(0) - f*, no longer."""
    from theory.experiment import flagship
    from theory.experiment.records import Cell
    from theory.methods.theorems import Constants

    known = Constants(569, 30, 0.1, 1.0, 0.1, 0.1, 0.5, 0.7, 0.1, 0.1, 0.0, 100.0)
    (job,) = flagship.make_jobs(Configuration(steps=2), [Cell("sgd", "sgd", 1, 1, 2, 0)], known)
    theorem = flagship._theorem(job, known)
    longer = flagship._until_bound(job, known).cell.steps
    assert 2 < longer <= 200 and theorem(longer) <= known.trivial < theorem(longer - 1)
    far = known._replace(row_moment=100.0)  # more than a hundred times as many
    assert flagship._theorem(job, far).speaks_from(far.trivial, 2) > 200
    assert flagship._until_bound(job, far) == job
    again = job._replace(cell=job.cell._replace(steps=longer))
    assert flagship._until_bound(again, known) == again


def test_what_takes_long_is_told_also_on_a_terminal(monkeypatch, capsys):
    from theory.reporting import progress

    for name in ("PYTEST_CURRENT_TEST", "THEORY_PROGRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(progress, "BETWEEN_LINES", 0.02)
    monkeypatch.setattr(progress, "on_terminal", lambda *_: True)
    with Progress("solving"):
        threading.Event().wait(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2 and all(line.startswith("solving, for ") for line in lines)
    with Progress("solving", here=False):
        threading.Event().wait(0.1)
    assert capsys.readouterr().err == ""
