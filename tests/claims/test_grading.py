"""Claims as graders: right compressors pass, and typical errors of students are named."""

import functools

import numpy as np
import pytest

import theory as th
from theory.claims import find_claim


def rounded(v, rng, s, norm):
    """Random rounding to s levels of the norm."""
    if norm == 0:
        return np.zeros(v.size)
    u = s * np.abs(v) / norm
    return np.sign(v) * norm / s * np.floor(u + rng.random(v.size))


def qsgd(v, rng, s):
    return rounded(v, rng, s, np.linalg.norm(v))


def rand_k(v, rng, k):
    kept = np.zeros(v.size)
    chosen = rng.choice(v.size, k, replace=False)
    kept[chosen] = v.size / k * v[chosen]
    return kept


def top_k(v, k):
    kept = np.zeros(v.size)
    chosen = np.argsort(np.abs(v))[-k:]
    kept[chosen] = v[chosen]
    return kept


def terngrad(v, rng):
    top = np.abs(v).max()
    return top * np.sign(v) * (rng.random(v.size) * top < np.abs(v))


def scaled_sign(v):
    return np.abs(v).mean() * np.where(v >= 0, 1.0, -1.0)


class OwnClass:
    """Not a setting, but makes functions of one."""

    def __new__(cls, s):
        return lambda v, rng: qsgd(v, rng, s)


RIGHT = [
    (qsgd, "qsgd.variance"),
    (qsgd, "qsgd.nonzeros"),
    (lambda v, generator, levels: qsgd(v, generator, levels), "qsgd.variance"),  # by place, under other names
    (OwnClass, "qsgd.variance"),
    (th.QSGD, "qsgd.variance"),
    (th.QSGD(s=4), "qsgd.variance"),
    (rand_k, "randk.variance"),
    (rand_k, "randk.unbiased"),
    (functools.partial(th.RandK, unbiased=True), "randk.variance"),
    (top_k, "topk.contraction"),
    (terngrad, "terngrad.variance"),
    (scaled_sign, "sign.error"),
]


@pytest.mark.parametrize("mine, id", RIGHT)
def test_a_right_compressor_passes(mine, id):
    found = th.grade(mine, id)
    assert found and found.passed and found.faults == (), found
    assert "passed" in str(found) and "passed" in found._repr_html_()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mine, id", [RIGHT[0], RIGHT[6]])
def test_a_right_compressor_passes_with_every_seed(mine, id, seed):
    assert th.grade(mine, id, seed=seed)


def test_settings_choose_the_cases():
    function = th.compressor(lambda v, rng: qsgd(v, rng, 4))
    found = th.grade(function, "qsgd.variance", s=4)
    assert found and len(found.checks) == 3
    with pytest.raises(ValueError, match="settings: got 's = 5', allowed: those of a case of the claim: s = 4; s = 20"):
        th.grade(th.QSGD(s=5), "qsgd.variance")


# --- typical errors ---------------------------------------------------------------------------------------------------


def inverted(v, rng, s):
    norm = np.linalg.norm(v)
    u = s * np.abs(v) / max(norm, 1e-300)
    return np.sign(v) * norm / s * (np.floor(u) + (rng.random(v.size) > u - np.floor(u)))


def nearest(v, rng, s):
    norm = np.linalg.norm(v)
    return np.sign(v) * norm / s * np.floor(s * np.abs(v) / max(norm, 1e-300) + 0.5)


def down(v, rng, s):
    norm = np.linalg.norm(v)
    return np.sign(v) * norm / s * np.floor(s * np.abs(v) / max(norm, 1e-300))


def one_level_more(v, rng, s):
    return qsgd(v, rng, s + 1)


def other_norm(v, rng, s):
    return rounded(v, rng, s, np.abs(v).max())


def signs_lost(v, rng, s):
    return np.abs(qsgd(v, rng, s))


def levels_only(v, rng, s):
    """Not multiplied by the norm again."""
    return qsgd(v, rng, s) / max(np.linalg.norm(v), 1e-300)


def not_divided(v, rng, s):
    return s * qsgd(v, rng, s)


def one_coin(v, rng, s):
    norm = np.linalg.norm(v)
    u = s * np.abs(v) / max(norm, 1e-300)
    return np.sign(v) * norm / s * np.floor(u + rng.random())


def no_zero(v, rng, s):
    with np.errstate(all="ignore"):
        norm = np.linalg.norm(v)
        return np.sign(v) * norm / s * np.floor(s * np.abs(v) / norm + rng.random(v.size))


def in_place(v, rng, s):
    norm = np.linalg.norm(v)
    sign = np.sign(v)
    v *= s * sign / max(norm, 1e-300)
    return sign * norm / s * np.floor(v + rng.random(v.size))


def own_numbers(v, rng, s):
    return qsgd(v, np.random.default_rng(), s)


def seed_inside(v, rng, s):
    return qsgd(v, np.random.default_rng(0), s)


def no_return(v, rng, s):
    qsgd(v, rng, s)


def a_number(v, rng, s):
    return qsgd(v, rng, s).sum()


def misspelled(v, rng, s):
    return np.linalg.nrm(v)


def not_scaled(v, rng, k):
    return k / v.size * rand_k(v, rng, k)


def scaled_by_the_inverse(v, rng, k):
    return (k / v.size) ** 2 * rand_k(v, rng, k)


def with_replacement(v, rng, k):
    kept = np.zeros(v.size)
    chosen = rng.integers(0, v.size, k)
    kept[chosen] = v.size / k * v[chosen]
    return kept


def one_fewer(v, rng, k):
    return rand_k(v, rng, k - 1)


def one_lost(v, rng, k):
    """The factor is that of k coordinates, and k - 1 are sent."""
    return (k - 1) / k * rand_k(v, rng, k - 1)


def signed(v, k):
    kept = np.zeros(v.size)
    chosen = np.argsort(v)[-k:]
    kept[chosen] = v[chosen]
    return kept


def smallest(v, k):
    kept = np.zeros(v.size)
    chosen = np.argsort(np.abs(v))[:k]
    kept[chosen] = v[chosen]
    return kept


def sign_times_norm(v):
    return np.linalg.norm(v) * np.where(v >= 0, 1.0, -1.0)


def scale_of_the_norm(v):
    return np.linalg.norm(v) / np.sqrt(v.size) * np.where(v >= 0, 1.0, -1.0)


def itself(v, rng, s):
    return v


def nearest_without_zero(v, rng, s):
    norm = np.linalg.norm(v)
    with np.errstate(all="ignore"):
        return norm * np.rint(s * v / norm) / s


WRONG = [
    (itself, "qsgd.variance", "returns v itself: nothing is compressed"),
    (nearest_without_zero, "qsgd.variance", "rounding to the nearest level"),
    (inverted, "qsgd.variance", "rounding with the probability inverted"),
    (nearest, "qsgd.variance", "rounding to the nearest level"),
    (down, "qsgd.variance", "rounding down"),
    (one_level_more, "qsgd.variance", "levels counted with zero, so one too many"),
    (other_norm, "qsgd.variance", "the largest entry as the norm"),
    (signs_lost, "qsgd.variance", "the signs are lost"),
    (levels_only, "qsgd.variance", "up to a factor: it is 1/||v|| times"),
    (not_divided, "qsgd.variance", "up to a factor: it is s times"),
    (one_coin, "qsgd.variance", "not independent: draw a random number for each"),
    (no_zero, "qsgd.variance", "v = 0 gives 0/0"),
    (in_place, "qsgd.variance", "changes v itself"),
    (own_numbers, "qsgd.variance", "do not come from rng"),
    (seed_inside, "qsgd.variance", "a generator with a fixed seed"),
    (no_return, "qsgd.variance", "is `return` missing"),
    (a_number, "qsgd.variance", r"shape \(\), not \(1024,\)"),
    (misspelled, "qsgd.variance", "AttributeError.*nrm"),
    (not_scaled, "randk.variance", "factor d/k forgotten"),
    (scaled_by_the_inverse, "randk.variance", r"up to a factor: it is \(k/d\)\^2 times"),
    (with_replacement, "randk.variance", "drawn with replacement"),
    (one_fewer, "randk.variance", "one coordinate fewer"),
    (one_lost, "randk.variance", "share of non-zeros is 0.09, not 0.1"),
    (signed, "topk.contraction", "largest with their signs"),
    (smallest, "topk.contraction", "the smallest magnitudes"),
    (sign_times_norm, "sign.error", "it is d/||v||_1"),
    (scale_of_the_norm, "sign.error", r"the scale \|\|v\|\|_2/sqrt\(d\)"),
]


@pytest.mark.parametrize("mine, id, named", [pytest.param(*case, id=f"{case[0].__name__}") for case in WRONG])
def test_a_typical_error_is_named(mine, id, named):
    import re

    found = th.grade(mine, id)
    print(found)
    assert not found and re.search(named, found.faults[0]), found


def test_what_is_wrong_at_zero_hides_no_other_error():
    assert [fault[:5] for fault in th.grade(nearest_without_zero, "qsgd.variance").faults] == ["it me", "v = 0"]
    found = th.grade(no_zero, "qsgd.variance")
    assert len(found.faults) == 1 and found.checks and not found.passed


def test_an_unknown_error_is_described_in_numbers():
    def odd(v, rng, s):
        found = qsgd(v, rng, s)
        found[7] += 0.5 * np.linalg.norm(v)
        return found * (np.linalg.norm(v) > 0)

    assert "most at coordinate 7" in th.grade(odd, "qsgd.variance").faults[0]


def apart(v, rng, k):
    """Each entry with a probability in proportion to its size: unbiased, and small ones are hardly ever drawn."""
    p = np.minimum(1.0, k * np.abs(v) / np.abs(v).sum() + 1e-12)
    return np.where(rng.random(v.size) < p, v / p, 0.0)


def alone(v, rng, k):
    """Each entry with the same probability, one coin for each."""
    return np.where(rng.random(v.size) < k / v.size, v * v.size / k, 0.0)


def test_what_is_unbiased_is_not_said_to_have_another_mean():
    (fault,) = th.grade(apart, "randk.variance").faults
    assert "means differ" not in fault and "E||Q(v) - v||^2/||v||^2 is" in fault
    (fault,) = th.grade(alone, "randk.variance").faults
    assert "the number of those that are sent varies" in fault


def test_a_right_scale_is_not_named_as_the_error():
    """Of a claim on the same compressor with another scale this one is a mutant."""
    found = th.grade(lambda v: np.abs(v).mean() * np.where(v > 0, 1.0, -1.0), "sign.error")
    assert not found and "v_0 = 0" in found.faults[0] and "||v||_1/d" not in found.faults[0]
    assert "no settings" not in found.faults[0]


def test_more_coordinates_than_asked_for_are_named():
    def reached(v, k):
        return np.where(np.abs(v) >= np.sort(np.abs(v))[-k], v, 0.0)

    (fault,) = th.grade(reached, "topk.contraction").faults
    assert "it sends 1000 coordinates, not 10: are several of them equally large?" in fault


def test_a_coordinate_that_is_never_sent_is_named():
    def without(v, rng, k):
        found = rand_k(v, rng, k)
        found[np.argmax(np.abs(v))] = 0.0
        return found

    assert "in 400 messages coordinate" in th.grade(without, "randk.variance").faults[0]


MUTANTS = ["qsgd.variance", "qsgd.nonzeros.exact", "randk.variance", "terngrad.variance", "sign.error"]


@pytest.mark.parametrize("id", MUTANTS)
def test_every_mutant_of_a_claim_is_named(id):
    for name, mutant in find_claim(id).mutants.items():
        assert name in th.grade(mutant, id).faults[0], name


# --- what the vectors of the claim do not show ------------------------------------------------------------------------


def norm_forgotten(v, rng, s):
    return np.sign(v) * np.floor(s * np.abs(v) + rng.random(v.size)) / s


def single(v, rng, s):
    return qsgd(v.astype(np.float32), rng, s).astype(np.float32)


def as_a_list(v, rng, s):
    return [float(x) for x in qsgd(np.array(list(v)), rng, s)]


def by_a_draw(v, rng, s):
    """Another way to write it: the level above with the probability of what is cut off."""
    norm = np.sqrt(np.sum(v**2))
    if not norm > 0:
        return v.copy()
    low = np.floor(np.abs(v) / norm * s)
    up = rng.uniform(size=len(v)) < np.abs(v) / norm * s - low
    return np.where(v < 0, -1, 1) * norm * (low + up) / s


def top_single(v, k):
    v = np.asarray(v, np.float32)
    return np.where(np.abs(v) >= np.sort(np.abs(v))[-k], v, 0)


def top_by_partition(v, k):
    out = np.zeros_like(v)
    kept = np.argpartition(-np.abs(v), k - 1)[:k]
    out[kept] = v[kept]
    return out


def top_by_loop(v, k):
    out = [0.0] * len(v)
    for i in sorted(range(len(v)), key=lambda i: -abs(v[i]))[:k]:
        out[i] = v[i]
    return out


def rand_by_mask(v, rng, k):
    mask = np.arange(v.size) < k
    rng.shuffle(mask)
    return np.float32(v) * mask * (len(v) / k)


def sign_single(v):
    return (np.linalg.norm(v, 1) / v.size * (2 * (v >= 0) - 1)).astype(np.float32)


@pytest.mark.parametrize(
    "mine, id",
    [
        (single, "qsgd.variance"),
        (as_a_list, "qsgd.nonzeros"),
        (by_a_draw, "qsgd.variance"),
        (top_by_partition, "topk.contraction"),
        (top_by_loop, "topk.contraction"),
        (rand_by_mask, "randk.variance"),
        (rand_by_mask, "randk.unbiased"),
        (sign_single, "sign.error"),
    ],
)
def test_a_right_compressor_passes_in_other_words_and_types(mine, id):
    found = th.grade(mine, id)
    assert found, found


def test_a_forgotten_norm_is_seen_where_the_norm_is_not_1():
    found = th.grade(norm_forgotten, "qsgd.variance")
    assert not found and found.faults[0] == (
        "Q(8 v) is not 8 Q(v): is a norm forgotten, or a constant used that does not grow with v?"
    )


def test_other_vectors_than_those_of_the_claim_are_tried():
    def only_long(v, rng, s):
        return v if v.size < 900 else qsgd(v, rng, s)

    def without_zeros(v, rng, s):
        return qsgd(v, rng, s) if np.all(v) or not np.any(v) else v / 0.5

    def fails(v, rng, s):
        return qsgd(v, rng, s)[np.argsort(np.arange(1024))] if v.size == 1024 or v[0] else 1 / 0

    assert "a vector of another length" in th.grade(only_long, "qsgd.variance").faults[0]
    assert "every other entry is 0" in th.grade(without_zeros, "qsgd.variance").faults[0]
    assert not th.grade(fails, "qsgd.variance")


def test_whole_numbers_are_no_message():
    found = th.grade(lambda v, rng, s: (100 * qsgd(v, rng, s)).astype(int), "qsgd.variance")
    assert found.faults == ("it returns an array of int64, which cannot hold the message: return an array of floats",)
