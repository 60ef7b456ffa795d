"""Every block of code in the documentation: Python runs, commands are understood, scripts are scripts.

The blocks of one page run in order, in one namespace and one process of their own, in the folder ``docs``.
A block that cannot run says so in the line before it, ``<!-- not run: the reason -->``, and its test is skipped with
that reason.  ``<!-- file: ... -->`` is the text of a file, which ``python docs/_plain.py`` writes there.  The one
Python cell of README.md runs in test_project.py.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import ROOT, run_group
from forked import run_blocks, run_forked

from theory.claims import find_claim, list_claims
from theory.experiment import audit_command, cli
from theory.reporting.files import find_toml
from theory.studies.shared.configuration import chosen

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [page for page in PAGES if page.name != "changelog.md"]  # a copy, made by `make docs`
FENCE = re.compile(
    r"(?:<!-- (not run|file): ([^\n]*?) -->\n)?^(`{3,}|:{3,})([^\n`]*)\n(.*?)^\3$", re.MULTILINE | re.DOTALL
)
PYTHON = ("python", "{code-cell} python", "{code-cell} ipython3", "{code-block} python")
SHELL = ("sh", "bash", "{code-block} sh", "{code-block} bash")
QUICK = {"data"}  # pages whose Python compiles next to nothing
MODULE = re.compile(r"(?:\S*python3?|\$PY|\$\{PY\}) -m ([\w.]+)(.*)")


class Block(NamedTuple):
    """A fenced block: its page, the line of its fence, its language, its text, and why it does not run."""

    page: Path
    line: int
    language: str
    text: str
    reason: str | None
    file: str | None

    @property
    def id(self) -> str:
        """Page and line."""
        return f"{self.page.stem}-{self.line}"


def blocks() -> list[Block]:
    """All of them."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start(3)) + 1
            said = {match[1]: match[2]}
            found.append(Block(page, line, match[4].strip(), match[5], said.get("not run"), said.get("file")))
    return found


BLOCKS = blocks()
RUN = [
    block
    for block in BLOCKS
    if block.language in PYTHON and block.reason is None and block.file is None and block.page.name != "README.md"
]


def logical_lines(text: str) -> list[str]:
    """Commands, without comments and prompts, continued lines joined."""
    lines = [line.strip() for line in text.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def words(line: str) -> list[str]:
    """What a shell would make of a command, up to a pipe or a redirection."""
    found = shlex.split(re.sub(r"<(\w+)>", r"\1", line), comments=True)
    ends = [k for k, word in enumerate(found) if word in ("|", ">", ">>", "&&", ";", "&", "2>&1")]
    return found[: ends[0]] if ends else found


def experiment_lines() -> list:
    """Every command that starts the experiment, as it stands: an argument list for its parser."""
    found = {}
    for block in BLOCKS:
        if block.language in SHELL and block.reason is None:
            for line in logical_lines(block.text):
                match = MODULE.search(line)
                if match and match[1] == "theory.experiment":
                    found.setdefault(shlex.join(words(match[2])), block)
                arguments = re.search(r'\bmake run .*ARGS="([^"]*)"', line)
                if arguments:
                    found.setdefault(shlex.join(words(arguments[1])), block)
    return [pytest.param(shlex.split(k), id=k or "(flagship)") for k in sorted(found) if "--help" not in k]


# --- Python -----------------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """A cell without its options."""
    return re.sub(r"\A(?::[\w-]+:.*\n)+\n?", "", re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL))


def pages_that_run() -> list:
    stems = dict.fromkeys(block.page for block in RUN)
    return [pytest.param(page, id=page.stem, marks=[] if page.stem in QUICK else [pytest.mark.slow]) for page in stems]


@pytest.mark.parametrize("page", pages_that_run())
def test_python_of_the_page_runs(page, tmp_path):
    todo = [(f"{block.page.name}, line {block.line}", plain(block.text)) for block in RUN if block.page == page]
    run_forked(run_blocks, todo, folder=tmp_path, cwd=ROOT / "docs", timeout=540)


def test_files_in_the_pages_are_as_they_are():
    plain_pages = from_docs("_plain")
    written = [block for block in BLOCKS if block.file is not None]
    assert len(written) >= 7
    for block in written:
        assert block.text == plain_pages.block_of(block.page, block.file), (
            f"{block.id}: python docs/_plain.py writes it"
        )


def test_pages_read_well_without_sphinx():
    """On a code host: no directive, no role, no target; the front page of the documentation is for Sphinx alone."""
    for page in PAGES:
        if page.name != "index.md":
            text = FENCE.sub(lambda match: match[0].splitlines()[0], page.read_text(encoding="utf-8"))
            raw = re.findall(r"^(?:`{3,}|:{3,})\{.*|^\([\w-]+\)=$|\{[\w:]+\}`[^`]*`|^jupytext:", text, re.MULTILINE)
            assert not raw, f"{page.name}: {raw}"


def test_what_sphinx_needs_is_added_to_plain_pages():
    made = from_docs("_plain").for_sphinx
    assert (
        made("[a](../notebooks/07-memory.md), [b](../notebooks/README.md)")
        == "[a](/lectures/07-memory.md), [b](/lectures/index.md)"
    )
    assert made("[a](../../notebooks/07-memory.md)") == "[a](/lectures/07-memory.md)"
    assert made("[`th.run`](../api.md#run)") == "{py:obj}`th.run <theory.run>`"
    assert made('| <a id="run"></a>[`th.run`](../theory/x.py) |') == "| {py:obj}`th.run <theory.run>` |"
    bound = "{py:obj}`th.bounds.qsgd_variance <theory.bounds.quantizers.qsgd.qsgd_variance>`"
    assert made("[`th.bounds.qsgd_variance`](api.md#bounds.qsgd_variance)") == bound
    assert made("[a](../errata.md#reading-a-b)") == "[a](#reading-a-b)"
    assert made('<a id="a-b"></a>\n\n## T') == "(a-b)=\n\n## T"
    assert made("<!-- toctree: a b/* -->") == "```{toctree}\n:hidden:\n:glob:\n\na\nb/*\n```"
    page = made("<!-- executed -->\n```python\n1\n```\n<!-- file: x.py -->\n```python\n2\n```")
    assert page.startswith("---\njupytext:") and page.count("{code-cell}") == 1 and page.count("```python") == 1


# --- what does not run ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [pytest.param(b, id=b.id) for b in BLOCKS if b.reason is not None])
def test_what_does_not_run_says_why(block):
    assert len(block.reason) > 10
    if block.language in PYTHON:
        compile(plain(block.text), block.id, "exec")
    pytest.skip(f"{block.id} does not run: {block.reason}")


def test_every_block_has_a_language():
    """So that nothing escapes: Python, a shell's commands, TOML, a directive; `text` is what a program printed."""
    for block in BLOCKS:
        known = block.language in (*PYTHON, *SHELL, "toml", "text", "bibtex") or block.language.startswith("{")
        assert known, f"{block.id}: a block of {block.language or 'no language'}"
        assert not block.language.startswith("{code") or block.language in (*PYTHON, *SHELL), block.id


def test_toml_is_toml():
    for block in BLOCKS:
        if block.language == "toml":
            assert tomllib.loads(block.text), block.id


# --- commands ---------------------------------------------------------------------------------------------------------


class Understood(Exception):
    """The parser took the arguments; carries them."""


@pytest.fixture
def parsed(monkeypatch, tmp_path):
    """Arguments to what the real parser makes of them, in a folder that has the files which the pages speak of."""
    for name in ("my.toml", "two_entries.toml"):
        (tmp_path / name).write_text('study = "nuqsgd"\n', encoding="utf-8")
    (tmp_path / "runs" / "record").mkdir(parents=True)
    (tmp_path / "runs" / "record" / "configuration.toml").write_text("", encoding="utf-8")
    (tmp_path / "my_compressor.py").touch()
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    monkeypatch.chdir(tmp_path)

    original = cli.Parser.parse_args

    def parse_args(parser, argv=None, namespace=None):
        raise Understood(original(parser, argv, namespace))

    monkeypatch.setattr(cli.Parser, "parse_args", parse_args)

    def ask(argv):
        with pytest.raises(Understood) as found:
            cli.main(argv)
        return found.value.args[0]

    return ask


@pytest.mark.parametrize("argv", experiment_lines())
def test_commands_are_understood(argv, parsed):
    options = parsed(argv)
    known = list_claims()
    assert all(id.partition("@")[0] in known or Path(id).is_file() for id in getattr(options, "ids", []))  # verify
    if getattr(options, "config", None) is not None:
        find_toml(options.config)
    if argv[:1] == ["study"]:
        chosen(options.names)
    if argv[:1] == ["audit"]:
        from theory.compressors import registered

        classes = {cls.__name__ for cls in registered()}
        for name in options.names:
            if Path(name).suffix == ".py":
                assert Path(name).is_file()
            elif name in classes:
                assert audit_command.chosen([name], 640)
            else:
                assert name == "YourCompressor"


def test_a_wrong_command_would_be_found(parsed):
    for argv in (["verify", "--qick"], ["nonsense"], ["audit", "--d"], ["--configuration", "x"]):
        with pytest.raises(SystemExit, match="2"):
            cli.main(argv)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_shell_blocks_are_shell(page, tmp_path):
    for block in BLOCKS:
        if block.page == page and block.language in SHELL:
            script = tmp_path / "block.sh"
            script.write_text(re.sub(r"<(\w[\w ]*)>", "name", block.text), encoding="utf-8")
            checked = run_group(["bash", "-n", script], timeout=20)
            assert checked.returncode == 0, f"{block.id}: {checked.stderr}"


def test_modules_and_scripts_that_commands_name_are_there():
    for block in BLOCKS:
        if block.language in SHELL and block.reason is None:
            for line in logical_lines(block.text):
                match = MODULE.search(line)
                if match:
                    assert importlib.util.find_spec(match[1]) is not None, f"{block.id}: {line}"
                for script in re.findall(r"python3? ([\w./-]+\.py)", line):
                    assert (ROOT / script).is_file(), f"{block.id}: {line}"


# --- pages that are made ----------------------------------------------------------------------------------------------


def from_docs(name: str):
    """A module of the folder ``docs``."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_citation_file_has_the_sources_of_the_course():
    made = from_docs("_citation").citation()
    assert (ROOT / "CITATION.cff").read_text(encoding="utf-8") == made, "python docs/_citation.py writes it again"
    assert made.count("BibTeX key") == 5 and "NUQSGD" in made
    assert not set(made) & set("{}\\")


LABELS = {"in print": "*Erratum:*", "quoted": "*As quoted:*", "reading": "*Reading:*", "question": "*Question:*"}


def test_the_pages_of_claims_have_bounds_domains_and_errata(make):
    pages = make.claim_pages()
    for id in list_claims():
        claim = find_claim(id)
        entry = pages[id.split(".")[0]].partition(f"\n## `{id}`\n")[2].partition("\n## ")[0]
        assert all(part in entry for part in ("*Verdict:*", "*Source:*", "*Closed form:*" if claim.of else "*Try:*"))
        assert [label for label in LABELS.values() if label in entry] == (
            [LABELS[claim.refuted]] if claim.refuted else []
        )
    worst = pages["qsgd"].partition("\n## `qsgd.variance`\n")[2].partition("\n## ")[0]
    assert "[`th.bounds.qsgd_variance`](../api.md#bounds.qsgd_variance)" in worst and "*Verdict:* holds." in worst
    assert "`d`: dimension, at least 1; `s`: number of levels above zero, at least 1" in worst


@pytest.fixture(scope="module")
def make():
    pytest.importorskip("numpydoc", reason="documentation: numpydoc is not installed (make docs installs it)")
    return from_docs("_make")


def test_pages_that_are_made_are_those_of_the_code_and_of_the_records(make, monkeypatch, tmp_path):
    written = {}
    monkeypatch.setattr(make, "write", lambda path, text: written.update({path: text}))
    monkeypatch.setattr(Path, "unlink", lambda path: written.update({path: ""}))
    make.committed()
    assert len(written) > 80
    old = [path.name for path, text in written.items() if not path.exists() or path.read_text("utf-8") != text]
    assert not old, f"python docs/_make.py writes {', '.join(old)} again"


def test_there_are_at_most_18_pages_beside_those_that_are_made():
    """The front page lists them; of these only the text that is not between marks is written by hand."""
    made = {"index.md", "api.md", "errata.md", "map.md"}
    assert len([page for page in (ROOT / "docs").glob("*.md") if page.name not in {*made, "changelog.md"}]) <= 18
    assert len((ROOT / "docs" / "studies.md").read_text(encoding="utf-8").splitlines()) <= 80
