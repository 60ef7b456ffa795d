"""What a newcomer gets wrong: the message names the argument, what came and what is allowed."""

from __future__ import annotations

import numpy as np
import pytest

import theory as th
from theory.compressors import register
from theory.experiment.cli import main

V = np.array([1.0, -3.0, 2.0])


@pytest.mark.parametrize("key", [-1, 1.5, True, None, "rounding", 2**64])
@pytest.mark.parametrize("door", [th.compress, th.encode])
def test_a_key_is_a_whole_number(door, key):
    with pytest.raises(ValueError, match=r"key: got .*, allowed: a whole number from 0 to 2\*\*64 - 1"):
        door(th.TopK(1), V, key)


def test_the_largest_key_will_do():
    assert np.array_equal(th.compress(th.TopK(1), V, 2**64 - 1), th.compress(th.TopK(1), V, np.uint64(2**64 - 1)))


@pytest.mark.parametrize("message", ["hello", None, 3, [1, 2]])
def test_a_message_is_bytes(message):
    with pytest.raises(TypeError, match=f"message: got {type(message).__name__}, allowed: bytes"):
        th.decode(message)


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
        with pytest.raises(ValueError, match="v: got 'no number', allowed: at least one"):
            th.compress(th.TopK(1), empty, 0)
    with pytest.raises(TypeError, match=r"v: got 'int64'.*np.asarray\(v, float\)"):
        th.compress(th.TopK(1), [1, 2], 0)
    with pytest.raises(ValueError, match="v: got rows of different lengths"):
        th.compress(th.TopK(1), [[1.0], [2.0, 3.0]], 0)


@pytest.mark.parametrize("seed", [None, -1, 1.5, True, 2**64])
def test_a_run_names_its_seed(seed):
    method = th.ParallelSGD(th.TopK(1), step=th.Constant(0.1))
    with pytest.raises(ValueError, match="seed: got .*, allowed: a whole number from 0"):
        th.run(method, th.quadratic(np.ones(4), covariance=0.0), workers=1, steps=1, seed=seed)


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
    with pytest.raises(ValueError, match="belongs to TopK; .*from 128 on are free for your own"):
        register(th.QSGD, 2, lambda d: [])
    with pytest.raises(ValueError, match="from 128 on are free"):
        register(th.QSGD, 256, lambda d: [])


def test_an_audit_of_a_file_that_is_not_there(capsys):
    for name, text in (("nowhere.py", "there is no file nowhere.py"), ("qsdg", "unknown compressor 'qsdg'")):
        with pytest.raises(SystemExit):
            main(["audit", name])
        assert text in capsys.readouterr().err


BROKEN = """
from typing import NamedTuple
from theory.compressors import accumulate, capacity, payload_bits, quantize, register
from theory.settings import setting


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
    from theory.wire import frame

    file = tmp_path / "broken.py"
    file.write_text(BROKEN)
    try:
        assert main(["audit", str(file), "--quick"]) == 1
    finally:
        for cls in [cls for cls in registry.registered() if cls.__name__ == "Broken"]:
            del registry._examples[cls], frame._code_of[cls], frame._class_of[233]
    said = capsys.readouterr().out
    assert "Broken(k=3) does not compile" in said and f"quantize, {file}" in said
    assert 'symbols.value[0] = v[0] + "text"' in said and "broken.py" in said
