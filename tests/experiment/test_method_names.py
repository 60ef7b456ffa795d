"""Methods written out on the command line: every class by its name, and what cannot be read is named."""

from __future__ import annotations

import pytest

import theory as th
from theory.compressors import compressor_examples, registered
from theory.experiment.catalog import find
from theory.experiment.cli import main
from theory.experiment.method_names import ALIASES, split_names, written_method
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
        ("sign + memory + majority", th.Sign(), {"feedback": th.ErrorFeedback(), "server": th.Majority()}),
    ],
)
def test_what_a_name_stands_for(name, compressor, fields):
    assert written_method(name, 1000, 2) == (compressor, fields)
    assert find(name).family.startswith("written")


def test_every_compressor_has_a_name():
    """As its class is called, with the arguments that its examples show."""
    for c in compressor_examples(1000):
        if type(c).__module__.startswith("theory."):
            text = repr(c).replace("inf", "inf")
            assert written_method(text.lower().replace("true", "True").replace("false", "False"), 1000, 2)[0] == c
    assert len(registered()) > 25


def test_every_alias_is_a_class():
    assert all(hasattr(th, name) for name in ALIASES.values())


@pytest.mark.parametrize(
    "name, message",
    [
        ("topk(k=0)", "TopK: k: got 0, allowed"),
        ("topk(k=3", "cannot be read"),
        ("topk(k=3)+memry", "unknown name 'memry': did you mean memory"),
        ("topk(k=3)+memory+memory", "one feedback for each method"),
        ("topk(k=__import__('os'))", "unknown name|names such as|numbers and names"),
        ("qsgd(s=[1])", "QSGD"),
        ("bucketed(nothing(3), 5)", "unknown name 'nothing'"),
    ],
)
def test_what_cannot_be_is_named(name, message):
    with pytest.raises(ConfigurationError, match=message):
        written_method(name, 1000, 2)


def test_lists_are_split_outside_parentheses():
    assert split_names("a(b, c(d, e)),f , ") == ["a(b, c(d, e))", "f"]


@pytest.mark.slow
def test_a_run_takes_them(tmp_path, capsys):
    names = "natural,topk(k=3)+memory,qsgd(s=7)+momentum(0.9),topk(k=3)"
    assert main(["run", "--data", "digits", "--steps", "30", "--methods", names, "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    rows = {line.split("  ")[0]: line for line in shown.splitlines() if "  " in line}
    for name in ("natural", "topk(k=3)+memory", "qsgd(s=7)+momentum(0.9)", "topk(k=3)"):
        assert name in rows
    assert rows["qsgd(s=7)+momentum(0.9)"].split()[-1].startswith("[") and "not covered" in rows["topk(k=3)"]
