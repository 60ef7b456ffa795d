"""Histories as tables, and names that are misspelled."""

import pickle
import pydoc

import numpy as np
import pytest

import theory as th


@pytest.fixture(scope="module")
def result():
    method = th.ParallelSGD(step=th.Constant(0.1))
    return th.run(method, th.quadratic([1.0, 2.0], covariance=1.0, optimum=3.0), workers=2, steps=20, record_every=1)


def test_a_history_is_a_table(result):
    lines = repr(result.history).splitlines()
    assert lines[0].split() == "step samples rounds bits_up bits_down seconds f gradient_norm".split()
    assert lines[-1].startswith("21 rows; also message_bytes_up") and len(lines) == 13
    assert "<td>40</td>" in result.history._repr_html_() and "all steps done" in result._repr_html_()
    assert "bits_up" in repr(result)


def test_a_history_is_a_structured_array(result):
    history = result.history
    assert type(history["f"]) is np.ndarray and type(history[3:]["f"]) is np.ndarray
    assert history[-1]["step"] == 20 and np.array_equal(history["bits_up"], history["payload_bits_up"])
    again = pickle.loads(pickle.dumps(history))
    assert again.columns == history.columns and np.array_equal(again["f"], history["f"])


def test_a_history_goes_to_pandas(result):
    pandas = pytest.importorskip("pandas")
    table = result.history.to_pandas()
    assert isinstance(table, pandas.DataFrame) and list(table.index) == list(range(21))
    assert np.array_equal(table["f"], result.history["f"])


def test_the_help_of_run_names_the_columns(result):
    assert all(f"``{name}``" in th.run.__doc__ for name in result.history.columns)


def test_help_shows_settings_and_no_tuple():
    text = pydoc.render_doc(th.QSGD, renderer=pydoc.plaintext)
    assert "QSGD(s: int, norm: float = 2.0, code=Packed())" in text
    assert not any(name in text for name in ("__getnewargs__", "index(", "_asdict", "__mul__"))


def test_bits_are_levels():
    assert [th.QSGD(bits=b).s for b in (2, 4, 8)] == [1, 7, 127]
    assert th.QSGD(bits=4, code=th.Elias()) == th.QSGD(7, code=th.Elias())


def test_misspelled_names_are_answered():
    with pytest.raises(AttributeError, match="no attribute 'QSDG'; did you mean QSGD?"):
        th.QSDG  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean TopK?"):
        th.topk  # noqa: B018
    assert {"QSGD", "run", "claims", "grade"} <= set(dir(th)) and "LongStepWarning" not in dir(th)


def test_a_history_with_what_is_not_finite_is_shown(result):
    history = result.history.copy()
    history["f"][-3:] = [np.inf, -np.inf, np.nan]
    cells = [line.split()[6] for line in repr(history).splitlines()[-4:-1]]
    assert cells == ["inf", "-inf", "-"] and "<td>inf</td>" in history._repr_html_()
