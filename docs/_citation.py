"""CITATION.cff (Citation File Format 1.2.0): the package, and the sources of the course, from their BibTeX.

    python docs/_citation.py          # writes the file again

A test compares the file with what this makes of ``theory/bounds/bibliography.bib``.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from theory.bounds.bibliography import entries, parsed, plain  # noqa: E402

# The papers of the course; the lecture on communication bottlenecks follows Yin and others on gradient diversity.
SOURCES = (
    "yin2018gradient",
    "ramezani2021nuqsgd",
    "stich2018sparsified",
    "li2023contractive",
    "yu2019computation",
)


def citation() -> str:
    """The whole file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [
        "# Written by `python docs/_citation.py` from pyproject.toml and theory/bounds/bibliography.bib.",
        "cff-version: 1.2.0",
        "message: If you use this software, please cite it, and the papers whose theorems you use.",
        "type: software",
        'title: "theory"',
        "authors:",
        *(f"  - name: {text(author['name'])}" for author in project["authors"]),
        f"version: {text(project['version'])}",
        f"license: {project['license']}",
        f"abstract: {text(project['description'] + '.')}",
        "keywords:",
        *(f"  - {text(word)}" for word in project["keywords"]),
        "references:",
    ]
    known = entries()
    for key in SOURCES:
        lines += reference(key, known[key])
    return "\n".join(lines) + "\n"


def reference(key: str, entry: str) -> list[str]:
    """One BibTeX entry as an item of a list."""
    kind, raw = parsed(entry)
    found = {name: plain(value) for name, value in raw.items()}
    of_kind = {"article": "article", "inproceedings": "conference-paper", "book": "book"}
    lines = [f"  - type: {of_kind.get(kind, 'generic')}", f"    title: {text(found['title'])}", "    authors:"]
    for author in found["author"].split(" and "):
        if author == "others":
            lines.append("      - name: others")
        else:
            family, _, given = (part.strip() for part in author.partition(","))
            lines += [f"      - family-names: {text(family)}", f"        given-names: {text(given)}"]
    lines.append(f"    year: {found['year']}")
    for name, theirs in (("journal", "journal"), ("volume", "volume"), ("number", "issue"), ("publisher", "publisher")):
        if name in found:
            value = found[name] if found[name].isdigit() else text(found[name])
            lines += ["    publisher:", f"      name: {value}"] if name == "publisher" else [f"    {theirs}: {value}"]
    if "pages" in found:
        first, _, last = found["pages"].replace("–", "-").replace("--", "-").partition("-")
        lines += [f"    start: {first}", f"    end: {last}"]
    if "booktitle" in found:
        lines += ["    conference:", f"      name: {text(found['booktitle'])}"]
    paper = re.search(r"arXiv:(\d{4}\.\d{4,5})", found.get("note", ""))
    if paper:
        lines.append(f"    url: {text(f'https://arxiv.org/abs/{paper[1]}')}")
    lines.append(f"    notes: {text(', '.join(part for part in (found.get('note', ''), f'BibTeX key {key}') if part))}")
    return lines


def text(value: str) -> str:
    """A text as YAML takes it: in quotes."""
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    (ROOT / "CITATION.cff").write_text(citation(), encoding="utf-8")
