"""CITATION.cff (Citation File Format 1.2.0): the package, and the papers it follows, from their BibTeX.

    python docs/_citation.py          # writes the file again

A test compares the file with what this makes of ``theory/bounds/bibliography.bib``.
"""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ACCENTS = {"'": "\u0301", "`": "\u0300", '"': "\u0308", "^": "\u0302", "~": "\u0303", "v": "\u030c", "c": "\u0327"}
LETTERS = {r"\L": "Ł", r"\l": "ł", r"\o": "ø", r"\O": "Ø", r"\i": "i", r"\&": "&"}


def citation() -> str:
    """The whole file."""
    from theory.bounds.bibliography import entries

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [
        "# Written by `python docs/_citation.py` from pyproject.toml and theory/bounds/bibliography.bib.",
        "cff-version: 1.2.0",
        "message: If you use this software, please cite it, and the papers whose theorems you use.",
        "type: software",
        f"title: {text(project['name'])}",
        "authors:",
        *(f"  - name: {text(author['name'])}" for author in project["authors"]),
        f"version: {text(project['version'])}",
        f"license: {project['license']}",
        f"abstract: {text(project['description'] + '.')}",
        "keywords:",
        *(f"  - {text(word)}" for word in project["keywords"]),
        "references:",
    ]
    for entry in entries().values():
        lines += reference(entry)
    return "\n".join(lines) + "\n"


def reference(entry: str) -> list[str]:
    """One BibTeX entry as an item of a list."""
    kind, key, found = fields(entry)
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


def fields(entry: str) -> tuple[str, str, dict[str, str]]:
    """Kind, key and fields of a BibTeX entry whose values are in braces."""
    head = re.match(r"@(\w+)\{(\w+),", entry)
    found = {}
    for match in re.finditer(r"^\s*(\w+)\s*=\s*\{", entry, re.MULTILINE):
        depth, end = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(entry[end], 0)
            end += 1
        found[match[1]] = plain(entry[match.end() : end - 1])
    return head[1], head[2], found


def plain(value: str) -> str:
    """Text without TeX."""
    value = re.sub(r"\\([vc])\s*\{?(\w)\}?", lambda m: m[2] + ACCENTS[m[1]], value)
    value = re.sub(r"\\(['`\"^~])\s*\{?\\?(\w)\}?", lambda m: m[2] + ACCENTS[m[1]], value)
    for name, letter in LETTERS.items():
        value = re.sub(re.escape(name) + r"(?![A-Za-z])", letter, value)
    return unicodedata.normalize("NFC", " ".join(value.replace("{", "").replace("}", "").split()))


def text(value: str) -> str:
    """A text as YAML takes it: in quotes."""
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    (ROOT / "CITATION.cff").write_text(citation(), encoding="utf-8")
