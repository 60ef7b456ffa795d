"""The frame around the code: what the README promises exists and runs, the layers hold, the wheel is right."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from conftest import ROOT, run_group
from forked import run_forked, run_lecture

README = (ROOT / "README.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SOURCES = sorted((ROOT / "theory").rglob("*.py"))
LECTURES = sorted((ROOT / "notebooks").glob("[0-9]*.md"))


def blocks(language: str) -> list[str]:
    """The README's fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def python(*args, **options) -> subprocess.CompletedProcess:
    return run_group([sys.executable, *args], **{"timeout": 120, **options})


# --- the commands ---------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/start.md"])
def test_every_make_command_has_its_target(page):
    # With -n make prints what it would do, and knows the target or fails.
    targets = set(re.findall(r"(?:^|`)make ([a-z]+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE))
    assert targets
    for target in targets:
        plan = run_group(["make", "-n", target], timeout=20)
        assert plan.returncode == 0, plan.stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
def test_make_passes_arguments_on_and_uses_its_own_mpirun():
    plan = run_group(["make", "-n", "run", "RANKS=2", "ARGS=list --help"], timeout=20).stdout
    assert ".venv/bin/mpirun -n 2 .venv/bin/python -m theory.experiment list --help" in plan


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
def test_make_refuses_an_old_python(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.6"\nexit 1\n')
    old.chmod(0o755)
    made = run_group(["make", "run", f"PYTHON={old}"], timeout=20, cwd=tmp_path)
    assert made.returncode != 0
    assert "is Python 3.9.6, and theory needs Python 3.11 or newer" in made.stdout
    assert not (tmp_path / ".venv").exists()


def test_the_extras_of_the_readme_exist():
    named = set(re.findall(r"\"\.\[(\w+)\]\"|--extra (\w+)", README))
    extras = {name for pair in named for name in pair if name}
    assert extras
    assert extras <= set(PYPROJECT["project"]["optional-dependencies"])


@pytest.mark.slow
def test_the_cell_of_the_readme_runs_as_written(tmp_path):
    (cell,) = blocks("python")
    script = tmp_path / "cell.py"
    script.write_text(cell, encoding="utf-8")
    answer = python(script, timeout=300, env={"PYTHONPATH": ROOT})
    assert answer.returncode == 0, answer.stderr
    assert "holds" in answer.stdout


MADE = {"_build", "lectures", "api"}  # folders of docs that git does not see
LINKED = [*ROOT.glob("*.md"), *(ROOT / "notebooks").glob("*.md"), *(ROOT / "docs").rglob("*.md")]
LINKED = [page for page in LINKED if not MADE & set(page.relative_to(ROOT).parts) and page.name != "changelog.md"]


@functools.cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page on a code host: of its headings, and those that it names."""
    text = re.sub(r"^(`{3,}).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = set(re.findall(r'<a id="([^"]+)"></a>', text))
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("\\", "")
        slug, n = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-"), 0
        while (slug if n == 0 else f"{slug}-{n}") in found:
            n += 1
        found.add(slug if n == 0 else f"{slug}-{n}")
    return found


def broken(page: Path) -> list[str]:
    """The relative links of a page that lead to no file, or to no anchor, on a code host."""
    text = re.sub(r"^(`{3,}).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(`[^`\n]+`\])|`[^`\n]+`|\$[^$\n]+\$", r"\1", text)  # code and formulas, but for the words of a link
    wrong = []
    for target in re.findall(r"\]\(([^()\s]+)\)", text):
        name, _, anchor = target.partition("#")
        to = page.parent / name if name else page
        if "://" in target or name == "changelog.md":
            continue
        if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to.resolve())):
            wrong.append(target)
    return wrong


def test_links_of_the_pages_lead_somewhere():
    assert len(LINKED) > 100
    assert {str(page.relative_to(ROOT)): wrong for page in LINKED if (wrong := broken(page))} == {}


# --- lectures -------------------------------------------------------------------------------------------------------


every_lecture = pytest.mark.parametrize("lecture", LECTURES, ids=[path.stem for path in LECTURES])


@pytest.mark.slow
@every_lecture
def test_lecture_runs(lecture, tmp_path):
    """In the shell of a notebook's kernel; `test_lecture_runs_in_jupyter` starts the kernel, too."""
    jupytext = pytest.importorskip("jupytext")
    cells = [cell.source for cell in jupytext.read(lecture).cells if cell.cell_type == "code"]
    run_forked(run_lecture, cells, folder=tmp_path, cwd=tmp_path, timeout=550)


@pytest.mark.full
@pytest.mark.slow
@every_lecture
def test_lecture_runs_in_jupyter(lecture, tmp_path):
    jupytext = pytest.importorskip("jupytext")
    notebook = tmp_path / f"{lecture.stem}.ipynb"
    jupytext.write(jupytext.read(lecture), notebook)
    arguments = ["-m", "pytest", "-c", os.devnull, "-p", "no:cacheprovider", "-q", "--nbmake", "--nbmake-timeout=300"]
    answer = python(*arguments, notebook, timeout=550, env={"PYTHONPATH": ROOT}, cwd=tmp_path)
    assert answer.returncode == 0, answer.stdout


# --- the layers, and what is not done -------------------------------------------------------------------------------


def package_of(path: Path) -> str:
    """``theory.bounds.qsgd`` for its file, ``theory.bounds`` for the folder's ``__init__.py``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """The syntax tree of a file, read once."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@functools.cache
def imports(path: Path) -> set[str]:
    """Full names of what a file imports when it runs: modules, and the names taken from them; not for annotations."""
    found: set[str] = set()
    typing = [n for n in nodes(path) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    unused = {inner for block in typing for statement in block.body for inner in ast.walk(statement)}
    for node in nodes(path):
        if node in unused:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                name = package_of(path).split(".")
                keep = len(name) - node.level + (path.name == "__init__.py")
                base = ".".join([*name[:keep], *([node.module] if node.module else [])])
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return found


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def test_bounds_import_nothing_of_the_package_but_their_neighbours():
    for path in (ROOT / "theory" / "bounds").rglob("*.py"):
        ours = {name for name in imports(path) if within(name, "theory") and name != "theory"}
        allowed = ("theory.bounds", "theory.core")  # core for `require`, which refuses arguments out of the domain
        assert all(any(within(name, part) for part in allowed) for name in ours), f"{path.name} imports {ours}"


# Subpackages, from below: each imports from those before it, and never from those behind it.
SUBPACKAGES = [
    "core",
    "data",
    "wire",
    "bounds",
    "problems",
    "compressors",
    "methods",
    "cluster",
    "reporting",
    "measure",
    "worst",
    "claims",
    "plots",
    "studies",
    "experiment",
]


def subpackage_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def graph() -> dict[str, set[str]]:
    """The modules that each module of the package imports; packages, which pass names on, are left out."""
    files = {package_of(path): path for path in SOURCES if path.name != "__init__.py"}
    return {module: imports(path) & set(files) - {module} for module, path in files.items()}


def test_no_subpackage_imports_from_above():
    assert {path.parent.name for path in (ROOT / "theory").glob("*/__init__.py")} == set(SUBPACKAGES)
    for path in SOURCES:
        here = subpackage_of(package_of(path))
        for name in imports(path):
            if here and within(name, "theory") and name != "theory" and subpackage_of(name) in SUBPACKAGES:
                assert SUBPACKAGES.index(subpackage_of(name)) <= SUBPACKAGES.index(here), (
                    f"{package_of(path)} imports {name}"
                )


def test_the_table_of_subpackages_has_their_order_and_names_modules_that_exist():
    """What CONTRIBUTING.md says of imports, each from those above it in the table, is what the test above checks."""
    rows = re.findall(
        r"^\| `(\w+)/` \| (.*) \|$", (ROOT / "docs" / "design.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [name for name, _ in rows] == SUBPACKAGES
    for name, text in rows:
        names = importlib.import_module(f"theory.{name}")
        for word in re.findall(r"`(\w+)/?`", text):
            there = ROOT / "theory" / name / word
            assert there.is_dir() or there.with_suffix(".py").exists() or hasattr(names, word), f"{name}: {word}"
    assert "imports from those above it in the table" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_no_circle_of_files():
    list(TopologicalSorter(graph()).static_order())  # CycleError names the circle


def test_no_module_shares_its_name_with_what_its_package_exports():
    """It would hide the module from `import`; `theory.cluster.run` aside, which is what it is."""
    for path in SOURCES:
        exported = getattr(sys.modules.get(package_of(path).rpartition(".")[0]), path.stem, None)
        if inspect.isroutine(exported) and path.stem != "__init__":
            assert package_of(path) == "theory.cluster.run", path


def test_no_private_name_crosses_a_module():
    for path in SOURCES:
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and (node.level or within(node.module or "", "theory")):
                private = [a.name for a in node.names if a.name.startswith("_") and not a.name.startswith("__")]
                assert not private, f"{path}: {private} from {node.module}"


@pytest.mark.parametrize("slow", ["matplotlib", "sklearn", "mpi4py", "jinja2"])
def test_importing_theory_does_not_load(slow):
    code = f"import sys, theory; sys.exit(any(m == {slow!r} or m.startswith({slow + '.'!r}) for m in sys.modules))"
    answer = python("-c", code)
    assert answer.returncode == 0, answer.stderr or f"import theory loads {slow}; import it where it is used"


def test_works_without_an_mpi_library(tmp_path):
    # As with mpi4py's wheel and no libmpi: the package imports, mpi4py.MPI does not.
    fake = tmp_path / "mpi4py"
    fake.mkdir()
    (fake / "__init__.py").write_text("")
    (fake / "MPI.py").write_text("raise RuntimeError('cannot load MPI library')\n")
    code = (
        "import theory as th; data = th.load_data('breast_cancer').scaled(); problem = th.logistic(data, l2=0.1); "
        "method = th.ParallelSGD(compressor=th.Identity(), batch=1, step=th.InverseTime(c=2.0, mu=0.1, shift=100.0)); "
        "print(th.run(method, problem, workers=2, steps=10, seed=0).success)"
    )
    answer = python("-c", code, env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"})
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip().endswith("True")


def test_no_pickle():
    """But for machine code, which Numba pickles: of a private folder, after a checksum (`theory.core.stored_code`).

    Joblib hands the runs of a sweep to processes that it starts itself, through pipes; no file is read.
    """
    pickles = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
    for path in SOURCES:
        if package_of(path) in ("theory.core.stored_code", "theory.plots.sweep"):
            continue
        assert not {name.split(".")[0] for name in imports(path)} & pickles, path
        for node in nodes(path):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant) and node.value.value is False, f"{path}:{node.value.lineno}"


def test_no_global_random_state():
    allowed = {"Generator", "Philox", "PCG64", "SeedSequence", "default_rng"}
    for path in SOURCES:
        assert "random" not in imports(path), f"{path} imports the standard library's random"
        for node in nodes(path):
            # np.random.<name>, which draws from NumPy's one global generator
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
                assert node.attr in allowed, f"{path}:{node.lineno} uses {ast.unparse(node)}"


def test_only_the_entry_point_takes_comm_world():
    for path in SOURCES:
        if not within(package_of(path), "theory.experiment"):
            uses = [node for node in nodes(path) if isinstance(node, ast.Attribute) and node.attr == "COMM_WORLD"]
            assert not uses, f"{path}:{uses[0].lineno}: communicators are arguments"


# --- the package ----------------------------------------------------------------------------------------------------


def test_words_are_plain():
    """The hook of `.pre-commit-config.yaml`, without pre-commit."""
    hook = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8").partition("- id: private-words")[2]
    private, skipped = (re.search(rf"{key}: '?(.*?)'?\n", hook)[1] for key in ("entry", "exclude"))
    assert re.search(private, "the room") and not re.search(private, "room for kept coordinates")
    folders = "theory", "tests", "benchmarks", "notebooks", "docs", ".ci", ".github"
    for path in (path for folder in (".", *folders) for path in (ROOT / folder).glob("*" if folder == "." else "**/*")):
        if path.suffix in (".py", ".pyi", ".md", ".toml", ".yml", ".html", "") and path.is_file():
            found = re.search(private, path.read_text(encoding="utf-8"), re.IGNORECASE)
            assert not found or re.match(skipped, path.relative_to(ROOT).as_posix()), f"{path}: {found[0]}"


def test_the_version_is_in_the_changelog():
    assert f"## {PYPROJECT['project']['version']}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_types_are_shipped():
    assert (ROOT / "theory" / "py.typed").is_file()


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(tmp_path):
    pytest.importorskip("hatchling", reason="packaging: hatchling is not installed (make test installs it)")
    built = python("-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    info = f"sgd_theory-{PYPROJECT['project']['version']}.dist-info/"
    assert {name for name in names if not name.startswith(("theory/", info))} == set()
    endings = {".py", ".mplstyle", ".typed", ".bib", ".html", ".md", ".toml"}
    shipped = [path for path in (ROOT / "theory").rglob("*") if path.suffix in endings]
    assert {path.relative_to(ROOT).as_posix() for path in shipped} <= names
    assert not any("__pycache__" in name for name in names)
