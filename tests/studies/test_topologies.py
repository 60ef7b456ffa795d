"""Star, ring and all-reduce: costs against messages counted by hand, crossings, verdicts from made-up times."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import run_mpi

from theory import Network
from theory.reporting.figure_records import read_record
from theory.studies import topologies as study
from theory.studies.reports import topologies as pages

OPTIONS = study.Options(sizes=(64, 4096), nodes=(8, 64))


@pytest.mark.parametrize("nodes", [2, 3, 5, 8])
def test_costs_are_those_of_the_messages(nodes):
    """A star: in and out of the centre, one after the other; a ring: to the neighbours, of which 2 nodes have one."""
    into = [(w, 0) for w in range(1, nodes)]
    links = [*into, *((0, w) for w in range(1, nodes))]
    assert study.cost("star", nodes, 10) == (len(links), 10 * len(links), 10 * len(into))
    near = {(0 + 1) % nodes, (0 - 1) % nodes}
    assert study.cost("ring", nodes, 10) == (len(near), 10 * len(near), 10 * len(near))


def test_an_all_reduce_is_the_fastest_one():
    short, long = Network(1.0, 0.0), Network(0.0, 1.0)
    assert study.seconds_of(short, "all-reduce", 8, 100) == 3.0  # recursive doubling
    assert study.seconds_of(long, "all-reduce", 8, 100) == 175.0  # ring: 2 (7/8) 100
    assert study.seconds_of(short, "star", 8, 100) == 14.0


@pytest.mark.parametrize("network", [Network(1e-5, 1e-9), Network(2e-6, 1e-10, 3e-10)])
@pytest.mark.parametrize("nodes", [8, 16, 64])
def test_lines_cross_where_they_are_said_to(network, nodes):
    at = study.crossing(network, nodes)
    times = lambda m: [study.seconds_of(network, t, nodes, m) for t in ("ring", "all-reduce")]  # noqa: E731
    assert 0.0 < at < math.inf and times(at)[0] == pytest.approx(times(at)[1])
    assert times(0.9 * at)[0] < times(0.9 * at)[1] and times(1.1 * at)[0] > times(1.1 * at)[1]


@pytest.mark.parametrize("nodes", [8, 16, 64])
def test_gossip_is_at_a_tenth_after_so_many_rounds_and_not_before(nodes):
    rounds = study.rounds_to(0.1, nodes)
    x = np.cos(2.0 * np.pi * np.arange(nodes) / nodes)  # the slowest mode
    start = np.linalg.norm(x)
    for t in range(rounds):
        assert np.linalg.norm(x) > 0.1 * start, t
        x = (x + np.roll(x, 1) + np.roll(x, -1)) / 3.0
    assert np.linalg.norm(x) <= 0.1 * start


def rows(star, ring, reduce, model=1.0):
    at = {"message": 0.1, "star": star, "ring": ring, "all-reduce": reduce}
    return [study.Timed(t, size, at[t], model) for size in OPTIONS.sizes for t in study.KINDS]


def test_verdicts_follow_the_times():
    network = Network(1e-5, 1e-9)

    def verdicts(found, many=False):
        return [said.verdict for said in pages.statements(found, network, many, OPTIONS)]

    model = ["holds", "holds", "holds", "holds"]
    assert verdicts(rows(2.0, 1.0, 1.0)) == ["holds", "holds", "holds", *model]
    assert verdicts(rows(1.0, 2.0, 0.4)) == ["fails", "holds", "in part", *model]
    assert verdicts(rows(3.0, 3.5, 3.5)) == ["fails", "fails", "fails", *model]
    assert verdicts(rows(3.0, 3.2, 2.8))[:2] == ["undecided", "undecided"]  # ratios from 0.9 to 1.1
    assert verdicts(rows(2.0, 1.0, 1.0), many=True)[:3] == ["undecided"] * 3
    assert verdicts(rows(*[math.nan] * 3))[:3] == ["undecided"] * 3
    wide = OPTIONS._replace(sizes=(64, 4_194_304))
    long = [row._replace(size=4_194_304 if row.size == 4096 else row.size) for row in rows(2.0, 1.0, 1.0)]
    assert pages.statements(long, network, False, wide)[5].verdict == "in part"


def test_one_rank_has_the_model_alone():
    found = study.collect(quick=True, options=OPTIONS)
    assert found["ranks"] == 1 and all(math.isnan(row.seconds) and row.model > 0.0 for row in found["rows"])
    shown = pages.report(**found)
    assert [said.verdict for said in shown.statements[:3]] == ["undecided"] * 3 and "assumed" in shown.setting


@pytest.mark.slow
@pytest.mark.mpi
def test_two_ranks_measure_all_three(tmp_path):
    done = run_mpi(2, "-m", "theory.experiment", "study", "topologies", "--quick", "--figures", tmp_path, timeout=200)
    assert done.returncode == 0, done.stderr
    found = read_record(tmp_path / "records" / "study-topologies.json").found
    network, sizes = Network(*found["network"]), study.Options().sizes[::2]
    assert found["ranks"] == 2 and [row.topology for row in found["rows"]] == [*study.KINDS] * len(sizes)
    for row in found["rows"]:
        assert 0.0 < row.seconds < 10.0 and row.model == study.seconds_of(network, row.topology, 2, row.size)
    assert all(low <= value <= high for low, value, high in zip(found["low"], network, found["high"], strict=True))


@pytest.mark.parametrize("bad", [{"sizes": (64,)}, {"sizes": (64, 66)}, {"nodes": (2,)}, {"nodes": ()}])
def test_options_outside_the_domain_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        study.Options(**bad)
