"""What a newcomer gets wrong: the message names the argument, what came and what is allowed."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import theory as th
from theory.compressors import register
from theory.core.random import derive
from theory.experiment.cli import main

V = np.array([1.0, -3.0, 2.0])


def test_the_largest_key_will_do():
    assert np.array_equal(th.compress(th.TopK(1), V, 2**64 - 1), th.compress(th.TopK(1), V, np.uint64(2**64 - 1)))


def test_whatever_holds_the_bytes_of_a_message_will_do():
    message = th.encode(th.TopK(1), V, 0)
    for same in (bytearray(message), memoryview(message), np.frombuffer(message, np.uint8)):
        assert np.array_equal(th.decode(same), [0.0, -3.0, 0.0])
    for none in (b"", b"hello", np.empty(0)):
        with pytest.raises(th.WireError, match="too short"):
            th.decode(none)


def test_vectors_are_named_v():
    assert np.array_equal(th.compress(th.TopK(1), [1.0, -3.0], 0), [0.0, -3.0])
    for empty in ([], np.empty(0, np.float32)):
        with pytest.raises(ValueError, match=r"v: got 'shape \(0,\)', allowed: at least one number"):
            th.compress(th.TopK(1), empty, 0)
    with pytest.raises(TypeError, match=r"v: got 'int64'.*np.asarray\(v, float\)"):
        th.compress(th.TopK(1), [1, 2], 0)
    with pytest.raises(ValueError, match="v: got rows of different lengths"):
        th.compress(th.TopK(1), [[1.0], [2.0, 3.0]], 0)


def test_one_method_is_compared_as_one():
    method = th.ParallelSGD(th.Identity(), step=th.Constant(0.5))
    problem = th.quadratic(np.ones(4), covariance=0.0)
    options = {"workers": 2, "steps": 3, "x": "rounds", "x0": np.ones(4)}
    one, many = (th.compare(given, problem, **options) for given in (method, [method]))
    assert [row["label"] for row in one.rows] == [row["label"] for row in many.rows] == ["Identity"]
    with pytest.raises(TypeError, match="methods: got 'sgd', allowed: methods, such as ParallelSGD"):
        th.compare(["sgd"], problem, **options)


def test_factors_send_to_what_exists():
    with pytest.raises(TypeError, match="omega is not defined, see delta"):
        th.omega(th.TopK(1), 3)
    for factor in (th.delta, th.omega):
        with pytest.raises(TypeError, match=r"neither unbiased nor a contraction.*delta\(ScaledSign\(\), d\)"):
            factor(th.Sign(), 3)
        with pytest.raises(TypeError, match="c: got 3, allowed: a compressor"):
            factor(3, 3)
    assert th.delta(th.ScaledSign(), 4) == 0.25


def test_a_taken_code_says_which_are_free():
    with pytest.raises(ValueError, match="belongs to TopK; .*codes from 128 are free for user compressors"):
        register(th.QSGD, 2, lambda d: [])
    with pytest.raises(ValueError, match="from 128 are free"):
        register(th.QSGD, 256, lambda d: [])


BROKEN = """
from typing import NamedTuple
from theory.compressors import accumulate, capacity, payload_bits, quantize, register
from theory.core import setting


@setting
class Broken(NamedTuple):
    k: int = 3


@capacity.register(Broken)
def _(c, d):
    return 0, d, 0, 0


@quantize.register(Broken)
def _(c, state, v, stream, symbols):
    symbols.value[0] = v[0] + "text"


register(Broken, 233, lambda d: [Broken()])
"""


def test_an_audit_shows_the_line_that_does_not_compile(tmp_path, capsys):
    from theory.compressors import registry
    from theory.wire import frame as descriptor

    file = tmp_path / "broken.py"
    file.write_text(BROKEN)
    try:
        assert main(["audit", str(file), "--quick"]) == 1
    finally:
        for cls in [cls for cls in registry.registered() if cls.__name__ == "Broken"]:
            del registry._examples[cls], descriptor._code_of[cls], descriptor._class_of[233]
    said = capsys.readouterr().out
    assert "Broken(k=3) does not compile" in said and f"quantize, {file}" in said
    assert 'symbols.value[0] = v[0] + "text"' in said and "broken.py" in said


# --- numbers, problems, keys ------------------------------------------------------------------------------------------

EXAMPLES = {"int": 2, "float": 0.5}  # something for the other arguments


def scalars():
    """Each argument of each formula that is a number by its annotation."""
    for name in th.bounds.__all__:
        formula = getattr(th.bounds, name)
        if inspect.isfunction(formula):
            for argument, facts in inspect.signature(formula).parameters.items():
                if facts.annotation in ("int", "float", "int | None", "float | None"):
                    yield formula, argument


def test_no_formula_takes_a_text_for_a_number():
    tried = 0
    for formula, argument in scalars():
        arguments = inspect.signature(formula).parameters.values()
        given = {a.name: EXAMPLES.get(a.annotation, 0.5) for a in arguments if a.default is a.empty}
        try:
            formula(**(given | {argument: "1000"}))
        except ValueError:
            tried += 1  # this argument is named, or another one that this formula looks at first
    assert tried > 700


def test_a_formula_goes_to_another_process():
    formulas = [formula for formula in map(vars(th.bounds).get, th.bounds.__all__) if inspect.isfunction(formula)]
    assert len(formulas) > 200
    for formula in formulas:
        assert pickle.loads(pickle.dumps(formula)) is formula


def test_the_bounds_list_formulas_only():
    names = dir(th.bounds)
    assert "qsgd_variance" in names and "quantization" not in names and "formula" not in names
    assert not [name for name in names if inspect.ismodule(getattr(th.bounds, name))]


def test_a_batch_that_no_worker_can_draw():
    for first in (0, 10**8 + 1, 10**30):
        with pytest.raises(ValueError, match=f"first: got {first}, allowed: an integer from 1 to 100000000"):
            th.GrowingBatch(2.0, first=first)
    assert th.GrowingBatch(2.0, first=10**8).first == 10**8


def test_keys_derived_in_any_order():
    small, large = 5, 2**63 + 5
    for stream in (small, large, small):
        assert derive(stream, 3) == derive(np.uint64(stream), np.uint64(3)) == derive(stream, np.int64(3))
        assert derive(derive(stream, 1), large) == derive(np.uint64(derive(stream, 1)), np.uint64(large))
    assert derive(th.key(7), 3) == th.key(7, 3)  # what a key is made of, in compiled code as here
    for stream, name, argument in (
        (-1, 0, "stream"),
        (2**64, 0, "stream"),
        (0, -1, "name"),
        (0, 1.5, "name"),
        ("a", 0, "stream"),
        (True, 0, "stream"),
    ):
        with pytest.raises(ValueError, match=rf"^{argument}: got .*, allowed: an integer from 0 to 2\*\*64 - 1"):
            derive(stream, name)
