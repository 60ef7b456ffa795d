"""Numbers that others published, beside ours: rows of docs/performance.md, and what explains the differences."""

from __future__ import annotations

import importlib.util
from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from numbers_of_others import (
    ALWAYS,
    BYZFL,
    END,
    EPSILON,
    EQUAL,
    EVERY,
    LINE,
    PAGE,
    RATE_CHECKS,
    RATES,
    ROWS,
    SAMPLED,
    SOLVED,
    SOURCES,
    START,
    exact_rates,
)

import theory as th


def _missing(name):
    return importlib.util.find_spec(name) is None


def _compare(check):
    apart = abs(check.apart(check.ours()))
    assert (apart <= check.within) == (check.verdict == EQUAL), (check.what, apart)
    assert bool(check.why) == (check.verdict != EQUAL)


@pytest.mark.parametrize("check", ALWAYS, ids=lambda check: check.what)
def test_ours_is_theirs_or_it_is_said_why_not(check):
    _compare(check)


@pytest.mark.skipif(_missing("dp_accounting"), reason='the accountant is not installed: "sgd-theory[privacy]"')
@pytest.mark.parametrize("check", SAMPLED, ids=lambda check: check.what)
def test_privacy_where_workers_take_part_at_random(check):
    _compare(check)


@pytest.mark.skipif(_missing("cvxpy"), reason='no solver is installed: "sgd-theory[pepit]"')
@pytest.mark.parametrize("check", SOLVED, ids=lambda check: check.what)
def test_the_independent_program_gives_the_numbers_of_pepit(check):
    _compare(check)


@pytest.mark.parametrize("name", RATES)
def test_all_exact_rates_of_the_authors(name):
    key, rate, within = RATES[name]
    for mu, values in exact_rates()["rates"][key].items():
        ours = [rate(1.0 - epsilon, 1.0 / float(mu)) for epsilon in EPSILON]
        np.testing.assert_allclose(ours, values, rtol=0.0, atol=within)


@pytest.mark.parametrize("at", exact_rates()["best_step"])
def test_the_best_step_is_within_a_step_of_the_authors_grid(at):
    """300 points up to the largest stable step, which is at most 2/L."""
    mu, top = (float(part.split("=")[1]) for part in at.split(", "))
    ours = [th.bounds.exact_feedback_step(1.0 - epsilon, mu=mu, lipschitz=top) for epsilon in EPSILON]
    np.testing.assert_allclose(ours, exact_rates()["best_step"][at], rtol=0.0, atol=2.0 / top / 299.0)


# --- what explains the differences ------------------------------------------------------------------------------------


def _krum(rows, f, neighbours):
    rows = np.asarray(rows)
    squares = np.sum((rows[:, None] - rows) ** 2, axis=2)
    return rows[np.argmin([np.sort(one)[1 : 1 + neighbours].sum() for one in squares])]


def test_krum_differs_by_the_number_of_neighbours():
    theirs = next(check for check in BYZFL if check.what.startswith("Krum on"))
    n, f = len(LINE), 1
    assert _krum(LINE, f, n - f - 1)[0] == theirs.theirs and _krum(LINE, f, n - f - 2)[0] == theirs.ours()


def test_the_geometric_median_of_byzfl_is_three_steps_of_weiszfeld():
    theirs, x = next(check for check in BYZFL if "geometric" in check.what), np.zeros(3)
    for _ in range(3):
        weights = 1.0 / np.linalg.norm(ROWS - x, axis=1)
        x = weights @ ROWS / weights.sum()
    np.testing.assert_allclose(x, theirs.theirs, rtol=0.0, atol=1e-6)
    assert np.linalg.norm(ROWS - ROWS[1], axis=1).sum() < np.linalg.norm(ROWS - x, axis=1).sum()
    np.testing.assert_allclose(theirs.ours(), ROWS[1], rtol=0.0, atol=1e-8)


def test_the_attacks_differ_by_the_sign_the_variance_and_the_message():
    flip, alie = (next(check for check in BYZFL if check.what.startswith(name)) for name in ("sign", "a little"))
    np.testing.assert_allclose(flip.theirs, -ROWS.mean(axis=0))
    np.testing.assert_allclose(flip.ours(), -ROWS[-1])
    np.testing.assert_allclose(alie.theirs, ROWS.mean(axis=0) + 1.5 * ROWS.std(axis=0, ddof=1))
    np.testing.assert_allclose(alie.ours(), ROWS.mean(axis=0) - 1.5 * ROWS.std(axis=0))


@pytest.mark.parametrize(("workers", "bad"), [(10, 2), (20, 4), (25, 5)])
def test_alie_has_the_z_of_the_paper(workers, bad):
    """z is the largest with which a majority still stands behind the hostile workers: s = floor(n/2 + 1) - m."""
    needed = workers // 2 + 1 - bad
    honest = workers - bad
    assert th.ALIE().settled(workers, bad).z == pytest.approx(scipy.stats.norm.ppf((honest - needed) / honest))


# --- worst cases ------------------------------------------------------------------------------------------------------


def _drawn(number):
    """A method, its steps and constants over scales from 1e-6 to 1e8."""
    rng = np.random.default_rng([20261128, number])
    method = ("gd", "compressed-gd", "ef", "ef21", "heavy-ball")[number % 5]
    mu, scale, steps = 1.0 / rng.uniform(2.0, 30.0), 10.0 ** rng.uniform(-6.0, 8.0), int(rng.integers(1, 4))
    options = {"step": rng.uniform(0.1, 1.2), "s": rng.uniform(0.1, 0.8), "momentum": rng.uniform(0.1, 0.5)}
    return method, steps, mu, scale, options


@pytest.mark.skipif(_missing("cvxpy") or _missing("PEPit"), reason='no solver is installed: "sgd-theory[pepit]"')
@pytest.mark.parametrize("number", range(30))
def test_worst_cases_agree_with_an_independent_program(number):
    from programs import METHODS

    method, steps, mu, scale, options = _drawn(number)
    takes = {"gd": ("step",), "heavy-ball": ("step", "momentum")}.get(method, ("step", "s"))
    given = {name: options[name] for name in takes}
    independent = METHODS[method](steps, mu, **given)
    worst = th.worst_case(method, steps, constants=[(mu * scale, scale)], **given | {"step": given["step"] / scale})
    assert worst.value == pytest.approx(independent, rel=1e-5)


# --- the page ---------------------------------------------------------------------------------------------------------


def _numbers(cell):
    return [float(part) for part in cell.split(",")]


@pytest.mark.skipif(_missing("cvxpy") or _missing("dp_accounting"), reason='"theory[pepit,privacy]" is not installed')
def test_the_page_has_all_numbers():
    text = PAGE.read_text(encoding="utf-8")
    lines = text.split(START)[1].split(END)[0].splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| what ")]
    assert len(rows) == len(EVERY)
    count = len(EVERY) - len(RATE_CHECKS) + 2  # 1,800 rates and 1,800 steps count as two
    assert count >= 60 and f"**{count} numbers**" in text
    for row, check in zip(rows, EVERY, strict=True):
        what, whose, theirs, ours, _, verdict = (cell.strip() for cell in row.strip("|").split("|"))
        assert (what, whose) == (check.what, SOURCES[check.whose][0])
        assert _numbers(theirs) == pytest.approx(np.ravel(check.theirs), rel=1e-7)
        assert verdict == (f"{check.verdict}: {check.why}" if check.why else check.verdict)
        assert _numbers(ours) == pytest.approx(np.ravel(check.ours()), rel=1e-6)
    for name, where in SOURCES.values():
        assert name in text and where.split(",")[0] in text
    assert all(a.what != b.what for a, b in combinations(EVERY, 2))
