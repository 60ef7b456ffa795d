"""Figures and comparisons: what they show, that they are readable, and that they leave no trace in matplotlib."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import theory as th
from theory.plots import Curve, draw_panels, new_figure, save_figure, style
from theory.plots.curves import MARKS, X_AXES

FIELDS = ["step", "samples", "rounds", "payload_bits_up", "seconds", "f"]


def history(scale=1.0, points=30):
    """A made-up history whose f falls from 1 to the floor 0.5."""
    rows = np.zeros(points, [(name, float) for name in FIELDS])
    rows["step"] = rows["rounds"] = np.arange(points)
    rows["samples"], rows["payload_bits_up"] = 8 * rows["step"], 100 * scale * rows["step"]
    rows["seconds"] = 3.0 + 0.1 * rows["step"]
    rows["f"] = 0.5 + 0.5 / (1 + scale * rows["step"])
    return rows


@pytest.fixture(scope="module")
def comparison():
    problem = th.logistic(data := th.load_data("breast_cancer").scaled(), l2=1 / data.n)
    step = th.InverseTime(c=2.0, mu=1 / data.n, shift=1e4)
    methods = [
        th.ParallelSGD(th.TopK(3), step, feedback=th.ErrorFeedback(), average="quadratic"),
        th.ParallelSGD(th.Identity(), step, batch=2),
    ]
    return methods, problem, th.compare(methods, problem, workers=2, steps=40, x="bits", seed=5)


# --- comparisons ------------------------------------------------------------------------------------------------------


def test_comparison_holds_the_runs_themselves(comparison):
    methods, problem, compared = comparison
    for method, result in zip(methods, compared.results, strict=True):
        alone = th.run(method, problem, workers=2, steps=40, seed=5)
        assert (alone.x == result.x).all() and (alone.history["f"] == result.history["f"]).all()


def test_comparison_measures_from_a_certified_lower_bound(comparison):
    _, problem, compared = comparison
    optimum = th.solve(problem)
    assert compared.lower == optimum.fun - optimum.gap
    assert [row["gap"] for row in compared.rows] == [result.fun - compared.lower for result in compared.results]
    assert compared.rows[1]["bits_up"] == 32 * 30 * 40 and compared.rows[1]["samples"] == 2 * 2 * 40


def test_comparison_prints_and_shows_itself(comparison):
    compared = comparison[2]
    lines = repr(compared).splitlines()
    assert lines[0] == "breast_cancer: 2 workers, 40 steps, seed 5"
    assert max(map(len, lines)) <= 120  # columns that do not fit stand below
    heads = [line.split() for line in lines if line.startswith("method")]
    names = [word for head in heads for word in head if word != "method"]
    near = f"to {compared.epsilon:.3g}"
    assert names == f"f - f* {near} {near} samples rounds up down s".split()
    shown = compared._repr_html_()
    assert shown.count("<tr>") == 3 and "data:image/png;base64," in shown and "TopK(k=3)" in shown


def test_labels_tell_methods_apart(comparison):
    _, problem, compared = comparison
    assert compared.labels == (
        "TopK(k=3), ErrorFeedback, batch=1, average=quadratic",
        "Identity, batch=2, average=last",
    )
    step = th.Constant(1e-6)
    pair = [th.ParallelSGD(th.Identity(), step), th.ParallelSGD(th.Identity(), th.Constant(2e-6))]
    assert th.compare(pair, problem, workers=1, steps=2).labels == (
        "Identity, Constant(eta=1e-06)",
        "Identity, Constant(eta=2e-06)",
    )
    named = th.compare(pair, problem, workers=1, steps=2, labels=["small", "large"])
    assert [row["label"] for row in named.rows] == ["small", "large"]


def test_comparison_takes_an_optimum(comparison):
    methods, problem, _ = comparison
    optimum = th.solve(problem)
    compared = th.compare(methods[:1], problem, workers=1, steps=2, optimum=optimum)
    assert compared.optimum is optimum


def test_comparison_at_the_same_budget(comparison):
    methods, problem, _ = comparison
    pair = [methods[1], methods[1]._replace(batch=8)]
    compared = th.compare(pair, problem, workers=2, samples=8, x="samples")
    assert [result.nit for result in compared.results] == [4, 1]
    assert [row["samples"] for row in compared.rows] == [16, 16]  # of both workers
    assert "8 samples each" in compared.table


def test_bits_and_seconds_to_an_accuracy(comparison):
    methods, problem, compared = comparison
    gaps = [row["gap"] for row in compared.rows]
    worst = int(np.argmax(gaps))
    assert compared.epsilon == max(gaps)
    for row in compared.rows:
        assert 0 < row["bits_to"] <= row["bits_up"] and 0 < row["seconds_to"] <= row["seconds"]
    assert compared.rows[worst]["bits_to"] <= compared.rows[worst]["bits_up"]
    deeper = th.compare(methods[:1], problem, workers=2, steps=4, epsilon=1e-9)
    assert deeper.rows[0]["bits_to"] == np.inf and " - " in deeper.table.splitlines()[-2]


def test_another_axis_needs_no_second_run(comparison):
    figure = comparison[2].plot(x="seconds")
    assert [axes.get_xlabel() for axes in figure.axes] == [X_AXES["seconds"][1]]
    assert figure._repr_png_()[:4] == b"\x89PNG"
    both = comparison[2].plot(x=("bits", "seconds"))
    assert [axes.get_xlabel() for axes in both.axes] == [X_AXES[x][1] for x in ("bits", "seconds")]


def test_several_seeds_are_a_band(comparison):
    methods, problem, _ = comparison
    compared = th.compare(methods, problem, workers=2, steps=20, seed=range(3))
    assert "3 seeds" in compared.title and [len(others) for others in compared.repeats] == [2, 2]
    alone = th.run(methods[0], problem, workers=2, steps=20, seed=2)
    assert (compared.repeats[0][1].history["f"] == alone.history["f"]).all()
    ends = [compared.results[0].fun, *(result.fun for result in compared.repeats[0])]
    assert compared.rows[0]["gap"] == pytest.approx(np.mean(ends) - compared.lower)
    axes = compared.figure.axes[0]
    assert len(axes.collections) == 2
    mean = np.mean([run.history["f"] for run in (compared.results[0], *compared.repeats[0])], axis=0) - compared.lower
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(mean[-1]) == pytest.approx(compared.rows[0]["gap"])
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    top = compared.rows[0]["gap"] + compared.rows[0]["gap_half"]
    assert np.min(np.abs(band - top)) < 1e-12
    assert any("3 seeds" in text.get_text() for text in compared.figure.texts)


def test_the_best_step_is_searched_and_its_cost_is_said():
    problem = th.quadratic([1.0, 4.0], covariance=0.0, optimum=1.0)
    pair = [th.ParallelSGD(th.TopK(2), th.Constant(1.0)), th.ParallelSGD(step=th.Constant(1.0))]
    compared = th.compare(pair, problem, workers=1, steps=30, step="best")
    gaps = {
        e: th.run(th.ParallelSGD(step=th.Constant(2.0**e / 4.0)), problem, workers=1, steps=30).fun for e in (-1, 0, 1)
    }
    best = min(gaps, key=gaps.get)
    assert f"step 2^{best}/L" in compared.table and "runs" in compared.table
    assert compared.rows[1]["gap"] == pytest.approx(gaps[best] - compared.lower)
    same = th.compare(pair, problem, workers=1, steps=3, step=0.1)
    assert same.results[1].fun == th.run(pair[1], problem, workers=1, steps=3, step=0.1).fun


def test_a_best_step_at_the_end_of_the_search_is_said():
    problem = th.quadratic([1.0, 1.0], covariance=0.0, optimum=1.0)
    slow = th.ParallelSGD(th.compressor(lambda v: v * 1e-6), th.Constant(1.0))
    compared = th.compare([slow], problem, workers=1, steps=10, step="best")
    assert "step 2^12/L = 4.1e+03, best of 2^0/L to 2^12/L, the end of what is searched" in compared.table


def test_where_no_step_will_do_none_is_best():
    problem = th.quadratic([1.0, 4.0], covariance=0.0, optimum=1.0)
    uphill = th.ParallelSGD(th.compressor(lambda v: -1e9 * v), th.Constant(1.0))
    with pytest.raises(
        ValueError, match=r"methods: got ParallelSGD\(.*\), allowed: .* each of 2\^-12/L to 2\^1/L, L = 4"
    ):
        th.compare([uphill, uphill], problem, workers=1, steps=30, step="best", labels=["a", "b"])


def test_curves_that_coincide_are_said_so():
    curves = [Curve("one", history()), Curve("two", history()), Curve("three", history(3.0))]
    notes = " ".join(text.get_text() for text in draw_panels(curves, 0.5, title="").texts)
    assert "one and two coincide" in notes and "three" not in notes


def test_ticks_within_a_decade_are_plain_numbers():
    narrow = history()
    narrow["f"] = np.linspace(0.9, 0.7, 30)
    figure = draw_panels([Curve("one", narrow)], 0.0, title="", panels=("bits",))
    figure.canvas.draw()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels(which="both") if label.get_text()]
    assert "0.8" in labels and not any("times" in label for label in labels)


@pytest.mark.parametrize("x", X_AXES)
def test_figure_has_the_axis_that_was_asked_for(comparison, x):
    compared = comparison[2]
    figure = type(compared)(compared.labels, compared.results, compared.optimum, x).figure
    (axes,) = figure.axes
    assert axes.get_xlabel() == X_AXES[x][1]
    assert axes.get_xscale() == axes.get_yscale() == "log"


# --- figures ----------------------------------------------------------------------------------------------------------


def test_panels_show_every_axis_with_a_unit():
    figure = draw_panels([Curve("one", history())], 0.5, title="made-up data", start=0.5)
    assert [axes.get_xlabel() for axes in figure.axes] == [name for _, name in X_AXES.values()]
    assert {axes.get_ylabel() for axes in figure.axes} == {r"$f(x) - f^*$"}
    assert figure.get_suptitle() == "made-up data"


def test_curves_are_what_was_measured():
    figure = draw_panels([Curve("one", history())], 0.5, title="", panels=("bits",))
    line = figure.axes[0].get_lines()[0]
    assert line.get_xdata().tolist() == [100.0 * t for t in range(1, 30)]  # a logarithmic axis has no 0
    assert line.get_ydata() == pytest.approx([0.5 / (1 + t) for t in range(1, 30)])


def test_seconds_leave_out_what_came_before_the_first_step():
    figure = draw_panels([Curve("one", history())], 0.5, title="", panels=("seconds",))
    assert figure.axes[0].get_lines()[0].get_xdata()[0] == pytest.approx(0.1)


def test_eight_curves_differ_in_grey_and_in_colour():
    curves = [Curve(f"method {i}", history(1 + i)) for i in range(8)]
    figure = draw_panels(curves, 0.5, title="", panels=("bits",))
    lines = figure.axes[0].get_lines()
    assert len({line.get_color() for line in lines}) == 8
    assert len({line.get_marker() for line in lines}) == 8
    assert all(len(line.get_xdata()[:: line.get_markevery()]) <= 2 * MARKS for line in lines)


def test_a_bound_is_drawn_where_it_fits_and_named_where_it_does_not():
    near, far = Curve("near", history(), lambda t: 2.0 / t), Curve("far", history(), lambda t: 1e9 / t)
    figure = draw_panels([near, far], 0.5, title="", start=0.5, panels=("samples", "bits"))
    for axes in figure.axes:
        drawn = [line for line in axes.get_lines() if str(line.get_label()).startswith("_")]
        assert len(drawn) == 1
        scale = 8 if axes is figure.axes[0] else 100
        assert drawn[0].get_ydata() == pytest.approx(2.0 * scale / drawn[0].get_xdata())
        assert drawn[0].get_ydata().max() <= 3 * 0.5 < 2.0 and drawn[0].get_xdata()[-1] == 29 * scale
    notes = " ".join(text.get_text() for text in figure.texts)
    assert "no bound near these axes for far" in notes
    assert "bound, in its curve's colour" in [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("length", [4, 20, 48])
def test_the_legend_stays_within_the_figure(length):
    curves = [Curve(f"{i}" * length, history(1 + i)) for i in range(5)]
    for panels in (("bits",), tuple(X_AXES)):
        figure = draw_panels(curves, 0.5, title="", start=0.5, panels=panels, notes=["small print"])
        figure.canvas.draw()
        box, legend, notes = figure.bbox, figure.legends[0].get_window_extent(), figure.texts[-1].get_window_extent()
        assert box.x0 <= legend.x0 and legend.x1 <= box.x1
        assert box.y0 <= notes.y0 and notes.y1 <= legend.y0
        assert legend.y1 <= min(axes.get_tightbbox().y0 for axes in figure.axes)


def test_values_that_are_not_finite_are_left_out():
    broken = history()
    broken["f"][-3:] = [np.inf, np.nan, 0.4]  # 0.4 is below the lower bound: nothing to show on a logarithmic axis
    figure = draw_panels([Curve("one", broken)], 0.5, title="", panels=("samples",))
    assert figure.axes[0].get_lines()[0].get_xdata().size == 26


def test_files_are_whole_and_repeatable(tmp_path):
    def draw(name):
        return save_figure(draw_panels([Curve("one", history())], 0.5, title="t", start=0.5), tmp_path / name)

    first, second = draw("a"), draw("b")
    assert [path.name for path in first] == ["a.png", "a.pdf"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pdf", "a.png", "b.pdf", "b.png"]


def test_text_is_legible_at_the_width_of_a_column():
    figure, _ = new_figure()
    assert figure.get_size_inches()[0] <= 3.5
    with style():
        import matplotlib

        sizes = [matplotlib.rcParams[name] for name in ("axes.labelsize", "xtick.labelsize", "legend.fontsize")]
    assert min(sizes) >= 7


def test_style_leaves_matplotlib_as_it_was():
    import matplotlib

    before = matplotlib.rcParams["font.size"], matplotlib.rcParams["axes.prop_cycle"]
    draw_panels([Curve("one", history())], 0.5, title="")
    assert (matplotlib.rcParams["font.size"], matplotlib.rcParams["axes.prop_cycle"]) == before


def test_no_window_and_no_import_until_a_figure_is_drawn():
    code = (
        "import sys, theory\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from theory.plots import new_figure\n"
        "new_figure()\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
