"""Figures: values to JSON and back, records beside figures, the command, and whether what is drawn can be read."""

from __future__ import annotations

import json
import math
import re
import tomllib
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from conftest import ROOT

import theory as th
from benchmarks import full_size, full_size_ranks, growth, scale, whole
from theory.experiment import Configuration, RecordError
from theory.experiment import figures as command
from theory.experiment.cli import main
from theory.experiment.figures import Figure, chosen, known_figures
from theory.measure import Interval
from theory.plots import new_figure
from theory.plots.appearance import PAGE, colours, style
from theory.reporting.json_values import (
    SCHEMAS,
    class_at,
    from_json,
    path_of,
    read_record,
    record_path,
    schema_class,
    schema_of,
    to_json,
    write_record,
)
from theory.studies import STUDIES, report
from theory.studies.quantizers import ternary_dimension as ternary
from theory.studies.shared.configuration import module_of

FOLDER = ROOT / "figures"
POINTS = 6.0  # the smallest print, at a figure's own size
KILOBYTES = 200


def same(a, b) -> bool:
    """Equal with types, also where there are arrays and NaNs."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        "text",
        0.1 + 0.2,
        math.inf,
        -math.inf,
        math.nan,
        [1, [2.5, None]],
        (1, (2, "b")),
        {"a": (1,)},
        {1: "one", (2, 3): [4]},
        {"!a": 1},
        {},
        np.arange(6).reshape(2, 3),
        np.array([0.1, math.nan, math.inf]),
        np.float32([[0.1], [1e-30]]),
        np.zeros((0, 2)),
        np.array([True, False]),
        Interval(0.5, 0.25, math.inf, 0.99, 7),
        ternary.Iterations("m", 4, 2.0, 1.0, 0.5, math.nan, 1.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("names", [(schema_of, schema_class), (path_of, class_at)], ids=["record", "ranks"])
def test_values_come_back_as_they_were(value, names):
    text = json.dumps(to_json(value, names[0]), allow_nan=False)
    assert same(from_json(json.loads(text), names[1]), value)


def test_ranks_send_settings_and_a_record_names_no_module():
    value = th.Bucketed(th.QSGD(7), 512)
    assert same(from_json(json.loads(json.dumps(to_json(value, path_of))), class_at), value)
    with pytest.raises(TypeError, match="Bucketed, allowed: NamedTuples of schemas.toml"):
        to_json(value)
    assert to_json(Interval(0.5, 0.25, 1.0, 0.99, 7))["!type"] == "interval@1"


def test_every_schema_is_of_a_class_and_no_class_has_two():
    known = tomllib.loads(SCHEMAS.read_text(encoding="utf-8"))
    assert all(schema_of(schema_class(name)) == name for name in known)
    assert all(re.fullmatch(r"[a-z0-9-]+@[1-9]", name) for name in known)


def test_a_history_comes_back_as_it_was():
    rows = np.array([(0, 0.5), (3, math.nan)], dtype=[("step", np.int64), ("f", np.float64)])
    back = from_json(json.loads(json.dumps(to_json(rows))))
    assert back.dtype == rows.dtype
    assert all(same(np.array(back[name]), np.array(rows[name])) for name in rows.dtype.names)


class Local(NamedTuple):
    x: int = 0


@pytest.mark.parametrize("value", [lambda: 0, object(), {"f": print}, {1, 2}, Local(), np.array([object()]), 1j])
def test_what_is_no_value_is_refused(value):
    with pytest.raises(TypeError, match="value: got a"):
        to_json(value)


@pytest.mark.parametrize(
    "stored",
    [
        {"!type": "os.stat_result"},
        {"!type": "theory.measure.intervals.Interval", "estimate": 1.0},
        {"!type": "no-such-schema@1"},
        {"!type": "interval@2", "estimate": 1.0, "low": 0.0, "high": 2.0, "level": 0.9, "samples": 5},
        {"!type": "interval@1", "estimate": 1.0},
        {"!type": "interval@1", "estimate": 1.0, "low": 0.0, "high": 2.0, "level": 0.9, "samples": 5, "more": 1},
        {"!call": "print"},
    ],
)
def test_what_another_version_or_somebody_else_wrote_is_refused(stored):
    with pytest.raises(ValueError, match="another version"):
        from_json(stored)


# --- records ----------------------------------------------------------------------------------------------------------


def slopes(value: float):
    return Interval(value, value - 0.1, value + 0.1, 0.99, 8)


def found(steps: float = 40.0) -> dict:
    """What the study of the dimension would have measured, made up."""
    rows = [
        ternary.Iterations(name, d, 1.0, steps * (d / 16) ** 0.5, 0.9 * steps, 9.0 * steps, steps)
        for name in ternary.subjects()
        for d in (16, 64)
    ]
    return {"rows": rows, "slopes": {name: (slopes(0.5), slopes(0.5)) for name in ternary.subjects()}}


HOW = {"study": "ternary-dimension", "experiment": "ternary-dimension", "quick": False, "seed": 3}


def test_a_record_holds_what_was_found_and_how(tmp_path):
    path = write_record(tmp_path, "study-ternary-dimension", HOW, 12.34, found())
    assert path == record_path(tmp_path, "study-ternary-dimension") == tmp_path / "records/study-ternary-dimension.json"
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # no half-written file is left
    record = read_record(path)
    assert same(record.found, found()) and record.how == HOW and record.seconds == 12.3
    assert record.versions["numpy"] == np.__version__ and "platform" not in record.versions


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[:-20], "not JSON"),
        (lambda text: "[]", "not a record"),
        (lambda text: text.replace('"format": 1', '"format": 2'), "of format 2"),
        (lambda text: text.replace('"factor"', '"faktor"'), "another version.*--fresh"),
        (lambda text: text.replace('"how"', '"who"'), "not a record"),
    ],
)
def test_records_that_cannot_be_read_say_so(tmp_path, change, said):
    path = write_record(tmp_path, "study-ternary-dimension", HOW, 1.0, found())
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(RecordError, match=said):
        read_record(path)
    with pytest.raises(RecordError, match="cannot read"):
        read_record(tmp_path / "nowhere.json")


# --- the command ------------------------------------------------------------------------------------------------------


def test_figures_and_tables_are_drawn_from_the_record(tmp_path, capsys):
    """Another record gives another table; nothing is measured."""
    write_record(tmp_path, "study-ternary-dimension", HOW, 1.0, found(40.0))
    page, flags = tmp_path / "pages" / "ternary-dimension.md", ["--figures", str(tmp_path), "--tables"]
    assert main(["figures", "ternary-dimension", "--markdown", str(page.parent), *flags]) == 0
    first, drawn = capsys.readouterr().out, (tmp_path / "study-ternary-dimension.png").read_bytes()
    assert "80.0 (36 to 360)" in first and "80.0 (36 to 360)" in page.read_text(encoding="utf-8")
    assert main(["figures", "ternary-dimension", *flags]) == 0
    assert (tmp_path / "study-ternary-dimension.png").read_bytes() == drawn  # to the byte
    other = write_record(tmp_path / "other", "study-ternary-dimension", HOW, 1.0, found(50.0))
    assert main(["figures", "study-ternary-dimension", "--record", str(other), *flags]) == 0
    assert "100.0 (45 to 450)" in capsys.readouterr().out
    assert (tmp_path / "study-ternary-dimension.png").read_bytes() != drawn


def test_a_configuration_of_ones_own_leaves_a_record_to_draw_from(monkeypatch, tmp_path, capsys):
    """Of a study of the package its record in the folder is enough; to measure again, its file is needed."""
    monkeypatch.setattr(ternary, "collect", lambda quick, seed: found(40.0 + seed))
    file, flags = tmp_path / "mine.toml", ["--figures", str(tmp_path)]
    file.write_text('study = "ternary-dimension"\nseed = 10\n')
    assert main(["run", "--config", str(file), *flags]) == 0
    drawn = (tmp_path / "study-mine.png").read_bytes()
    for name in ("study-mine", "mine", str(file)):
        (tmp_path / "study-mine.png").unlink()
        assert main(["figures", name, "--tables", *flags]) == 0
        assert (tmp_path / "study-mine.png").read_bytes() == drawn and "100.0 (45 to" in capsys.readouterr().out
    assert main(["figures", "--list", *flags]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.split()[0] == "study-mine" and f"figures study-mine --figures {tmp_path}" in last
    with pytest.raises(SystemExit, match="2"):
        main(["figures", "study-mine", "--fresh", *flags])
    assert "--fresh needs the configuration: figures FILE.toml" in capsys.readouterr().err
    file.write_text('study = "ternary-dimension"\nseed = 0\n')
    assert main(["figures", str(file), "--fresh", *flags]) == 0
    assert read_record(record_path(tmp_path, "study-mine")).how["seed"] == 0


@pytest.fixture
def counted(monkeypatch):
    """Two figures that count how often they are measured."""
    seen = {"one": 0, "two": 0}

    def make(name):
        def collect(comm, say):
            seen[name] += 1
            return {"height": float(seen[name])}

        def draw(found):
            with style():
                figure, grid = new_figure()
                grid[0, 0].plot([1, 2], [0.0, found["height"]])
            return figure

        return Figure(name, {"seed": 5}, collect, draw)

    monkeypatch.setattr(command, "known_figures", lambda: {name: make(name) for name in seen})
    return seen


def test_measured_once_and_again_only_if_told_to(counted, tmp_path, capsys):
    flags = ["--figures", str(tmp_path)]
    assert main(["figures", "one", *flags]) == 0 and counted == {"one": 1, "two": 0}
    assert main(["figures", "--list", *flags]) == 0 and counted == {"one": 1, "two": 0}
    listed = [line.split()[:3] for line in capsys.readouterr().out.splitlines()[-2:]]
    assert listed == [["one", "from", "its"], ["two", "from", "scratch:"]]
    assert main(["figures", *flags]) == 0 and counted == {"one": 1, "two": 1}
    assert main(["figures", "one", "--fresh", *flags]) == 0 and counted == {"one": 2, "two": 1}
    assert read_record(record_path(tmp_path, "one")).found == {"height": 2.0}
    assert {path.name for path in tmp_path.iterdir()} == {"one.png", "one.pdf", "two.png", "two.pdf", "records"}


def test_studies_leave_records(monkeypatch, tmp_path):
    """`study --figures` measures; what it leaves is what `figures` draws from, to the byte."""
    monkeypatch.setattr(ternary, "collect", lambda quick, seed: found())
    assert main(["study", "ternary-dimension", "--seed", "3", "--figures", str(tmp_path)]) == 0
    drawn = (tmp_path / "study-ternary-dimension.png").read_bytes()
    record = read_record(record_path(tmp_path, "study-ternary-dimension"))
    assert record.how == HOW and same(record.found, found())
    monkeypatch.setattr(ternary, "collect", None)
    assert main(["figures", "ternary-dimension", "--figures", str(tmp_path)]) == 0
    assert (tmp_path / "study-ternary-dimension.png").read_bytes() == drawn


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["spectrm"], "unknown figure 'spectrm': did you mean spectrum"),
        (["--record", "x.json"], "one figure"),
        (["spectrum", "--fresh", "--record", "x.json"], "without --fresh"),
        (["spectrum", "--record", "nowhere.json"], "cannot read nowhere.json"),
        (["spectrum", "--record", "."], "got a folder"),
        (["flagship", "--record", "."], "not a record"),
        (["spectrum", "--markdown", "no/folder/pages"], "there is no folder no/folder"),
    ],
)
def test_what_cannot_be_drawn_is_answered(argv, said, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["figures", *argv])
    assert said in capsys.readouterr().err


def test_a_record_of_another_figure_is_answered(tmp_path, capsys):
    path = write_record(tmp_path, "study-ternary-dimension", HOW, 1.0, found())
    with pytest.raises(SystemExit, match="2"):
        main(["figures", "spectrum", "--record", str(path), "--figures", str(tmp_path)])
    assert "is of study-ternary-dimension" in capsys.readouterr().err


def test_a_name_stands_for_figures():
    assert [figure.name for figure in chosen(["spectrum", "study-spectrum", "flagship.png"])] == [
        "study-spectrum",
        "flagship",
    ]
    assert {"study-conef-90", "study-conef-95", "study-conef-digits"} == {figure.name for figure in chosen(["conef"])}
    assert [figure.name for figure in chosen([])] == list(known_figures())


def test_the_flagship_is_drawn_from_a_record_of_run(tmp_path, capsys):
    """A record as `run` leaves it, made up: the figure is drawn from the small record that it becomes."""
    folder, out = tmp_path / "run", tmp_path / "figures"
    folder.mkdir()
    lines = run_lines()
    (folder / "record.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert main(["figures", "flagship", "--record", str(folder), "--figures", str(out)]) == 0
    drawn = (out / "flagship.png").read_bytes()
    record = read_record(record_path(out, "flagship"))
    assert "mine" not in json.dumps(to_json(record.found))  # no folder of the machine
    assert list(record.found["histories"]["sgd"]["step"]) == [0, 10, 20]
    assert main(["figures", "flagship", "--figures", str(out)]) == 0
    assert (out / "flagship.png").read_bytes() == drawn


def test_rank_0_decides_what_is_measured(tmp_path, monkeypatch):
    """Another rank may not see its records, or see one that was written since; all ranks measure the same."""
    measured, other = [], SimpleNamespace(Get_rank=lambda: 1)
    figures = [Figure(name, {}, lambda comm, say, name=name: measured.append(name), None) for name in ("old", "new")]
    monkeypatch.setattr(command, "from_root", lambda comm, work: ["new"])  # what rank 0 has no record of
    command.draw_figures(figures, tmp_path, {"old": None, "new": object()}, comm=other)
    assert measured == ["new"]


def run_lines() -> list[dict]:
    known = dict(
        n=100,
        d=10,
        l2=0.01,
        smoothness=1.0,
        mu=0.01,
        row_moment=1.0,
        gradient=1.0,
        start=0.7,
        lower=0.2,
        optimum=0.2,
        certificate=0.0,
        distance=1.0,
    )
    given = {"out": "/home/mine/runs", "data": "/home/mine/rcv1.svm"}
    theorem = {"function": "", "arguments": {}, "reason": "made up"}
    lines = [
        dict(
            kind="experiment",
            command="run /home/mine",
            ranks=1,
            seed=0,
            versions={},
            started="now",
            configuration=Configuration().as_dict() | given,
            problem="Logistic",
            constants=known,
            data={"name": "made up", "n": 100, "d": 10},
        )
    ]
    for step, f in ((0, 0.7), (10, 0.4), (20, 0.3)):
        lines.append(
            dict(
                kind="history",
                run="sgd",
                step=step,
                samples=8 * step,
                rounds=step,
                seconds=0.1 * step,
                payload_bits_up=320.0 * step,
                f=f,
            )
        )
    lines.append(
        dict(
            kind="result",
            run="sgd",
            title="SGD",
            workers=8,
            batch=1,
            seconds=2.0,
            theorem=theorem,
            verdict="not covered",
            sentence="no theorem: made up",
        )
    )
    return [*lines, dict(kind="end", status="complete")]


# --- what is in the folder --------------------------------------------------------------------------------------------

RECORDED = sorted(path.stem for path in (FOLDER / "records").glob("*.json"))
ON_RANKS = {module.NAME: module for module in (full_size_ranks, scale)}
BENCHMARKS: dict = {module.NAME: module.draw for module in (full_size, growth, whole)} | {
    name: lambda found, module=module: module.report(**found).draw() for name, module in ON_RANKS.items()
}  # `python -m benchmarks` draws these


def test_every_figure_of_the_folder_is_drawn_by_a_command():
    names = {path.stem for ending in ("png", "pdf") for path in FOLDER.glob(f"*.{ending}")}
    assert names <= set(known_figures()) | set(BENCHMARKS), "a figure that no command draws"
    assert all((FOLDER / f"{name}.{ending}").is_file() for name in known_figures() for ending in ("png", "pdf"))
    assert set(RECORDED) <= names


def test_every_study_collects_and_reports():
    for study in STUDIES:
        module = module_of(study)
        assert callable(module.collect) and callable(module.report)


def texts(figure) -> list:
    """All texts that are seen, with those that matplotlib makes when it draws."""
    from matplotlib.text import Text

    figure.canvas.draw()
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def ticks(figure) -> set:
    """The labels of all ticks."""
    found = [axis.get_ticklabels(which="both") for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    return {label for labels in found for label in labels}


def colours_of(figure) -> set[tuple]:
    """Colours of lines, bars, bands and points, without their transparency."""
    from matplotlib.collections import Collection
    from matplotlib.colors import to_rgb
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    seen = set()
    for axes in figure.axes:
        for artist in (*axes.findobj(Line2D), *axes.findobj(Collection)):
            parts = [artist.get_color()] if isinstance(artist, Line2D) else list(artist.get_facecolor())
            seen |= {to_rgb(part) for part in parts if not isinstance(part, str) or part != "none"}
        seen |= {to_rgb(part.get_facecolor()) for part in axes.patches if isinstance(part, Rectangle)}
    return seen


def allowed(colour: tuple) -> bool:
    """A colour of the style's cycle, or a grey."""
    from matplotlib.colors import to_rgb

    nearest = min(max(abs(a - b) for a, b in zip(colour, to_rgb(other), strict=True)) for other in colours())
    return nearest < 1e-6 or max(colour) - min(colour) < 1e-6


@pytest.fixture(scope="module")
def drawn():
    """Figures from their records, each drawn once."""
    made = {}

    def draw(name):
        if name not in made:
            record = read_record(record_path(FOLDER, name))
            assert record.figure == name
            with style():
                draw_found = BENCHMARKS[name] if name in BENCHMARKS else known_figures()[name].draw
                made[name] = draw_found(record.found)
        return made[name]

    return draw


@pytest.mark.parametrize("name", RECORDED)
def test_shipped_figures_can_be_read_in_print(name, drawn):
    """At its own size: no wider than a page, no print below six points, nothing cut off, every axis with its name."""
    figure = drawn(name)
    with style():
        assert figure.get_figwidth() <= PAGE + 1e-9
        seen = texts(figure)
        small = {text.get_text(): text.get_fontsize() for text in seen if text.get_fontsize() < POINTS}
        assert not small
        frame, pad = figure.bbox, 1.5 * figure.dpi / 72.0
        for text in set(seen) - ticks(figure):  # matplotlib has ticks out of sight, too
            box = text.get_window_extent()
            assert box.x0 >= -pad and box.y0 >= -pad, text.get_text()
            assert box.x1 <= frame.x1 + pad and box.y1 <= frame.y1 + pad, text.get_text()
        for axes in figure.axes:
            if axes.axison:
                assert axes.get_xlabel()
        assert any(axes.get_ylabel() for axes in figure.axes if axes.axison) or name == "study-bits-to-accuracy"
        assert all(allowed(colour) for colour in colours_of(figure))


@pytest.mark.parametrize("name", RECORDED)
def test_shipped_records_are_small_and_speak_of_no_machine(name):
    path = record_path(FOLDER, name)
    text = path.read_text(encoding="utf-8")
    assert len(text) < 1000 * KILOBYTES
    assert "/home/" not in text and "/tmp/" not in text and "/work/" not in text
    assert not read_record(path).how.get("quick")


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("study-")])
def test_the_page_says_what_the_records_say(name):
    """Tables and statements of the documentation are those of the record that its figure is drawn from."""
    from theory.studies.shared.report import as_markdown

    record = read_record(record_path(FOLDER, name))
    study = report(record.how["study"], record.found, record.how["experiment"])
    page = (ROOT / "docs" / "studies" / f"{study.name}.md").read_text(encoding="utf-8")
    assert page.endswith(f" -->\n\n{as_markdown(study, f'../../figures/{name}.png')}\n")


@pytest.mark.parametrize("name", ON_RANKS)
def test_the_page_of_a_benchmark_says_what_its_record_says(name):
    from theory.studies.shared.report import as_markdown

    study = ON_RANKS[name].report(**read_record(record_path(FOLDER, name)).found)
    assert as_markdown(study, f"../figures/{name}.png") in ON_RANKS[name].PAGE.read_text(encoding="utf-8")


def test_colours_that_are_not_the_styles_are_seen():
    with style():
        figure, grid = new_figure()
        grid[0, 0].plot([0, 1], [0, 1], color="red")
        grid[0, 0].plot([0, 1], [0, 1], color="0.4")
        grid[0, 0].plot([0, 1], [0, 1])
        assert [allowed(colour) for colour in sorted(colours_of(figure) - {(1.0, 1.0, 1.0)}, reverse=True)][0] is False
        figure.text(0.5, 0.5, "tiny", fontsize=5)
        assert min(text.get_fontsize() for text in texts(figure)) == 5
