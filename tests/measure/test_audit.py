"""The audit accuses what is wrong, by name, and nothing else; its search knows the worst cases that theory knows."""

from __future__ import annotations

import math
import sys
import textwrap
from typing import NamedTuple

import numpy as np
import pytest
from conftest import ROOT
from scipy.optimize import minimize_scalar

import theory as th
from theory.bounds import least_variance, qsgd_variance
from theory.claims.mutants import DOWN, INVERTED, NEAREST, WrongQSGD
from theory.compressors import base, closed_forms, registered, registry
from theory.core import setting
from theory.experiment.audit_command import chosen, family_of, page
from theory.experiment.cli import main
from theory.measure import (
    INPUTS,
    AuditTable,
    audit,
    audit_messages,
    input_vectors,
    mean_interval,
    moments,
    worst_vectors,
)
from theory.measure.audit_messages import EMPTY, _pieces
from theory.wire import frame as descriptor
from theory.wire.bits import read_floats, write_floats

FEW = ["gaussian", "lognormal", "flat", "one-sparse"]
SMALL = {"inputs": FEW, "samples": 1000, "evaluations": 800}


@pytest.fixture
def states(monkeypatch):
    """``states(cls, function, value)``: the closed form of a class that has none, for the time of one test."""
    given = []

    def state(cls, function, value):
        given.append((cls, function))
        function.register(cls, value)

    yield state
    for cls, function in given:
        function.register(cls, function.dispatch(object))


@pytest.fixture
def own_tables(monkeypatch):
    """Whatever a test registers is forgotten afterwards."""
    for module, table in ((registry, "_examples"), (descriptor, "_class_of"), (descriptor, "_code_of")):
        monkeypatch.setattr(module, table, dict(getattr(module, table)))


# --- what is right passes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("c", [th.QSGD(2), th.RandK(3, unbiased=True), th.RandK(3), th.TopK(3), th.Identity()], ids=str)
def test_what_is_right_passes(c, seed):
    found = audit(c, d=30, seed=seed, **SMALL)
    assert found.verdict == "as stated"
    assert found.ok
    assert found.unbiased == (found.omega is not None)
    closed = found.omega if found.omega is not None else 1.0 - found.delta
    assert found.worst.error.low <= closed * (1 + 1e-9) + 1e-12
    for row in found.rows:
        assert row.nonzeros_stated == pytest.approx(row.nonzeros.estimate, abs=row.nonzeros.half + 1e-9)
    assert found.wire.stated == pytest.approx(found.wire.coded.estimate, abs=found.wire.coded.half + 1e-9)


def test_the_same_numbers_whatever_the_threads():
    one, two, other = (
        audit(th.QSGD(3), d=20, samples=200, evaluations=150, inputs=FEW, threads=threads, seed=seed)
        for threads, seed in ((1, 5), (2, 5), (2, 6))
    )
    assert one.rows == two.rows
    assert one.worst.error == two.worst.error
    assert other.rows != two.rows


def test_an_equality_is_never_called_above_its_closed_form():
    """Rand-k attains its variance at every vector, and on sparse ones few samples scatter widely around it."""
    for seed in range(8):
        found = audit(th.RandK(2, unbiased=True), d=40, seed=seed, inputs=FEW, samples=64, evaluations=300)
        assert found.ok, found.verdict


# --- what is wrong is named -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [INVERTED, NEAREST, DOWN])
def test_a_wrong_rounding_is_biased(states, fault):
    states(WrongQSGD, closed_forms.omega, lambda c, d: 1e6)
    found = audit(WrongQSGD(3, fault), d=30, **SMALL)
    assert not found.unbiased
    assert found.z > 5.0
    assert found.faults[0].startswith("biased!")


def test_the_right_rounding_in_the_same_code_is_not(states):
    states(WrongQSGD, closed_forms.omega, lambda c, d: qsgd_variance(d=d, s=c.s))
    found = audit(WrongQSGD(3), d=30, **SMALL)
    assert found.unbiased
    assert found.verdict == "as stated"


def test_nan_for_the_vector_of_zeros_is_named(own_tables, states):
    registry.register(Counting, 201, lambda d: [Counting()])
    states(Counting, closed_forms.omega, lambda c, d: 0.0)
    (fault,) = audit(Counting(divides=True), d=30, **SMALL).faults
    assert fault.startswith("not finite!")


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_wrong_variance_is_found_by_the_search_alone(states, share):
    """sup = sqrt(d)/s - 1 is attained by flat vectors, which are not among the inputs here."""
    d, s = 64, 2
    states(WrongQSGD, closed_forms.omega, lambda c, d: share * (math.sqrt(d) / s - 1.0))
    inputs = {"spike": np.eye(1, d)[0] + 1e-3}
    found = audit(WrongQSGD(s), d=d, inputs=inputs, samples=2000, evaluations=800)
    assert all(row.error.high < found.omega for row in found.rows)
    assert any(fault.startswith("above its closed form! (omega = 3.") for fault in found.faults)


def test_a_wrong_contraction_is_named(states, monkeypatch):
    states(WrongQSGD, closed_forms.delta, lambda c, d: 0.9)
    found = audit(WrongQSGD(1), d=30, **SMALL)
    assert any(fault.startswith("error above its closed form! (delta = ") for fault in found.faults)


def test_wrong_counts_are_named(states):
    states(WrongQSGD, closed_forms.expected_nonzeros, lambda c, v: 1.0 + th.expected_nonzeros(th.QSGD(c.s), v))
    states(WrongQSGD, closed_forms.expected_payload_bits, lambda c, v: 31.0 * len(v))
    found = audit(WrongQSGD(2), d=30, **SMALL)
    assert [fault.split("!")[0] for fault in found.faults] == [
        "non-zeros differ from their closed form",
        "payload differs from its closed form",
    ]


def test_a_message_that_decodes_to_something_else_is_named(monkeypatch):
    monkeypatch.setattr(audit_messages, "decode", lambda message: np.zeros(30))
    found = audit(th.QSGD(3), d=30, **SMALL)
    assert found.faults == ("decodes to another vector than it compresses to!",)


def test_nothing_stated_is_nothing_to_contradict():
    found = audit(WrongQSGD(3), d=30, **SMALL)
    assert (found.omega, found.delta) == (None, None)
    assert found.verdict == "nothing stated"
    assert found.ok
    assert found.worst.v @ found.worst.v == pytest.approx(30)  # where no scale is free of units, the search keeps one


# --- the search -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "s", "sup"),
    [(5, 1, math.sqrt(5) - 1), (16, 1, 3.0), (16, 2, 1.0), (20, 2, math.sqrt(20) / 2 - 1), (20, 8, 20 / 256)],
)
def test_it_finds_the_worst_case_of_qsgd(d, s, sup):
    """sqrt(d)/s - 1 for s <= sqrt(d)/2, and d/(4 s^2) up to one coordinate beyond."""
    found = audit(th.QSGD(s), d=d, inputs=["gaussian"], samples=4000, evaluations=2000)
    assert found.worst.error.estimate == pytest.approx(sup, rel=0.06)
    assert found.worst.error.low <= sup * (1 + 1e-12)


def test_it_finds_the_worst_case_of_qsgd_with_the_max_norm():
    d = 24
    at = minimize_scalar(lambda x: -(d - 1) * x * (1 - x) / (1 + (d - 1) * x * x), bounds=(0, 1), method="bounded")
    found = audit(th.QSGD(1, math.inf), d=d, inputs=["gaussian"], samples=4000, evaluations=2000)
    assert found.worst.error.estimate == pytest.approx(-at.fun, rel=0.05)


def test_it_finds_the_worst_case_of_one_bucket():
    found = audit(th.Bucketed(th.QSGD(1), 9), d=33, inputs=["gaussian"], samples=4000, evaluations=1500)
    assert found.worst.error.estimate == pytest.approx(2.0, rel=0.05)


def test_it_climbs_from_where_nothing_is_known(monkeypatch):
    """From Gaussian vectors alone: the worst for top-1 is flat, with an error of 1 - 1/d."""
    module = sys.modules[worst_vectors.__module__]
    rng = np.random.default_rng(0)
    monkeypatch.setattr(module, "known_worst", lambda c, d: {"gaussian": rng.standard_normal(d)})
    best = worst_vectors(th.TopK(1), 6, evaluations=3000, seed=1)[0]
    size = np.sort(np.abs(best.v))
    assert 1.0 - size[-1] ** 2 / (size @ size) > 0.97 * (1 - 1 / 6)


# --- state ------------------------------------------------------------------------------------------------------------


@setting
class Counting(NamedTuple):
    """Exact in its first message, twice as long in its second; it may divide by the sum of all sizes and multiply."""

    divides: bool = False


@base.capacity.register(Counting)
def _(c, d):
    return 0, d, 0, 0


@base.state_size.register(Counting)
def _(c, d):
    return 1


@base.quantize.register(Counting)
def _(c, state, v, stream, symbols):
    state[0] += 1.0
    total = np.abs(v).sum() if c.divides else 1.0
    for j in range(v.size):
        symbols.value[j] = state[0] * (v[j] / total) * total
    symbols.count[1] = v.size


@base.accumulate.register(Counting)
def _(c, symbols, weight, out):
    for j in range(out.size):
        out[j] += weight * symbols.value[j]


@base.payload_bits.register(Counting)
def _(c, symbols, d):
    return 8 * symbols.value.itemsize * d


@base.pack.register(Counting)
def _(c, symbols, d, buffer, cursor):
    return write_floats(buffer, cursor, symbols.value[:d])


@base.unpack.register(Counting)
def _(c, buffer, cursor, end, d, symbols):
    return read_floats(buffer, cursor, symbols.value[:d]) if cursor + 8 * symbols.value.itemsize * d <= end else -1


@setting
class Miscounting(NamedTuple):
    """It sends v, and says of the length of its message ``share`` of the truth."""

    share: float
    divides: bool = False


for ask in (base.capacity, base.state_size, base.quantize, base.accumulate, base.pack, base.unpack):
    ask.register(Miscounting)(ask.table[Counting].py_func)


@base.payload_bits.register(Miscounting)
def _(c, symbols, d):
    return int(c.share * 8 * symbols.value.itemsize * d)


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_a_wrong_count_of_bits_is_named_and_harms_nothing(own_tables, share):
    registry.register(Miscounting, 202, lambda d: [Miscounting(share)])
    found = audit(Miscounting(share), d=3000, inputs=FEW, samples=50, evaluations=100)
    assert f"payload_bits counts {int(share * 96_000)} bits, pack writes 96000" in found.verdict
    assert not found.ok


def test_state_starts_afresh_for_every_draw(own_tables, states):
    registry.register(Counting, 201, lambda d: [Counting()])
    states(Counting, closed_forms.omega, lambda c, d: 0.0)
    found = audit(Counting(), d=12, inputs=FEW, samples=50, evaluations=100)
    assert found.verdict == "as stated"
    assert found.state == 1
    assert found.worst.error.high < 1e-30
    assert "state of 1 numbers" in str(found)


# --- inputs -----------------------------------------------------------------------------------------------------------


def test_inputs_are_scaled_and_repeat():
    first, again, other = input_vectors(50), input_vectors(50), input_vectors(50, seed=1)
    assert set(first) <= set(INPUTS)
    assert {"gaussian", "laplace", "student-t3", "lognormal", "flat", "one-sparse", "rcv1 at 0"} <= set(first)
    for name, v in first.items():
        assert v @ v == pytest.approx(50)
        assert np.array_equal(v, again[name])
    assert not np.array_equal(first["gaussian"], other["gaussian"])
    assert np.count_nonzero(first["one-sparse"]) == 1
    assert not np.array_equal(first["rcv1 at 0"], first["rcv1 near x*"])


def test_the_gradient_is_the_gradient(monkeypatch):
    """At its own length nothing is drawn: minus half the mean of b_i a_i, up to the scale."""
    monkeypatch.delenv("THEORY_DATA", raising=False)  # the synthetic twin, also where the real data are at hand
    sys.modules["theory.measure.inputs"]._gradients.cache_clear()
    data = th.load_data("rcv1-like")
    v = input_vectors(data.d, ["rcv1 at 0"])["rcv1 at 0"]
    mean = data.X.T @ (np.asarray(data.y, float) / data.n)
    assert np.allclose(v, -mean * math.sqrt(data.d) / np.linalg.norm(mean), atol=1e-9)


def test_own_inputs_are_taken_as_they_are():
    v = np.array([3.0, 0.0, 0.0, 4.0])
    found = audit(th.TopK(1), d=4, inputs=v, samples=10, evaluations=60)
    (row,) = found.rows
    assert (row.name, row.error.estimate) == ("given", 9 / 25)
    assert audit(th.TopK(1), d=4, inputs={"mine": v}, samples=10, evaluations=60).rows[0].name == "mine"


# --- bits -------------------------------------------------------------------------------------------------------------


def test_entropy_of_symbols():
    flat = {"flat": np.ones(64)}
    options = {"d": 64, "inputs": flat, "samples": 10, "evaluations": 60}
    assert audit(th.QSGD(1, math.inf), **options).wire.entropy == pytest.approx(32 / 64)  # the norm alone: all are 1
    # at s = 4 a coordinate is 0 or 1 with probability 1/2 each, and the bits are independent
    assert audit(th.QSGD(4), **options).wire.entropy == pytest.approx(1.0 + 32 / 64, rel=1e-3)
    kept = audit(th.RandK(8), **options).wire.entropy - 8 * 32 / 64
    assert (
        math.log2(math.comb(64, 8)) / 64 < kept < 8 * 6 / 64
    )  # distances tell less than the whole set, more than fixed
    buckets = audit(th.Bucketed(th.QSGD(2), 16), **options).wire.entropy
    assert buckets == pytest.approx(1.0 + 4 * 32 / 64, rel=1e-3)  # four norms, half a level each


def test_symbols_of_compositions_are_not_taken_from_the_wrong_place():
    level = np.full(8, EMPTY, np.int32)
    level[:3] = 1, 2, 3  # of the second of two parts, whose room is not the second half
    assert [list(piece) for piece in _pieces(level, np.array([0, 3]), EMPTY)] == [[1, 2, 3]]
    level[4:7] = 4, 5, 6
    assert [list(piece) for piece in _pieces(level, np.array([3, 3]), EMPTY)] == [[1, 2, 3], [4, 5, 6]]
    # the 16 numbers that the inner compressor would send do not travel: they must not be counted as floats
    c = th.Composed(th.QSGD(4), th.RandK(16, unbiased=True))
    assert audit(c, d=64, inputs={"flat": np.ones(64)}, samples=10, evaluations=60).wire.entropy is None


def test_the_frame_is_what_stands_around_the_payload():
    found = audit(th.TopK(3), d=30, **SMALL)
    assert found.wire.frame + math.ceil(30 * found.wire.coded.estimate / 8) == len(
        th.encode(th.TopK(3), np.ones(30), 0)
    )


def unbiased() -> list:
    """All of them; those that wrap another are slow, for what takes long is to compile them, and no other test does."""
    found, wrappers = [], (th.Bucketed, th.ByLayer, th.EntropyCoded, th.Residual, th.Lossless)
    for c in th.compressor_examples(60):
        try:
            th.omega(c, 60)
        except TypeError:
            continue
        found.append(pytest.param(c, id=str(c), marks=pytest.mark.full if isinstance(c, wrappers) else ()))
    assert len(found) >= 20
    return found


@pytest.mark.parametrize("c", unbiased())
def test_no_unbiased_compressor_beats_the_bound(c):
    for v in input_vectors(60, ["gaussian", "lognormal"]).values():
        found = moments(c, v, 1000)
        assert found.variance().high >= least_variance(v, mean_interval(found.nonzeros, certain=True).high)


def test_ternary_attains_the_bound():
    v = input_vectors(60, ["laplace"])["laplace"]
    kept = np.abs(v).sum() / np.linalg.norm(v)  # QSGD with one level keeps i with probability |v_i| / ||v||
    attained = np.abs(v).sum() / np.linalg.norm(v) - 1.0  # and errs by ||v||_1 ||v||_2 - ||v||^2
    assert least_variance(v, kept) == pytest.approx(attained, rel=1e-12)
    assert least_variance(v, 1e9) == 0.0
    for bad in ((np.zeros(3), 1.0), (v, 0.0), ([np.nan], 1.0)):
        with pytest.raises(ValueError, match="allowed"):
            least_variance(*bad)


# --- texts, the command, the page -------------------------------------------------------------------------------------


def test_it_prints():
    found = audit(th.QSGD(3), d=30, **SMALL)
    text = str(found)
    assert text == repr(found)
    for word in ("QSGD(3), d = 30", "as stated", "omega", "non-zeros", "payload", "memcpy", *FEW):
        assert word in text
    table = str(AuditTable([found, audit(th.TopK(3), d=30, **SMALL)]))
    assert len({len(line.split("  ")[0]) for line in table.splitlines()}) > 1
    assert table.count("TopK(3)") == 2


def test_the_command(capsys):
    assert main(["audit", "TopK", "--quick", "--d", "30"]) == 0
    said = capsys.readouterr().out
    assert "TopK(3), d = 30" in said
    assert "1 of 1 compressors" in said


WRONG = """
from theory.claims.mutants import WrongQSGD
from theory.compressors import omega, register

omega.register(WrongQSGD, lambda c, d: 0.01)
register(WrongQSGD, 254, lambda d: [WrongQSGD(1)])
"""


def test_the_command_fails_where_something_is_wrong(tmp_path, capsys, own_tables, states):
    file = tmp_path / "wrong.py"
    file.write_text(textwrap.dedent(WRONG))
    states(WrongQSGD, closed_forms.omega, lambda c, d: 0.01)  # so that it is forgotten
    assert main(["audit", str(file), "--quick", "--d", "30"]) == 1
    assert "above its closed form!" in capsys.readouterr().out


def test_families_and_classes_are_chosen():
    assert {type(c) for c, _ in chosen(["random_and_top_k"], 40)} == {th.TopK, th.RandK, th.Threshold}
    assert {type(c) for c, _ in chosen(["qsgd", "identity"], 40)} == {th.QSGD, th.Identity}
    assert len(chosen([], 40)) == len(list(th.compressor_examples(40)))
    assert family_of(th.TopK(1)) == "random and top k"


def test_the_page_and_the_figure(tmp_path):
    from theory.experiment.audit_command import draw

    table = AuditTable(audit(c, d=30, **SMALL) for c in (th.QSGD(3), th.TopK(3), th.Identity()))
    folder = tmp_path / "figures"
    paths = draw(table, folder / "compressors.png")
    assert sorted(path.name for path in paths) == ["compressors.pdf", "compressors.png"]
    assert all(path.stat().st_size > 1000 for path in paths)
    text = page(table, str(folder / "compressors"), str(tmp_path / "docs" / "compressors.md"))
    assert "(../figures/compressors.png)" in text
    assert page(table, str(folder / "compressors"), str(tmp_path / "docs" / "compressors.md"), text) == text
    with pytest.raises(ValueError, match="marks"):
        page(table, str(folder / "compressors"), str(tmp_path / "page.md"), "# A page\n")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == 2 * ["QSGD(3)", "TopK(3)", "Identity"]
    assert len({row.count("|") for row in rows[:3]}) == len({row.count("|") for row in rows[3:]}) == 1


def test_the_committed_page_has_every_compressor():
    text = (ROOT / "docs" / "compressors.md").read_text(encoding="utf-8")
    for cls in registered():
        if cls.__module__.startswith("theory."):
            assert f"| `{cls.__name__}" in text, f"draw it again: python -m theory.experiment audit --markdown {cls}"


SOME = ("TopK", "QSGD", "HalfPrecision")  # to compile all of them takes minutes


@pytest.mark.slow
def test_the_command_finds_them_as_stated_and_draws_the_page(tmp_path):
    """The rest are drawn, and audited, by the command that makes docs/compressors.md."""
    (tmp_path / "docs").mkdir()
    page_path = tmp_path / "docs" / "compressors.md"
    assert main(["audit", *SOME, "--quick", "--d", "60", "--markdown", str(page_path), "-j", "2"]) == 0
    assert (tmp_path / "figures" / "compressors.pdf").exists()
    text = page_path.read_text(encoding="utf-8")
    for name in SOME:
        assert text.count(f"`{name}") >= 2
    places = [text.index(f"`{cls.__name__}") for cls in registered() if cls.__name__ in SOME]
    assert places == sorted(places), "in the registered order, whichever process was first"


@pytest.mark.full
def test_the_command_audits_all_of_them():
    assert main(["audit", "--quick", "--d", "60", "-j", "2"]) == 0


# --- functions --------------------------------------------------------------------------------------------------------


def coins(v, rng):
    return 2.0 * v * (rng.random(v.size) < 0.5)


def short_coins(v, rng):
    return 1.9 * v * (rng.random(v.size) < 0.5)


def largest(v):
    kept = np.argsort(-np.abs(v), kind="stable")[:4]
    return np.where(np.isin(np.arange(v.size), kept), v, 0.0)


def of_function(function, inputs=("gaussian", "flat"), **stated):
    return audit(th.compressor(function, **stated), d=40, inputs=list(inputs), samples=400, evaluations=300)


def test_the_audit_of_a_function_finds_what_it_states():
    fair, top = of_function(coins, omega=1.0), of_function(largest, delta=0.1)
    assert fair.verdict == top.verdict == "as stated" and fair.unbiased and not top.unbiased
    assert fair.worst.error.estimate == pytest.approx(1.0, rel=0.1)
    assert top.worst.error.estimate == pytest.approx(0.9) and top.worst.where == "flat"  # 1 - k/d
    assert fair.wire is None and fair.timing is None
    assert "a function has no format of its own" in str(fair) and "compressor(coins)" in str(fair)


def test_the_audit_of_a_function_refutes_what_is_wrong():
    assert of_function(coins, omega=0.8).faults[0].startswith("above its closed form! (omega = 1")
    assert of_function(largest, delta=0.2).faults[0].startswith("error above its closed form! (delta = 0.1")
    wrong = of_function(short_coins, omega=1.0)  # biased by 0.05 v, which pairs of messages alone do not show
    assert not wrong.unbiased and wrong.faults[0].startswith("biased! (by 0.0")
    assert all(row.bias.low <= 0.0 for row in wrong.rows)


def test_the_search_finds_what_no_input_shows():
    """Wrong only where one entry is more than 100 times the mean square: no input of this audit is so."""

    def careless(v):
        return v * (0.0 if np.max(np.abs(v)) ** 2 > 0.9 * np.sum(v * v) else 0.9)

    found = of_function(careless, delta=0.99)
    assert not found.ok and found.worst.error.estimate == pytest.approx(1.0)
    assert max(row.error.estimate for row in found.rows) < 0.011


def test_where_a_function_states_nothing_its_factor_is_measured():
    fair, top = of_function(coins), of_function(largest)
    assert fair.verdict == top.verdict == "nothing stated"
    assert "\nomega        stated -, measured 1" in str(fair) and "\ndelta        stated -, measured 0.1 " in str(top)
    table = str(AuditTable([fair, audit(th.TopK(4), d=40, samples=64, evaluations=100)]))
    assert "compressor(coins)" in table


def test_a_class_of_half_the_right_factor_is_biased_along_v():
    found = audit(th.Scaled(th.RandK(20, unbiased=True), 0.95), d=40, inputs=["gaussian"], samples=400, evaluations=100)
    assert not found.unbiased
