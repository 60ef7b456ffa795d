"""The map: for each subject its lectures, methods, compressors, formulas, claims, studies and pages.

``python docs/_map.py`` writes ``docs/map.md``; a test compares the page with what the package has.
"""

from __future__ import annotations

import re
from pathlib import Path

import theory
from theory.claims import find_claim, list_claims
from theory.core.subjects import SUBJECTS
from theory.studies.shared.configuration import FILES, shipped_studies

DOCS = Path(__file__).resolve().parent
NOTEBOOKS = DOCS.parent / "notebooks"
PAGES = {  # of the user guide
    "sgd": {"your-problem.md": "problems"},
    "batches": {"data.md": "data"},
    "quantizers": {"add-a-compressor.md": "compressors"},
    "sparsifiers": {"add-a-compressor.md": "compressors"},
    "memory": {"feedback.md": "feedback rules"},
    "differences": {"feedback.md": "feedback rules"},
    "local": {"your-method.md": "methods"},
    "graphs": {"your-method.md#graphs": "graphs"},
    "adaptive": {"networks.md": "networks"},
    "robust": {"your-server.md": "servers"},
    "privacy": {"choose.md": "how to choose"},
    "delay": {"cluster.md": "clusters"},
    "cost": {"cluster.md": "clusters"},
}
LECTURES = {  # by number
    "sgd": (3,),
    "batches": (2, 9),
    "quantizers": (4, 5),
    "sparsifiers": (4, 6),
    "memory": (7, 8),
    "differences": (14,),
    "local": (9, 13, 15),
    "graphs": (12,),
    "adaptive": (13,),
    "robust": (15,),
    "privacy": (15,),
    "delay": (15,),
    "cost": (1, 10),
}
RUNS = {  # functions that run a method in stages or as threads, which are not in the folder of a subject
    "batches": ("catalyst",),
    "differences": ("qsvrg",),
    "delay": ("run_fastest_k",),
}
HEAD = """# Map

One row for each subject. The same name leads to its folder or module in `theory/bounds`, `theory/methods`,
`theory/compressors`, `theory/claims` and `theory/studies`. `th.listing(subject="memory")` prints what the package has
about a subject, and `th.search("error feedback")` finds a method, a formula or a claim by its words.
Functions that run a method in stages or on simulated clocks (`catalyst`, `qsvrg`, `run_fastest_k`) are in
`theory/cluster`. Lecture 11 is about claims, lecture 16 about what is open.

| subject | lectures | methods and rules | compressors | formulas | claims | studies | guide |
|---|---|---|---|---|---|---|---|
"""


def lecture(number: int) -> str:
    """The link to a lecture."""
    (path,) = NOTEBOOKS.glob(f"{number:02}-*.md")
    title = re.search(r"^# (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)[1]
    return f"[{number} {title}](../notebooks/{path.name})"


def folder(part: str, subject: str) -> str:
    """The link to the code of a subject in a part of the package."""
    here = f"theory/{part}/{subject}"
    return f"../{here}" if (DOCS.parent / here).is_dir() else f"../{here}.py"


def row(subject: str, title: str) -> str:
    """A line of the table."""
    found = theory.listing(subject=subject)
    of = lambda *kinds: ", ".join(f"`{entry.name}`" for entry in found if entry.kind in kinds)  # noqa: E731
    count = sum(entry.kind == "bound" for entry in found)
    claims = [id for id in list_claims() if f"/claims/{subject}/" in find_claim(id).place[0].replace("\\", "/")]
    studies = [name for name, study in shipped_studies().items() if FILES[study].parent.name == subject]
    more = ", ".join(f"`{name}`" for name in RUNS.get(subject, ()))
    cells = (
        f"**{subject}**: {title}",
        ", ".join(map(lecture, LECTURES[subject])),
        ", ".join(filter(None, (of("methods", "servers", "feedback_rules", "graphs"), more))),
        of("compressors"),
        f"[{count}]({folder('bounds', subject)}): " + ", ".join(sorted({f"`{one}`" for one in stems(found)})),
        f"[{len(claims)}]({folder('claims', subject)}): "
        + ", ".join(sorted({f"`{id.partition('.')[0]}`" for id in claims})),
        ", ".join(f"[{name}](studies/{name}.md)" for name in studies),
        ", ".join(f"[{text}]({page})" for page, text in PAGES[subject].items()),
    )
    return "| " + " | ".join(cells) + " |\n"


def first_words(claims: list[str]) -> str:
    """Links to the pages of claims, which are named by the part of an id before the first dot."""
    return ", ".join(f"[{one}](claims/{one}.md)" for one in sorted({id.partition(".")[0] for id in claims}))


def stems(found) -> set[str]:
    """The modules of the formulas of a subject."""
    names = (entry.name.partition(".")[2] for entry in found if entry.kind == "bound")
    return {getattr(theory.bounds, name).__module__.rpartition(".")[2] for name in names}


def page() -> str:
    """The page's text."""
    return HEAD + "".join(row(subject, title) for subject, title in SUBJECTS.items())


if __name__ == "__main__":
    (DOCS / "map.md").write_text(page(), encoding="utf-8")
