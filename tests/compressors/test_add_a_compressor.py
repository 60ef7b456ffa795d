"""The example of docs/add-a-compressor.md: it is short, it is a compressor in every respect, and the audit sees it."""

from __future__ import annotations

import ast
import importlib.util
import math
import re
import sys
from typing import NamedTuple

import numpy as np
import pytest
from conftest import ROOT, run_group

import theory as th
from theory.compressors import compressor_examples, max_payload_bits, registered, registry
from theory.wire import WireError, frame, overhead
from theory.wire import frame as descriptor

FILE = ROOT / "docs" / "examples" / "uniform_levels.py"
PAGE = ROOT / "docs" / "add-a-compressor.md"
TEXT = FILE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def UniformLevels():  # noqa: N802
    """The class, known for the time of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        for module, table in ((registry, "_examples"), (descriptor, "_class_of"), (descriptor, "_code_of")):
            patch.setattr(module, table, dict(getattr(module, table)))
        spec = importlib.util.spec_from_file_location("uniform_levels", FILE)
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "uniform_levels", module)
        spec.loader.exec_module(module)
        yield module.UniformLevels


def test_it_has_less_than_40_lines():
    tree = ast.parse(TEXT)
    spoken = range(1, tree.body[0].end_lineno + 1)  # the docstring
    code = [n for n, line in enumerate(TEXT.splitlines(), 1) if line.strip() and not line.strip().startswith("#")]
    assert len([n for n in code if n not in spoken]) < 40


def test_the_page_shows_the_file():
    page = PAGE.read_text(encoding="utf-8")
    (shown,) = re.findall(r"^<!-- file: (\S+) -->$", page, re.MULTILINE)
    assert (PAGE.parent / shown).resolve() == FILE


def plainly(v, s, stream):
    """The operator in NumPy from its definition, in double precision."""
    low, step = v.min(), (v.max() - v.min()) / s
    draws = np.array([th.uniform(stream, j) for j in range(v.size)])
    return low + step * np.floor((v - low) / step + draws)


@pytest.mark.parametrize("s", [1, 15, 2**15])
def test_it_is_its_definition(UniformLevels, s):
    for d in (2, 33, 200):
        v, stream = np.random.default_rng(d).standard_normal(d), th.key(d, "example")
        restored = th.compress(UniformLevels(s), v, stream, wire_dtype=np.float64)
        assert np.allclose(restored, plainly(v, s, stream), rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e-310, 1e36])
def test_its_messages_hold_what_it_restores(UniformLevels, scale):
    for d in (1, 2, 7, 41, 200):
        for c in (UniformLevels(1), UniformLevels(15), th.Bucketed(UniformLevels(3), 16)):
            v = scale * np.random.default_rng(d).standard_normal(d)
            message = th.encode(c, v, 5)
            restored = th.compress(c, v, 5)
            assert np.isfinite(restored).all()
            assert th.decode(message).tobytes() == restored.tobytes()
            assert 8 * len(message) <= max_payload_bits(c, d, 32) + 7 + 8 * overhead(frame.header_template(c, d, "f4"))
            assert scale or not restored.any()
            with pytest.raises(WireError):
                th.decode(message[:-1])


def test_levels_out_of_range_are_refused(UniformLevels):
    message = bytearray(th.encode(UniformLevels(2), np.arange(40.0), 0))  # two bits a level, and 3 is none
    start = frame.open_frame(bytes(message)).start
    message[start + 8 :] = b"\xff" * (len(message) - start - 8)
    buffer = np.frombuffer(bytes(message), np.uint8).copy()
    frame.seal(buffer, bytes(message[: start - frame.TAIL]), 64 + 80)
    with pytest.raises(WireError, match="payload"):
        th.decode(buffer.tobytes())


def test_the_registry_knows_it(UniformLevels):
    assert UniformLevels in registered()
    assert {c for c in compressor_examples(9) if type(c) is UniformLevels} == {UniformLevels(1), UniformLevels(15)}


def test_the_audit_confirms_its_closed_form(UniformLevels):
    found = th.audit(UniformLevels(1), d=20, inputs=["gaussian", "flat", "lognormal"], samples=1000, evaluations=1500)
    assert found.verdict == "as stated"
    assert found.unbiased
    # opposite extremes and nothing else: each of the d - 2 zeros errs by the extreme's size
    assert found.worst.error.estimate == pytest.approx((20 - 2) / 2, rel=0.02)
    assert found.wire.coded.estimate == (64 + 20) / 20


def test_the_audit_notices_a_wrong_closed_form(UniformLevels):
    right = th.omega.dispatch(UniformLevels)
    th.omega.register(UniformLevels, lambda c, d: d / (4.0 * c.s**2))
    try:
        found = th.audit(UniformLevels(1), d=20, inputs=["gaussian", "flat"], samples=1000, evaluations=1500)
    finally:
        th.omega.register(UniformLevels, right)
    assert not found.ok
    assert "above its closed form!" in found.verdict
    assert all(row.error.estimate < 5.0 for row in found.rows)  # the inputs alone would not have shown it


@pytest.mark.slow
def test_the_command_finds_it_in_its_file():
    arguments = ["-m", "theory.experiment", "audit", FILE, "--quick", "--d", "60"]
    answer = run_group([sys.executable, *arguments], timeout=120, env={"PYTHONPATH": ROOT})
    assert answer.returncode == 0, answer.stderr
    assert "UniformLevels(15)" in answer.stdout
    assert math.isclose(float(re.search(r"worst found (\S+) \(opposite", answer.stdout)[1]), 29.0, rel_tol=0.03)


class Unknown(NamedTuple):
    s: int


def test_what_is_no_compressor_is_refused():
    with pytest.raises(TypeError, match="a compressor"):
        th.audit(Unknown(1), d=5)
