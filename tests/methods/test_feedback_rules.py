"""Feedback rules that hold their memory in a form of their own, against a few lines of NumPy; and their frontier."""

import warnings

import numpy as np
import pytest

import theory as th
from theory.core.random import derive
from theory.methods.memory.stability import frontier, warn_if_unstable

D, WORKERS, STEPS, SEED, ETA = 12, 2, 25, 3, 0.2
CURVATURE, START = np.linspace(0.5, 1.5, D), np.cos(np.arange(D))
SKETCH = th.CountSketch(10, hash=th.BALANCED)
RULES = {
    "conef": th.ContractiveErrorFeedback(SKETCH),
    "conef, a part at home": th.ContractiveErrorFeedback(SKETCH, beta=0.3),
    "iconef, version 1": th.ImprovedContractiveErrorFeedback(SKETCH, version=1),
    "iconef, version 2": th.ImprovedContractiveErrorFeedback(SKETCH, version=2),
    "partial": th.PartialErrorFeedback(0.3),
    # the keys of these two seeds are on either side of 2**63
    "linear sketch": th.LinearSketchFeedback(th.CountSketch(6, hash=th.FIXED, seed=5), beta=0.4),
    "linear sketch, equally full": th.LinearSketchFeedback(th.CountSketch(6, hash=th.BALANCED, seed=0), beta=0.4),
}


def run(feedback, steps=STEPS, k=9, record_every=None):
    problem = th.quadratic(CURVATURE, covariance=0.0)
    method = th.ParallelSGD(th.RandK(k), step=th.Constant(ETA), feedback=feedback)
    return th.run(
        method,
        problem,
        workers=WORKERS,
        steps=steps,
        seed=SEED,
        x0=START,
        wire_dtype=np.float64,
        record_every=record_every,
    )


def name_stream(stream, *path):
    for part in path:
        stream = np.uint64(derive(stream, part))
    return stream


def compress(c, v, stream):
    return th.compress(c, v, stream, wire_dtype=np.float64)


def remembered(rule, e, p, sent, stream):
    """What a worker holds after its message: the slides' last line."""
    rest = p - sent
    if isinstance(rule, th.PartialErrorFeedback):
        return rule.beta * e + rest
    if isinstance(rule, th.ContractiveErrorFeedback):
        return compress(rule.error_compressor, rule.beta * e + rest, stream)
    first = compress(rule.error_compressor if rule.version == 1 else th.RandK(9), rest, name_stream(stream, 0))
    return first + compress(rule.error_compressor, rest - first, name_stream(stream, 1))


def reference(rule):
    """x and the memories after STEPS steps; of the linear sketch, from the true residuals, which it never has."""
    rounding, memory = (name_stream(th.key(SEED, purpose), 0) for purpose in ("rounding", "memory"))
    x, e, residual = START.copy(), np.zeros((WORKERS, D)), np.zeros((WORKERS, D))
    for t in range(STEPS):
        g, sent = CURVATURE * x, np.zeros((WORKERS, D))
        for w in range(WORKERS):
            p = ETA * g + (1 - getattr(rule, "beta", 0.0)) * e[w]
            sent[w] = compress(th.RandK(9), p, name_stream(rounding, w, t))
            residual[w] += ETA * g - sent[w]
            if isinstance(rule, th.LinearSketchFeedback):
                e[w] = compress(rule.sketch, residual[w], name_stream(np.uint64(0), np.uint64(rule.sketch.seed)))
            else:
                e[w] = remembered(rule, e[w], p, sent[w], name_stream(memory, w, t))
        x = x - sent.mean(axis=0)
    return x, e


@pytest.mark.parametrize("name", RULES)
def test_rule_follows_the_reference(name):
    result, (x, e) = run(RULES[name]), reference(RULES[name])
    assert np.abs(e).max() > 1e-4  # there is something to compare
    np.testing.assert_allclose(result.last, x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.memory, e, rtol=1e-12, atol=1e-12)


def test_bytes_that_are_held():
    key, counters, spare = 8, 8 * 10, 8  # a key, ten counters of 8 bytes, and the word that bits may run into
    entries = 9 * (4 + 64)  # bits of nine positions and nine numbers
    sketch = key + counters + spare
    expected = {
        "conef": sketch,
        "conef, a part at home": sketch,
        "iconef, version 1": 2 * (key + counters) + spare,
        "iconef, version 2": 8 * -(-(entries + 8 * (key + counters)) // 64) + spare,  # in whole words
        "partial": 8 * D,
        "linear sketch": 8 * 6,
        "linear sketch, equally full": 8 * 6,
    }
    assert {name: run(rule, steps=1).memory_bytes for name, rule in RULES.items()} == expected


# --- beyond the frontier ----------------------------------------------------------------------------------------------


def test_a_memory_that_explodes_ends_the_run_and_was_announced():
    with pytest.warns(th.UnstableMemoryWarning, match=r"kappa = 3.25 .*theta = 5\.5.*theta < 1, ") as caught:
        result = run(th.ContractiveErrorFeedback(th.CountSketch(2)), steps=2000, k=6, record_every=10)
    assert len(caught) == 1 and caught[0].filename == __file__  # once, and where run was called
    assert not result.success and result.status == 2 and "diverged" in result.message
    assert result.nit < 2000 and np.isfinite(result.history["f"][:-1]).all()


@pytest.mark.parametrize("name", RULES)
def test_nothing_is_said_below_the_frontier(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", th.UnstableMemoryWarning)
        assert run(RULES[name]).success


def kappa(feedback, compressor, d=1000):
    found = frontier(feedback, compressor, d)
    return found and found.kappa


def test_kappa_of_every_rule():
    balanced = th.CountSketch(500, hash=th.BALANCED)  # theta = 1
    conef = th.ContractiveErrorFeedback
    assert kappa(conef(balanced), th.RandK(400)) == pytest.approx(1.2)
    assert kappa(conef(balanced), th.TopK(400)) == pytest.approx(1.2)
    assert kappa(conef(balanced, 0.5), th.RandomBlock(400)) == pytest.approx(2 * (0.6 + 0.4 * 0.25))
    wide = th.CountSketch(250, hash=th.BALANCED)  # theta = 3
    assert kappa(th.ImprovedContractiveErrorFeedback(wide, 1), th.RandK(400)) == pytest.approx(6.0)
    assert kappa(th.ImprovedContractiveErrorFeedback(wide, 2), th.RandK(400)) == pytest.approx(2.8 * 0.6)
    assert kappa(th.LinearSketchFeedback(wide, 0.25), th.Identity()) == pytest.approx(4.0)  # (1 - 3)^2, 4 in a bucket
    assert kappa(th.LinearSketchFeedback(wide, 0.25), th.RandK(1000)) == pytest.approx(4.0)
    assert kappa(th.LinearSketchFeedback(wide, 0.0), th.RandK(1)) == pytest.approx(1 - 4e-3)  # one in a thousand


@pytest.mark.parametrize(
    "feedback, compressor",
    [
        (th.NoFeedback(), th.TopK(5)),
        (th.ErrorFeedback(), th.TopK(5)),
        (th.PartialErrorFeedback(0.5), th.TopK(5)),
        (th.ContractiveErrorFeedback(th.TopK(5)), th.TopK(5)),  # not unbiased
        (th.ContractiveErrorFeedback(th.CountSketch(10)), th.RandK(5, unbiased=True)),  # not a contraction
        (th.ContractiveErrorFeedback(th.CountSketch(10), 0.5), th.TopK(5)),  # what is sent is not a share of the memory
        (th.ContractiveErrorFeedback(th.CountSketch(10), 1.0), th.RandK(5)),  # nothing is fed back
        (th.LinearSketchFeedback(th.CountSketch(10)), th.TopK(5)),
    ],
)
def test_without_a_closed_form_nothing_is_said(feedback, compressor):
    assert kappa(feedback, compressor) is None


@pytest.mark.parametrize("rule", [th.ContractiveErrorFeedback, th.ImprovedContractiveErrorFeedback])
def test_a_biased_error_compressor_is_warned_of(rule):
    def warned(error_compressor) -> list[str]:
        method = th.ParallelSGD(th.RandK(15), step=th.Constant(0.1), feedback=rule(error_compressor))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            warn_if_unstable(method.feedback, method.compressor, 20)
        return [str(w.message) for w in found if w.category is th.BiasedErrorCompressorWarning]

    for biased in (th.TopK(5), th.RandK(5), th.ScaledSign()):
        (text,) = warned(biased)
        assert rule.__name__ in text and f"{type(biased).__name__} is biased" in text
    for unbiased in (th.Natural(), th.RandK(5, unbiased=True), th.CountSketch(10), th.QSGD(s=4)):
        assert warned(unbiased) == []


def test_what_would_be_allowed():
    def allowed(c, k, d=1000):
        return frontier(th.ContractiveErrorFeedback(c), th.RandK(k), d).allowed

    assert "theta < 0.1111" in allowed(th.Natural(), 100)
    assert "width of 945" in allowed(th.CountSketch(100, hash=th.BALANCED), 100)
    assert "no sketch" in allowed(th.CountSketch(100), 100)
