"""What the package lists of itself, from its registries and docstrings, and what a search finds."""

from __future__ import annotations

import inspect
import json

import pytest

import theory as th
from theory.compressors import registered
from theory.experiment.cli import main
from theory.experiment.listings import KINDS


def names(kind):
    return [entry.name for entry in th.listing(kind)]


def test_a_subpackage_that_is_called_lists_what_it_has():
    assert th.methods() == th.listing("methods") and th.problems() == th.listing("problems")
    assert th.compressors() == th.listing("compressors") and th.graphs() == th.listing("graphs")
    assert set(names("compressors")) == {cls.__name__ for cls in registered() if cls.__module__.startswith("theory.")}


def test_every_public_method_is_listed():
    """All classes with a round, and no other class."""
    public = {name for name in dir(th) if inspect.isclass(getattr(th, name)) and hasattr(getattr(th, name), "round")}
    assert {"ParallelSGD", "EF21", "ChocoSGD"} <= public <= set(names("methods"))
    assert {"mem_sgd", "qsvrg", "run_lock_free"} <= set(names("methods"))
    assert not {"run", "Mean", "Ring", "solve", "mixing"} & set(names("methods"))
    assert set(names("graphs")) >= {"Ring", "Torus"} and not {"Mixing"} & set(names("graphs"))
    assert {"Adam", "Mean"} <= set(names("servers")) and not {"ParallelSGD"} & set(names("servers"))
    assert {"ErrorFeedback", "NoFeedback"} <= set(names("feedback_rules"))
    assert {"logistic", "function"} <= set(names("problems")) and "solve" not in names("problems")


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_has_a_line_and_theorems_that_exist(kind):
    for entry in th.listing(kind):
        assert entry.what.endswith(".") and entry.kind == kind
        assert all(callable(getattr(th.bounds, name)) for name in entry.theorems)
        assert entry.name in repr(entry) and str(entry).startswith(entry.name)


def test_sources_theorems_and_ranks():
    of = {entry.name: entry for kind in KINDS for entry in th.listing(kind)}
    assert "Theorem 2.4" in of["mem_sgd"].source and "mem_sgd" in of["mem_sgd"].theorems
    assert "qsgd_variance" in of["QSGD"].theorems and "top_k_contraction" in of["TopK"].theorems
    assert "Stich" in of["TopK"].source  # of the theorem: its docstring cites nobody
    assert not of["run_lock_free"].ranks and of["qsvrg"].ranks and of["EF21"].ranks


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("variance reduction", "qsvrg"),
        ("low rank", "PowerSGD"),
        ("local steps", "LocalSGD"),
        ("torus", "Torus"),
        ("logistic", "logistic"),
        ("QSGD variance", "bounds.qsgd_variance"),
    ],
)
def test_a_search_finds_it(words, name):
    assert name in [entry.name for entry in th.search(words)]


def test_a_search_needs_all_of_its_words():
    assert (
        len(th.search("gossip")) > 0 and th.search("gossip sandwich") == () and repr(th.search("sandwich")) == "nothing"
    )
    for wrong in ("", "  ", 3):
        with pytest.raises(ValueError, match="words: got"):
            th.search(wrong)
    with pytest.raises(ValueError, match="kind: got 'method'"):
        th.listing("method")


@pytest.mark.parametrize("width", [60, 80])
def test_it_fits_the_terminal(width, monkeypatch):
    monkeypatch.setattr("theory.experiment.listings.line_width", lambda: width)
    for kind in ("methods", "graphs"):
        assert max(map(len, repr(th.listing(kind)).splitlines())) <= width


# --- the command line -------------------------------------------------------------------------------------------------


def test_list_shows_a_kind_and_writes_json(capsys, tmp_path):
    assert main(["list", "graphs"]) == 0
    assert capsys.readouterr().out == f"{th.graphs()!r}\n"
    assert main(["list", "graphs", "--json", "-"]) == 0
    (kind,) = json.loads(capsys.readouterr().out).items()
    assert kind[0] == "graphs" and [entry["name"] for entry in kind[1]] == names("graphs")
    assert main(["list", "--json", str(tmp_path / "all.json")]) == 0
    assert set(json.loads((tmp_path / "all.json").read_text())) == set(KINDS)


def test_audit_writes_json(capsys, tmp_path):
    assert main(["audit", "Natural", "--quick", "--d", "20", "-j", "1", "--json", str(tmp_path / "audit.json")]) == 0
    every = json.loads((tmp_path / "audit.json").read_text())
    found = next(one for one in every if one["name"] == "Natural")  # of its family
    assert found["unbiased"] and found["omega"] == th.bounds.natural_variance(20)


def test_versions_for_a_report(capsys):
    assert main(["version"]) == 0
    found = dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines())
    assert found["theory"] == th.__version__ and {"python", "numba", "mpi4py"} <= set(found)
