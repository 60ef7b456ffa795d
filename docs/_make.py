"""Pages that are made from the code at build time, so that nobody has to keep a second list.

``lectures/``       copies of ``notebooks/*.md`` (myst-nb reads only what lies below ``docs``), ``README.md`` as the
                    index with a table of contents; links to ``../docs/`` and to ``README.md``, right for who reads a
                    notebook where it is, are made to fit there
``sources/``        from ``sources/index.toml``: a page for each source, with all that it states and what came out; its
                    verdicts and numbers are computed (``theory.experiment.sources_index``)
``_generated/``     ``api.md`` from ``theory.__all__``, ``claims.md`` from the registered claims, ``sources.md`` with
                    counts of verdicts and the orderings that do not hold, ``atlas.md`` from solutions and evidence
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
import sys
from collections import Counter
from pathlib import Path

from numpydoc.docscrape import FunctionDoc
from numpydoc.docscrape_sphinx import get_doc_object

DOCS = Path(__file__).resolve().parent
NOTEBOOKS = DOCS.parent / "notebooks"
BOOK = DOCS.parent / "lectures" / "book"  # if `make book` made it

# Part of the package, its title in the reference. What a part does not hold falls through to the next.
TOPICS = [
    ("data", "Data"),
    ("problems", "Problems"),
    ("compressors", "Compressors"),
    ("wire", "On the wire"),
    ("methods.schedules", "Step sizes and averages"),
    ("methods", "Methods"),
    ("cluster", "The cluster"),
    ("measure", "Measuring"),
    ("worst", "Worst cases"),
    ("claims", "Claims"),
    ("plots", "Figures"),
    ("core.random", "Random streams"),
    ("", "More"),
]

# The first part of a claim's id, and its title. A part that is missing here comes last, under its own name.
CLAIM_TOPICS = {
    "sgd": "SGD",
    "bottou": "SGD as Bottou, Curtis and Nocedal have it",
    "logistic": "SGD on logistic regression",
    "budget": "A budget of gradients",
    "pl": "The Polyak-Lojasiewicz inequality",
    "minibatch": "Mini-batches",
    "batch": "Large batches",
    "diversity": "Gradient diversity",
    "mechanism": "Mechanisms that raise diversity",
    "stability": "Stability and generalization",
    "growing": "Growing batches",
    "cr-psgd": "CR-PSGD",
    "catalyst": "Catalyst",
    "local-sgd": "Local SGD",
    "outer": "Outer steps",
    "adam": "Adam",
    "lamb": "LAMB",
    "zero": "Memory and communication of ZeRO",
    "rounds": "Rounds of the methods compared",
    "ef21": "EF21 and related methods",
    "sparsifier": "Sparsifiers",
    "randk": "Random-k",
    "topk": "Top-k",
    "block": "Blocks of coordinates",
    "bernoulli": "Coins",
    "ultra": "Less than one coordinate",
    "threshold": "Thresholds",
    "optimal": "The optimal sparsifier",
    "ternary": "Ternary quantizers",
    "terngrad": "TernGrad",
    "qsgd": "QSGD",
    "nuqsgd": "NUQSGD",
    "qsvrg": "QSVRG",
    "diana": "DIANA",
    "marina": "MARINA",
    "dasha": "DASHA",
    "permk": "Messages with the parts of one permutation",
    "prox-skip": "ProxSkip",
    "natural": "Natural compression",
    "half": "Half precision",
    "sign": "Signs",
    "sketch": "Count sketches",
    "rotation": "Rotations",
    "qjl": "Signs of Gaussian projections",
    "multilevel": "Multilevel compression",
    "scaled": "Scaling",
    "composed": "One compressor after another",
    "atomo": "ATOMO",
    "best-rank": "Best rank",
    "spectrum": "Quantized singular values",
    "powersgd": "PowerSGD",
    "spectral": "The trade of spectral compression",
    "elias": "Elias codes",
    "rice": "Golomb-Rice codes",
    "entropy-coder": "The entropy coder",
    "ef": "Error feedback",
    "conef": "Contractive error feedback",
    "sketch-memory": "A memory in one linear sketch",
    "memsgd": "SGD with memory",
    "frontier": "The longest stable step",
    "bits": "The least bits",
    "federated": "Data that differ",
    "robust": "Workers that lie",
    "gossip": "Gossip",
    "choco": "CHOCO-Gossip",
    "choco-sgd": "CHOCO-SGD",
    "dcd": "DCD-PSGD",
    "ecd": "ECD-PSGD",
    "dpsgd": "D-PSGD",
    "tracking": "Gradient tracking",
    "collectives": "Collective operations",
    "stragglers": "Stragglers",
    "delay": "Late gradients",
    "privacy": "Privacy",
    "overlap": "Overlap of computing and communicating",
    "time": "Time to accuracy",
}

# A source of docs/sources/index.toml: its name in tables, its title, who and where, and how much of it was read.
SOURCES = {
    "lecture": (
        "lecture",
        "Communication bottlenecks and gradient quantization",
        "D. Papailiopoulos, lecture slides, with the theorems of the papers that they follow: D. Yin and others, "
        "*Gradient diversity*, AISTATS 2018; D. Alistarh and others, *QSGD*, NIPS 2017; W. Wen and others, *TernGrad*, "
        "NIPS 2017.",
        "The text of the slides; formulas and numbers that stand in pictures are missing.",
    ),
    "nuqsgd": (
        "NUQSGD",
        "NUQSGD: Provably communication-efficient data-parallel SGD via nonuniform quantization",
        "A. Ramezani-Kebrya, F. Faghri, I. Markov, V. Aksenov, D. Alistarh, D. M. Roy, *Journal of Machine Learning "
        "Research* 22(114), 2021.",
        "The abstract, the titles of the algorithms, and a part of the experiments; theorems as they are remembered.",
    ),
    "mem-sgd": (
        "Mem-SGD",
        "Sparsified SGD with memory",
        "S. U. Stich, J.-B. Cordonnier, M. Jaggi, NeurIPS 2018, arXiv 1809.07599.",
        "The abstract and the references; theorems as others quote them, and numbers of the figures from the results "
        "that the authors stored with their code.",
    ),
    "conef": (
        "ConEF",
        "Contractive error feedback for gradient compression",
        "B. Li, S. Zheng, P. Raman, A. Shrivastava, talk, 2021, with the theorems of its references; the paper is "
        "arXiv 2312.08538.",
        "The text of the slides and the released code; formulas and numbers that stand in pictures are missing.",
    ),
    "cr-psgd": (
        "CR-PSGD",
        "On the computation and communication complexity of parallel SGD with dynamic batch sizes for stochastic "
        "non-convex optimization",
        "H. Yu, R. Jin, talk at ICML 2019 (PMLR 97, pages 7174 to 7183).",
        "The text of the slides, in which root signs and a fraction bar are lost; curves are pictures.",
    ),
}
OURS = {  # what ``ours`` names, one and several
    "bound": ("closed form", "closed forms"),
    "study": ("study", "studies"),
    "figure": ("figure", "figures"),
    "lecture": ("lecture", "lectures"),
    "method": ("name", "names"),
    "test": ("test", "tests"),
}


def everything() -> None:
    lectures()
    sources()
    write(DOCS / "_generated" / "api.md", api())
    write(DOCS / "_generated" / "claims.md", claims())
    write(DOCS / "_generated" / "atlas.md", atlas())


def write(path: Path, text: str) -> None:
    """Write only what changed, so that a second build has less to do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


# --- lectures -------------------------------------------------------------------------------------------------------


def lectures() -> None:
    sys.path.append(str(NOTEBOOKS))
    from colab import launch_links
    from prepare import PICTURE

    folder = DOCS / "lectures"
    sources = {"index.md" if path.name == "README.md" else path.name: path for path in sorted(NOTEBOOKS.glob("*.md"))}
    for path in folder.glob("*.md"):
        if path.name not in sources:
            path.unlink()
    for name, source in sources.items():
        text = source.read_text(encoding="utf-8").replace("](../docs/", "](../").replace("](README.md", "](index.md")
        text = PICTURE.sub("", text)  # its cell shows it
        if launch := name[0].isdigit() and launch_links(source.stem):
            text = re.sub(r"^# .*$", lambda title: f"{title[0]}\n\n{launch}", text, count=1, flags=re.MULTILINE)
        if name == "index.md":  # numbered pages come first, in teaching order
            pages = sorted(path.stem for path in sources.values() if path.name != "README.md")
            if (BOOK / "lectures.pdf").exists():
                text += '\nAll lectures for print: <a href="../lectures.pdf">one PDF</a>.\n'
            text += "\n".join(["", "```{toctree}", ":hidden:", ":maxdepth: 1", "", *pages, "```", ""])
        write(folder / name, text)


# --- the atlas ------------------------------------------------------------------------------------------------------


def atlas() -> str:
    """The table of the atlas, with links to claims."""
    from theory.experiment.atlas import atlas_rows, table

    return table(atlas_rows(), lambda id: f"[`{id}`](#{claim_target(id)})") + "\n"


# --- API ------------------------------------------------------------------------------------------------------------


def api() -> str:
    import theory

    names = [name for name in theory.__all__ if not name.startswith("_")]
    modules = {name: getattr(theory, name) for name in names if inspect.ismodule(getattr(theory, name))}
    left = [name for name in names if name not in modules]
    parts: list[str] = []
    for topic, title in TOPICS:
        here = [name for name in left if belongs(getattr(theory, name), name, topic)]
        left = [name for name in left if name not in here]
        if here:
            parts.append(section(title, [entry(f"theory.{name}", getattr(theory, name)) for name in here]))
    for name, module in modules.items():
        parts.append(section(f"`theory.{name}`", module_entries(module)))
    return "\n".join(parts)


def belongs(thing, name: str, topic: str) -> bool:
    """Whether a name is defined in a part of the package: for a generic, found there."""
    if not topic:
        return True
    part = f"theory.{topic}"
    inside = [m for m in list(sys.modules) if m == part or m.startswith(part + ".")]
    home = getattr(thing, "__module__", None) or type(thing).__module__
    if home in inside:
        return True
    return not home_is_known(home) and any(getattr(sys.modules[m], name, None) is thing for m in inside)


def home_is_known(home: str) -> bool:
    return any(topic and (home == f"theory.{topic}" or home.startswith(f"theory.{topic}.")) for topic, _ in TOPICS)


def section(title: str, entries: list[str]) -> str:
    return "\n".join([f"## {title}", "", "```{eval-rst}", *entries, "```", ""])


def entry(path: str, thing) -> str:
    compiled = getattr(thing, "py_func", None)
    if compiled is not None:  # a Numba dispatcher: documented by the function it was made from
        text = str(get_doc_object(compiled, "function", config={}))
        lines = [f".. py:function:: {path}{inspect.signature(compiled)}", "", *["   " + t for t in text.splitlines()]]
        return "\n".join([*lines, ""])
    if inspect.isclass(thing):
        return f".. autoclass:: {path}\n{members(thing)}"
    if callable(thing):
        return f".. autofunction:: {path}\n"
    return f".. autodata:: {path}\n"


def members(thing: type) -> str:
    """The option that documents what a class adds: not what all settings have, nor fields without a text."""
    hidden = ("_", "domain")
    names = [name for name, member in vars(thing).items() if not name.startswith(hidden) and tells(member)]
    return f"   :members: {', '.join(names)}\n" if names else ""


def tells(member) -> bool:
    """Whether a member has a text that says more than "Alias for field number 0"."""
    text = inspect.getdoc(member)
    return bool(text) and not text.startswith("Alias for field number")


def module_entries(module) -> list[str]:
    """A module and, for a package, each of its modules; what it passes on is documented where it is."""
    lines = [f".. automodule:: {module.__name__}\n"]
    if not hasattr(module, "__path__"):
        return [f".. automodule:: {module.__name__}\n   :members:\n"]
    for info in pkgutil.iter_modules(module.__path__):
        if not info.name.startswith("_"):
            inner = importlib.import_module(f"{module.__name__}.{info.name}")
            passed_on = [
                name
                for name, thing in vars(inner).items()
                if name in dir(module) and name[0] != "_" and getattr(module, name) is thing
                if getattr(thing, "__module__", "") == inner.__name__
            ]
            members = f"   :members: {', '.join(passed_on)}\n" if passed_on else ""
            lines.append(f".. automodule:: {inner.__name__}\n{members}")
    return lines


# --- claims ---------------------------------------------------------------------------------------------------------


def claims() -> str:
    """Every claim, by topic: statement and formula, source, closed form with its domain, and what it must refute."""
    from theory.claims import find_claim, list_claims

    topics, replaces = {topic: [] for topic in CLAIM_TOPICS}, {}
    for claim in map(find_claim, list_claims()):
        topics.setdefault(claim.id.split(".")[0], []).append(claim)
        for other in claim.see if claim.refuted else ():
            replaces.setdefault(other, []).append(claim.id)
    lines = []
    for topic, group in topics.items():
        if group:
            lines += [f"### {CLAIM_TOPICS.get(topic, topic)}", ""]
        for claim in group:
            lines += claim_entry(claim, replaces.get(claim.id, ()))
    return "\n".join(lines)


def claim_entry(claim, replaced) -> list[str]:
    """One claim; ``replaced`` are the refuted statements instead of which it holds."""
    kind = claim.kind + (f", refuted ({claim.refuted})" if claim.refuted else "")
    lines = [f"({claim_target(claim.id)})=", f"**{plain(claim.title)}** ({kind}) `{claim.id}`", ""]
    if claim.latex:
        lines += ["$$", claim.latex, "$$", ""]
    lines += [plain(claim.statement), ""]
    notes = [f"*Source:* {plain(claim.cited)}."]
    if claim.of is not None:
        notes.append(closed_form(claim.of))
    if claim.attained:
        notes.append(f"*Attained:* {plain(claim.attained).rstrip('.')}.")
    if claim.mutants:
        notes.append(f"*Must refute:* {plain('; '.join(claim.mutants))}.")
    if claim.refuted:
        known = {"in print": "Erratum", "quoted": "As quoted", "reading": "Reading"}.get(claim.refuted)
        entry = f"{{ref}}`{claim.title.replace('`', '')} <{errata_target(claim.id)}>`"
        notes.append(f"*{known}:* {entry}." if known else "*Question:* nobody claims it; the numbers say no.")
    if replaced:
        notes.append("*Holds instead of:* " + ", ".join(f"{{ref}}`{i} <{errata_target(i)}>`" for i in replaced) + ".")
    others = [other for other in claim.see if other not in replaced]
    if others:
        notes.append("*See also:* " + ", ".join(f"[`{i}`](#{claim_target(i)})" for i in others) + ".")
    return [*lines, *[f"- {note}" for note in notes], ""]


def claim_target(id: str) -> str:
    """The name by which other pages link to a claim: ``claim-qsgd-variance``."""
    return "claim-" + re.sub(r"[^a-z0-9]+", "-", id.lower())


def errata_target(id: str) -> str:
    """The name of its entry on the pages of refuted statements; of a question, that in the list of claims."""
    from theory.claims import find_claim
    from theory.experiment.ledger_page import NAMES

    return f"{NAMES.get(find_claim(id).refuted, 'claim')}-" + re.sub(r"[^a-z0-9]+", "-", id.lower())


def closed_form(bound) -> str:
    """A link to the function, its arguments with their domain, and what it refuses, from its docstring."""
    fixed = ""
    if isinstance(bound, functools.partial):
        fixed = ", with " + ", ".join(f"`{name}={given!r}`" for name, given in bound.keywords.items())
        bound = bound.func
    page = FunctionDoc(bound)
    said = []
    for parameter in page["Parameters"]:
        text = " ".join(" ".join(parameter.desc).split()) or (parameter.type if "{" in parameter.type else "")
        said.append(f"`{parameter.name}`" + (f": {from_rst(within(text))}" if text else ""))
    domain = f" *Domain:* {'; '.join(said)}." if said else ""
    refused = " ".join(" ".join(" ".join(text) for _, _, text in page["Raises"]).split())
    refused = "" if refused in ("", "If an argument is outside its domain.") else f" *Refused:* {from_rst(refused)}"
    return (
        f"*Closed form:* {{py:func}}`{bound.__name__} <{bound.__module__}.{bound.__name__}>`{fixed}.{domain}{refused}"
    )


NAMES = ("Bernoulli", "Elias", "Euclidean", "Gaussian", "Golomb", "Lipschitz", "None", "Rice", "True")


def within(text: str) -> str:
    """The text as part of a sentence."""
    text = text.rstrip(".")
    return text[0].lower() + text[1:] if text[1:2].islower() and not text.startswith(NAMES) else text


def from_rst(text: str) -> str:
    """Inline reStructuredText as Markdown: code, mathematics, and roles; all else as plain text."""
    parts = re.split(r"(``.+?``|:\w+:`[^`]+`|`[^`]+`)", text)
    found = []
    for part in parts:
        code = re.fullmatch(r"``(.+)``", part)
        role = re.fullmatch(r"(?::(\w+):)?`([^`]+)`", part)
        if code:
            found.append(f"`{code[1]}`")
        elif role and role[1] == "math":
            found.append(f"${role[2]}$")
        elif role:
            found.append(f"`{role[2].split('.')[-1]}`")
        else:
            found.append(plain(part, ends=True))
    return "".join(found)


def plain(text: str, ends: bool = False) -> str:
    """Text in which no character means anything to Markdown; with ``ends`` a blank at either end is kept."""
    words = " ".join(text.split())
    if ends and text.strip():
        words = " " * text[0].isspace() + words + " " * text[-1].isspace()
    return re.sub(r"([\\`*_<>\[\]|$~#])", r"\\\1", words)


# --- sources --------------------------------------------------------------------------------------------------------


def sources() -> None:
    items = source_items()
    folder = DOCS / "sources"
    for path in folder.glob("*.md"):
        if path.stem not in SOURCES:
            path.unlink()
    for source in SOURCES:
        write(folder / f"{source}.md", source_page(source, [one for one in items if one.entry.source == source]))
    write(DOCS / "_generated" / "sources.md", source_summary(items))


def source_items() -> list:
    """Every entry with its verdict, which is computed from its evidence."""
    from theory.experiment.sources_index import judge_index

    return judge_index(DOCS / "sources" / "index.toml", DOCS.parent / "figures")


def source_page(source: str, items: list) -> str:
    """Everything that one source states, in its order."""
    _, title, who, read = SOURCES[source]
    said = ", ".join(f"{n} *{verdict}*" for verdict, n in in_order(Counter(one.verdict for one in items)))
    lines = [f"# {title}", "", who, "", f"**Read.** {read}", ""]
    lines += [f"**{len(items)} entries:** {said}. {{doc}}`/verdicts` says what these words mean.", ""]
    for one in items:
        lines += source_entry(one)
    return "\n".join(lines)


def in_order(counts: Counter) -> list[tuple[str, int]]:
    """Verdicts with their numbers, in the order of the scale; what is not judged comes last."""
    from theory.reporting.scale import SCALE, UNJUDGED

    return [(word, counts[word]) for word in (*SCALE, UNJUDGED) if word in counts]


def source_entry(one) -> list[str]:
    """What is said and printed, what came out by which evidence, and where to find it."""
    from theory.reporting.scale import marked

    item = one.entry
    lines = [f"({source_target(item)})=", f"## {inline(item.id)}", ""]
    lines += [f"*{item.kind.capitalize()}.* {inline(item.says)}", ""]
    said = "" if item.relation == one.verdict else f", {item.relation}"
    terms = {
        "Printed": inline(item.printed),
        "Here": inline(one.measured),
        "Verdict": f"**{marked(one.verdict)}**{said}. {inline(one.reason)}",
        "Evidence": evidence_of(one.evidence),
        "Left out": f"{evidence_of(one.left_out)}. **Because:** {inline(one.because)}" if one.left_out else "",
        "See": ours_of(see_also(one)),
        "Try": "; ".join(f"`{command}`" for command in item.commands()),
    }
    for term, text in terms.items():
        if text:
            lines += [term, f": {text.rstrip()}", ""]
    return lines


def see_also(one) -> list[str]:
    """What else to read: also a study of which only numbers are shown."""
    shown = {piece.key.partition("#")[0] for piece in (*one.evidence, *one.left_out)}
    more = [f"study:{name}" for name in one.entry.studies() if f"study:{name}" not in {*shown, *one.entry.ours}]
    return [*one.entry.ours, *more]


def evidence_of(pieces) -> str:
    """Links to pieces of evidence, each with its status; the statements of a study behind its name."""
    from theory.claims.judgement import FARTHEST
    from theory.reporting.scale import LOOSELY

    found: dict[str, list[str]] = {}
    for piece in pieces:
        kind, _, name = piece.key.partition(":")
        name, _, part = name.partition("#")
        said = f"*{piece.status}*"
        if piece.status == LOOSELY and piece.passing is not None:
            said += ", any factor passes" if piece.passing >= FARTHEST else f", a factor of {piece.passing:.3g} passes"
        if kind == "study":
            found.setdefault(f"study {link_to(kind, name)}", []).append(f"“{plain(piece.text).rstrip('.')}” ({said})")
        elif kind == "claim":
            found.setdefault("claims", []).append(f"{link_to(kind, name)} ({said}{', one check' if part else ''})")
        else:
            found.setdefault("tests", []).append(f"`{name}`")
    return "; ".join(
        f"{head[:-1] if head == 'claims' and len(n) == 1 else head}: {', '.join(n)}" for head, n in found.items()
    )


def source_summary(items: list) -> str:
    """How many entries of each source have which verdict, and those that do not hold."""
    counts = Counter((one.entry.source, one.verdict) for one in items)
    verdicts = [verdict for verdict, _ in in_order(Counter(one.verdict for one in items))]
    heads = [f"{{doc}}`{name} </sources/{source}>`" for source, (name, *_) in SOURCES.items()]
    lines = ["## Counts", "", "| verdict | " + " | ".join(heads) + " | all |", "|---|" + "---:|" * (len(SOURCES) + 1)]
    rows = [(verdict, [counts[source, verdict] for source in SOURCES]) for verdict in verdicts]
    rows.append(("all", [sum(row[k] for _, row in rows) for k in range(len(SOURCES))]))
    lines += [f"| {verdict} | {' | '.join(map(str, row))} | {sum(row)} |" for verdict, row in rows]
    lines += ["", "## What fails", ""]
    for one in items:
        if one.verdict == "fails":
            item, target = one.entry, f"{{ref}}`{one.entry.id} <{source_target(one.entry)}>`"
            lines += [f"- {SOURCES[item.source][0]}, {target}. {inline(item.says)}"]
            lines += [f"  **Verdict:** {one.verdict}, {item.relation}."]
            lines += [f"  **Measured:** {inline(one.measured)} **Remark:** {inline(one.reason)}"]
    return "\n".join([*lines, ""])


def source_target(item) -> str:
    """The name by which other pages link to an entry."""
    return "source-" + re.sub(r"[^a-z0-9]+", "-", f"{item.source} {item.id}".lower()).strip("-")


def ours_of(names: list[str]) -> str:
    """Links to what the package has on an entry, by kind."""
    found: dict[str, list[str]] = {}
    for kind, name in (name.split(":", 1) for name in names):
        found.setdefault(kind, []).append(link_to(kind, name))
    return "; ".join(
        f"{words[len(found[kind]) > 1]} {', '.join(found[kind])}" for kind, words in OURS.items() if kind in found
    )


def link_to(kind: str, name: str) -> str:
    if kind == "claim":
        return f"[`{name}`](#{claim_target(name)})"
    if kind == "bound":
        return f"{{py:func}}`{name} <{getattr(importlib.import_module('theory.bounds'), name).__module__}.{name}>`"
    if kind == "study":
        return f"[`{name}`]({study_sections()[name]})"
    if kind == "figure":
        return f"{{download}}`{name} <../../figures/{name}.png>`"
    if kind == "lecture":
        (path,) = NOTEBOOKS.glob(f"{name}-*.md")
        return f"{{doc}}`{int(name)} </lectures/{path.stem}>`"
    if kind == "method":
        return f"{{py:obj}}`{name} <theory.{name}>`"
    return f"`{name}`"


@functools.cache
def study_sections() -> dict[str, str]:
    """Where a study's tables are, as a page below ``docs`` links to it: under the last heading above them."""
    found = {}
    for page in ("studies.md", "choose.md"):
        heading = ""
        for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
            begin = re.fullmatch(r"<!-- begin: python -m theory\.experiment study (\S+) -->", line)
            if begin:
                found[begin[1]] = f"../{page}#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            elif line.startswith("#"):
                heading = line.lstrip("#").strip()
    return found


def inline(text: str) -> str:
    """Text of the index as Markdown: mathematics and code as they are, pages of ``docs`` as links, all else plain."""
    parts = re.split(r"(\$[^$]+\$|`[^`]+`)", text)
    found = "".join(part if part[:1] in ("$", "`") else plain(part, ends=True) for part in parts)
    found = re.sub(r"^(\d+)([.)])|^([-+])", lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", found)
    return re.sub(r"docs/([a-z-]+\.md)", r"[\1](../\1)", found)
