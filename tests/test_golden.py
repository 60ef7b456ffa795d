"""Runs against the golden record: bit for bit, but for what was changed on purpose, which stands here with its reason.

A quarter of the record is compared every time, one run a test; with the mark ``full`` the rest.
"""

from __future__ import annotations

import json

import golden_record
import numpy as np
import pytest
from conftest import find_mpirun

RECORD = json.loads(golden_record.RECORD.read_text())
NAMES = sorted(RECORD["runs"])
QUARTER, REST = NAMES[::4], [name for k, name in enumerate(NAMES) if k % 4]
ON_RANKS = {name: golden_record.cases()[name][2].get("ranks", 0) for name in NAMES}
DIGESTS = ("x", "memory", "costs")

ROWS = "on sparse rows now, which round x in another order"
VECTORS = "on sparse rows now, where x and the velocity are combinations of two vectors"
ONE_PAYLOAD = "iConEF is ConEF whose error compressor is Residual(A, C): both parts are one payload"
SCRATCH = "what is kept is the messages alone: a compressor's scratch is no longer counted"
ON_PURPOSE = {
    "top-k, no memory, loss": ({"x"}, ROWS),
    "rand-k, no memory, loss": ({"x"}, ROWS),
    "Bernoulli, no memory, loss": ({"x"}, ROWS),
    "sparse, radius": ({"x"}, "x is scaled into the ball, where its squared length is kept up to date"),
    "sparse, momentum": ({"x"}, VECTORS),
    "top-k, memory, momentum": ({"x", "memory"}, VECTORS),
    "partial, sparse": ({"memory"}, "on sparse rows now, where (1 - beta) e is what is kept"),
    "local, rcv1-like": ({"memory"}, "on sparse rows now, where a difference of models is added entry by entry"),
    "iConEF 1": ({"memory_bytes"}, ONE_PAYLOAD),
    "iConEF 2": ({"memory_bytes"}, ONE_PAYLOAD),
    "iConEF 2, QSGD": ({"memory_bytes"}, ONE_PAYLOAD),
    "ConEF, TernGrad shared": ({"memory_bytes"}, SCRATCH),
    "ConEF, PowerSGD": ({"memory_bytes"}, SCRATCH),
    "2 ranks: ConEF, opening": ({"memory_bytes"}, SCRATCH),
    "5 ranks: ConEF, opening": ({"memory_bytes"}, SCRATCH),
}
BYTES_NOW = {
    "iConEF 1": 152,
    "iConEF 2": 112,
    "iConEF 2, QSGD": 80,
    "ConEF, TernGrad shared": 80,
    "ConEF, PowerSGD": 80,
    "2 ranks: ConEF, opening": 80,
    "5 ranks: ConEF, opening": 80,
}


_on_ranks: dict[str, dict] = {}  # what runs on ranks gave: one job makes all of them


def measured(name: str, among) -> dict:
    """What the record has of a run, as it is now."""
    ranks = ON_RANKS[name]
    if not ranks:
        return golden_record.measure(name)
    find_mpirun()  # or skip
    if name not in _on_ranks:
        _on_ranks.update(golden_record.measure_on_ranks([n for n in among if ON_RANKS[n] == ranks], ranks))
    return _on_ranks[name]


def assert_as_recorded(name: str, found: dict) -> None:
    """Values to a relative 1e-9, memory_bytes exactly, digests where the tools are the record's.

    On another processor BLAS adds the squares of a float32 norm in another order, so that it has the accuracy of its
    type; the code of the record does so, too.
    """
    before, (free, _) = RECORD["runs"][name], ON_PURPOSE.get(name, (set(), ""))
    assert found.keys() == before.keys()
    single = "float32" in name and golden_record.tools() != RECORD["tools"]
    tolerance = 2.0**-22 if single else golden_record.TOLERANCE
    np.testing.assert_allclose(found["values"], before["values"], rtol=tolerance, atol=1e-12)
    if "memory_bytes" in free:
        assert found["memory_bytes"] == BYTES_NOW[name] < before["memory_bytes"]
    else:
        assert found["memory_bytes"] == before["memory_bytes"]
    if golden_record.tools() != RECORD["tools"]:
        return  # other processors and versions round otherwise
    if not free & set(DIGESTS):
        assert found["values"] == before["values"]
    wrong = [what for what in DIGESTS if what not in free and found.get(what) != before.get(what)]
    assert not wrong, f"{name}: other bits of {', '.join(wrong)}"


def marked(names) -> list:
    """Names, those of runs on ranks with the mark of what starts some."""
    return [pytest.param(name, marks=pytest.mark.mpi if ON_RANKS[name] else ()) for name in names]


@pytest.mark.parametrize("name", marked(QUARTER))
def test_a_quarter_of_the_runs_is_as_recorded(name):
    """Every fourth run by name."""
    assert_as_recorded(name, measured(name, QUARTER))


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("name", marked(REST))
def test_the_other_runs_are_as_recorded(name):
    """The rest of the record."""
    assert_as_recorded(name, measured(name, REST))


def test_the_quarter_has_all_kinds_of_runs():
    """Ranks of both numbers, and nothing in the list of changes that is no run."""
    assert {ON_RANKS[name] for name in QUARTER} == {0, 2, 5} and len(QUARTER) + len(REST) == len(RECORD["runs"])
    assert set(ON_PURPOSE) <= set(NAMES) and all(free and reason for free, reason in ON_PURPOSE.values())
    assert set(BYTES_NOW) == {name for name, (free, _) in ON_PURPOSE.items() if "memory_bytes" in free}


@pytest.mark.parametrize("change", ["x", "memory", "costs", "memory_bytes", "values"])
def test_another_result_would_be_noticed(change):
    """A digest counts where the tools are the record's; five values and the bytes count everywhere."""
    name = "replicas: QSGD, memory"
    found = dict(RECORD["runs"][name])
    assert_as_recorded(name, found)
    others = {"values": [1.0000001 * value for value in found["values"]], "memory_bytes": found["memory_bytes"] + 8}
    found[change] = others.get(change, "another")
    if change in DIGESTS and golden_record.tools() != RECORD["tools"]:
        assert_as_recorded(name, found)
    else:
        with pytest.raises(AssertionError):
            assert_as_recorded(name, found)
