"""Methods written out on the command line: every class by its name, and what cannot be read is named."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import theory as th
from theory.compressors import compressor_examples, registered
from theory.experiment.cli import main
from theory.experiment.flagship import make_jobs
from theory.experiment.method_names import NAME_ALIASES as ALIASES
from theory.experiment.method_names import find, split_names, written_method
from theory.experiment.records import Configuration, read_record
from theory.reporting.files import ConfigurationError


@pytest.mark.parametrize(
    "name, compressor, fields",
    [
        ("natural", th.Natural(), {}),
        ("qsgd(s=3)", th.QSGD(3), {}),
        ("QSGD(7, inf)", th.QSGD(7, float("inf")), {}),
        ("topk(k=k)+memory", th.TopK(2), {"feedback": th.ErrorFeedback()}),
        ("bucketed(qsgd(s=7), 512)", th.Bucketed(th.QSGD(7), 512), {}),
        ("powersgd(rank=2)", th.PowerSGD(40, 25, 2), {}),
        ("scaledsign+partial(0.5)", th.ScaledSign(), {"feedback": th.PartialErrorFeedback(0.5)}),
        ("topk(5)+conef(natural)", th.TopK(5), {"feedback": th.ContractiveErrorFeedback(th.Natural())}),
        ("randk(k=3, unbiased=True)+momentum(0.9)", th.RandK(3, unbiased=True), {"server": th.Momentum(0.9)}),
        ("natural+trimmedmean(2)", th.Natural(), {"server": th.TrimmedMean(2), "exchange": "gather"}),
        (
            "topk(5)+attacked(nnm(1, median), alie, 2)",
            th.TopK(5),
            {"server": th.Attacked(th.NNM(1, th.Median()), th.ALIE(), 2), "exchange": "gather"},
        ),
        (
            "identity+attacked(mean, onesided(1e6))",
            th.Identity(),
            {"server": th.Attacked(th.Mean(), th.OneSided(1e6)), "exchange": "gather"},
        ),
        ("sign + memory + majority", th.Sign(), {"feedback": th.ErrorFeedback(), "server": th.Majority()}),
    ],
)
def test_what_a_name_stands_for(name, compressor, fields):
    assert written_method(name, 1000, 2)[:3] == (compressor, fields, None)
    assert find(name).family.startswith("written")


def test_a_method_may_have_the_hyphens_of_its_paper():
    plain = written_method("ef21sgdm(topk(k=3), momentum=0.2)", 100, 1)
    assert written_method("ef21-sgdm(topk(k=3), momentum=0.2)", 100, 1) == plain
    assert isinstance(plain.method, th.EF21SGDM) and find("EF-BV(topk(k=3))").family == "written-other"
    assert written_method("lag(trigger=4.0)", 100, 1).method.trigger == 4.0
    assert written_method("signum(step=0.1, aggregation=majority)", 100, 1).method.aggregation == "majority"
    assert written_method("async-sgd(times=pareto(2.0))", 100, 1).method.times == th.Pareto(2.0)
    assert written_method("fedavg(clients=4, server=krum(1))", 100, 1).method.server == th.Krum(1)


def test_what_is_written_stands_in_place_of_what_is_common():
    names = ("ef21(topk(k=3), step=0.5, batch=5, shards=by_label)", "ef21(topk(k=3), 0.25)", "ef21(topk(k=3))")
    configuration = Configuration(methods=names, batch=(8,))
    constants = SimpleNamespace(d=100, smoothness=1.0, mu=0.1)
    jobs = make_jobs(configuration, configuration.cells(), constants)
    written, placed, plain = (job.method for job in jobs)
    assert (written.step, written.batch, written.shards, written.average) == (0.5, 5, "by_label", "last")
    assert jobs[0].cell.batch == 5  # the number of samples is that of the run
    assert (placed.step, placed.batch, placed.average) == (0.25, 8, "last")
    assert isinstance(plain.step, th.InverseTime) and (plain.batch, plain.average) == (8, "quadratic")


def test_every_compressor_has_a_name():
    """As its class is called, with the arguments that its examples show."""
    for c in compressor_examples(1000):
        if type(c).__module__.startswith("theory."):
            text = repr(c).replace("inf", "inf")
            assert written_method(text.lower().replace("true", "True").replace("false", "False"), 1000, 2)[0] == c
    assert len(registered()) > 25


def test_every_alias_is_a_class():
    assert all(hasattr(th, name) for name in ALIASES.values())


def test_lists_are_split_outside_parentheses():
    assert split_names("a(b, c(d, e)),f , ") == ["a(b, c(d, e))", "f"]


@pytest.mark.slow
def test_a_run_takes_them(tmp_path, capsys):
    names = "natural,topk(k=3)+memory,qsgd(s=7)+momentum(0.9),topk(k=3)"
    assert main(["run", "--data", "digits", "--steps", "30", "--methods", names, "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    first = shown.partition("error of a message")[0]  # the tables of costs and of variance have the same rows
    first = first.partition("\nmethod ")[0] + first.partition("\nmethod ")[2].partition("\nmethod ")[0]
    rows = {line.split("  ")[0]: line for line in first.splitlines() if "  " in line}
    for name in ("natural", "topk(k=3)+memory", "qsgd(s=7)+momentum(0.9)", "topk(k=3)"):
        assert name in rows
    assert rows["qsgd(s=7)+momentum(0.9)"].split()[-1].startswith("[") and "not covered" in rows["topk(k=3)"]


FILE = """import theory as th

mine = th.ParallelSGD(th.TopK(5), step=th.Constant(0.5), feedback=th.ErrorFeedback())
other = th.LocalSGD(th.Identity(), step=th.Constant(0.5), local_steps=3)
"""


def test_methods_of_a_file(tmp_path, capsys):
    path = tmp_path / "my_own_methods.py"
    path.write_text(FILE, encoding="utf-8")
    out = [
        "--steps",
        "7",
        "--workers",
        "2",
        "--batch",
        "1",
        "--data",
        "breast_cancer",
        "--scaled",
        "--out",
        str(tmp_path / "runs"),
    ]
    assert main(["run", "--methods", f"{path},identity+local(2)", *out]) == 0
    printed = capsys.readouterr().out
    for title, rounds in (("mine", 7), ("other", 2), ("identity+local(2)", 3)):
        line = next(line for line in printed.splitlines() if line.startswith(title))
        assert f" {rounds} " in line, line
    assert "a method of your own file" in printed and "B_D" in printed


OWN = """import theory as th

mine = th.ParallelSGD(th.TopK(5), step=0.5, feedback=th.ErrorFeedback(), batch=4)
"""


def test_methods_take_the_same_samples_and_the_table_says_what_else_differs(tmp_path, capsys):
    """A method of one's own with a batch of its own: as many samples as the others, a warning, each step's origin."""
    path = tmp_path / "own.py"
    path.write_text(OWN, encoding="utf-8")
    out = ["--steps", "6", "--batch", "16", "--workers", "2", "--data", "breast_cancer", "--scaled"]
    assert main(["run", "--methods", f"{path},sgd,sgd(step=0.5)", *out, "--out", str(tmp_path / "runs")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    (folder,) = (tmp_path / "runs").iterdir()
    runs = list(read_record(folder).results.values())
    assert [run["samples"] for run in runs] == [6 * 16 * 2] * 3 and [run["rounds"] for run in runs] == [24, 6, 6]
    assert "UnequalMethodsWarning: the methods differ in more than compressor and feedback" in printed
    assert "step Constant(eta=0.5), its own, in its file: mine" in printed
    assert "of the configuration: SGD, dense step" in printed and "as written: SGD, dense, step 0.5" in printed
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--methods", "sgd(step=-1)", *out])
    assert "a finite number above 0" in capsys.readouterr().err


@pytest.mark.parametrize("step", ["0.25", "theory", "best"])
def test_one_step_for_all(step, tmp_path, capsys):
    """--step stands in place of the steps of all: the number, 1/L by the theorem, or the best of those near 1/L."""
    data = th.load_data("breast_cancer").scaled()
    L = th.lipschitz(th.logistic(data, l2=1 / data.n))
    given = ["--data", "breast_cancer", "--scaled", "--steps", "30", "--out", str(tmp_path), "--step", step]
    assert main(["run", "--methods", "sgd,ef21(topk(k=9), step=7.0)" if step == "0.25" else "sgd", *given]) == 0
    (folder,) = tmp_path.iterdir()
    steps = [
        float(run["step"].removeprefix("Constant(eta=").rstrip(")")) for run in read_record(folder).results.values()
    ]
    if step == "0.25":
        assert steps == [0.25, 0.25]
    elif step == "theory":
        assert steps == pytest.approx([1 / L], rel=1e-5)  # printed with six digits
        assert "bounds.bottou_constant_step" in capsys.readouterr().out
    else:
        assert np.log2(steps[0] * L) == pytest.approx(round(np.log2(steps[0] * L)), abs=1e-4)
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--step", "longest"])
    assert "'theory' or 'best'" in capsys.readouterr().err


def test_a_file_without_methods_is_refused(tmp_path):
    (tmp_path / "no_methods.py").write_text("x = 3\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="has no method; a method is a value of the file"):
        Configuration.from_dict({"methods": [str(tmp_path / "no_methods.py")]})


@pytest.mark.parametrize(
    "text, message",
    [
        ("\nx = nowhere\n", r"NameError: name 'nowhere' is not defined \(line 2\)"),
        ("import nowhere_at_all\n", r"ModuleNotFoundError: No module named 'nowhere_at_all' \(line 1\)"),
        ("x = = 3\n", r"SyntaxError: invalid syntax \(.*, line 1\)$"),
        ("def f():\n    return 1 / 0\n\n\nf()\n", r"ZeroDivisionError: .* \(line 2\)"),
        ("import theory as th\nth.TopK(0)\n", r"ValueError: k: got 0.* \(line 2\)"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_name(text, message, tmp_path, capsys):
    path = tmp_path / "wrong_methods.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"{path} cannot be run: {message}"):
        Configuration.from_dict({"methods": [str(path)]})
    with pytest.raises(SystemExit):
        main(["run", "--methods", str(path)])
    assert "cannot be run" in (told := capsys.readouterr().err) and "Traceback" not in told


def test_a_problem_by_name(tmp_path, capsys):
    out = ["--steps", "5", "--workers", "2", "--data", "breast_cancer", "--scaled", "--methods", "sgd"]
    for name in ("ridge", "logistic"):
        assert main(["run", "--problem", name, *out, "--out", str(tmp_path / name)]) == 0
        assert f", {name}, l2 = " in capsys.readouterr().out
    with pytest.raises(ConfigurationError, match="problem: got 'lasso', allowed: one of auto, logistic"):
        Configuration(problem="lasso")


@pytest.mark.parametrize("name", ["identity+local(99)", "powersgd(rank=1)+local(2)"])
def test_what_would_fail_later_is_refused_before_the_first_run(name, capsys):
    arguments = ["--data", "breast_cancer", "--scaled", "--steps", "12", "--workers", "2", "--methods", f"sgd,{name}"]
    with pytest.raises(SystemExit):
        main(["run", *arguments])
    assert "f - f*" not in capsys.readouterr().out


def test_identical_rows_have_a_batch_bound_of_one(tmp_path, capsys):
    path = tmp_path / "same.svm"
    path.write_text("1 1:1 2:2\n-1 1:-1 2:-2\n1 1:1 2:2\n", encoding="utf-8")
    out = ["--workers", "2", "--batch", "1", "--steps", "7", "--methods", "sgd", "--out", str(tmp_path / "runs")]
    assert main(["run", "--data", str(path), *out]) == 0
    assert "B_D = 1," in capsys.readouterr().out
