"""Pages that are made from the code and from records, so that nobody has to keep a second list.

``python docs/_make.py`` writes those that belong to the repository, so that a code host shows them; a test compares
them with the code, and ``make docs`` writes them, too:

``claims/``         a page for each topic with its claims; ``claims.md`` lists the pages, and has the table of the atlas
``sources/``        from ``sources/index.toml``: a page for each source, with all that it states and what came out; its
                    verdicts and numbers are computed (``theory.experiment.sources_index``)
``studies.md``      the table of studies, from their records, and that of the sources
``api.md``          every public name by subject, with its first sentence

``make docs`` alone writes what git does not see:

``lectures/``       copies of ``notebooks/*.md`` (myst-nb reads only what lies below ``docs``), ``README.md`` as the
                    index with a table of contents; links are made to fit there
``api/``            a page for each subject, from the docstrings
``changelog.md``    ``CHANGELOG.md``
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
    "bottou": "SGD after Bottou, Curtis and Nocedal",
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
    "ef21": "EF21 variants",
    "sparsifier": "Sparsifiers",
    "randk": "Random-k",
    "topk": "Top-k",
    "block": "Blocks of coordinates",
    "bernoulli": "Bernoulli sparsifiers",
    "ultra": "Sparsification below one coordinate",
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
    "permk": "Perm-K: the parts of one permutation",
    "prox-skip": "ProxSkip",
    "natural": "Natural compression",
    "half": "Half precision",
    "sign": "Signs",
    "sketch": "Count sketches",
    "rotation": "Rotations",
    "qjl": "Signs of Gaussian projections",
    "multilevel": "Multilevel compression",
    "scaled": "Scaling",
    "composed": "Compositions of compressors",
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
    "federated": "Heterogeneous data",
    "robust": "Hostile workers",
    "gossip": "Gossip",
    "choco": "CHOCO-Gossip",
    "choco-sgd": "CHOCO-SGD",
    "dcd": "DCD-PSGD",
    "ecd": "ECD-PSGD",
    "dpsgd": "D-PSGD",
    "tracking": "Gradient tracking",
    "collectives": "Collective operations",
    "stragglers": "Stragglers",
    "delay": "Delayed gradients",
    "privacy": "Privacy",
    "ridge": "SGD on ridge regression",
    "signum": "Signs of momenta",
    "dcgd": "Compressed gradients where data differ",
    "econtrol": "EControl",
    "clag": "Lazy messages (CLAG)",
    "muon": "EF21-Muon",
    "streaming": "Streaming DiLoCo",
    "async": "Asynchronous SGD",
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
NAMED = {  # what ``ours`` names, one and several
    "bound": ("closed form", "closed forms"),
    "study": ("study", "studies"),
    "figure": ("figure", "figures"),
    "lecture": ("lecture", "lectures"),
    "method": ("name", "names"),
    "test": ("test", "tests"),
}


def everything() -> None:
    """All pages."""
    committed()
    lectures()
    api_pages()
    write(DOCS / "changelog.md", (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8"))


def committed() -> list[Path]:
    """Write the pages that belong to the repository, remove those of which nothing is left, and return what changed."""
    items = source_items()
    made = {f"sources/{s}.md": source_page(s, [one for one in items if one.entry.source == s]) for s in SOURCES}
    made |= {f"claims/{topic}.md": text for topic, text in claim_pages().items()} | {"api.md": api()}
    parts = {"claims": claim_topics(), "atlas": atlas(), "studies": studies(), "sources": source_summary(items)}
    for page in ("claims.md", "studies.md"):
        made[page] = with_parts((DOCS / page).read_text(encoding="utf-8"), parts)
    changed = [path for name, text in made.items() if write(path := DOCS / name, text)]
    for path in (*DOCS.glob("sources/*.md"), *DOCS.glob("claims/*.md")):
        if path.relative_to(DOCS).as_posix() not in made:
            path.unlink()
            changed.append(path)
    return changed


def with_parts(text: str, parts: dict[str, str]) -> str:
    """A page with its parts between their marks as they are now."""
    return re.sub(
        r"^<!-- made: (\w+) -->\n.*?^<!-- end -->$",
        lambda found: f"<!-- made: {found[1]} -->\n\n{parts[found[1]].strip()}\n\n<!-- end -->",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )


def write(path: Path, text: str) -> bool:
    """Write only what changed, so that a second build has less to do; whether it did."""
    path.parent.mkdir(parents=True, exist_ok=True)
    changed = not path.exists() or path.read_text(encoding="utf-8") != text
    if changed:
        path.write_text(text, encoding="utf-8")
    return changed


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
        text = source.read_text(encoding="utf-8").replace("](../docs/", "](/").replace("](README.md", "](index.md")
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

    return table(atlas_rows(), claim_link) + "\n"


# --- studies --------------------------------------------------------------------------------------------------------


def studies() -> str:
    """A row for each study: its question, its first statement with the verdict, how many have which, its figure."""
    from theory.reporting.json_values import read_record
    from theory.studies import report
    from theory.studies.shared.report import OURS

    records = [read_record(path) for path in sorted((DOCS.parent / "figures" / "records").glob("study-*.json"))]
    rows = ["| study | first statement | its verdict | all statements | figure |", "|---|---|---|---|---|"]
    for record in records:
        study = report(record.how["study"], record.found, record.how["experiment"])
        first, counts = study.statements[0], in_order(Counter(said.verdict for said in study.statements))
        said = inline(first.text) + (" *" if first.source == OURS else "")
        cells = (
            f"[{plain(study.title)}](studies/{study.name}.md)",
            said,
            f"**{first.verdict}**",
            ", ".join(f"{n} {verdict}" for verdict, n in counts),
            f"[figure](../figures/study-{study.name}.png)",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


# --- API ------------------------------------------------------------------------------------------------------------


def api_topics() -> dict[str, dict[str, list]]:
    """Public names by subject: title to path and thing; a subpackage's own names stand under its title."""
    import theory

    names = [name for name in theory.__all__ if not name.startswith("_")]
    modules = {name: getattr(theory, name) for name in names if inspect.ismodule(getattr(theory, name))}
    left = [name for name in names if name not in modules]
    found: dict = {}
    for topic, title in TOPICS:
        here = [name for name in left if belongs(getattr(theory, name), name, topic)]
        left = [name for name in left if name not in here]
        if here:
            found[title] = {name: getattr(theory, name) for name in here}
    return found | {f"`theory.{name}`": module for name, module in modules.items()}


def api() -> str:
    """Every public name by subject, with the first sentence of its docstring and a link to its source."""
    lines = [API_HEAD]
    for title, names in api_topics().items():
        module = inspect.ismodule(names)
        lines += [f"## {title}", ""]
        if module:
            lines += [from_rst(first_sentence(names)), ""]
            path, public = names.__name__.removeprefix("theory."), public_names(names)
            names = {f"{path}.{name}": getattr(names, name) for name in public}
        if names:
            lines += ["| name | what it is |", "|---|---|"]
            lines += [f"| {api_entry(name, thing)} | {cell(first_sentence(thing))} |" for name, thing in names.items()]
        lines.append("")
    return "\n".join([*lines, "<!-- toctree: api/* -->", ""])


API_HEAD = """# API

Every public name, by subject. `import theory as th` gives all of them; `help(th.run)` prints the whole text of one. The
built documentation (`make docs`) has the same texts, a page for each subject.

<!-- Written by `python docs/_make.py`. -->
"""


def slug_of(title: str) -> str:
    """The name of a subject's page."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def public_names(module) -> list[str]:
    """What a subpackage offers beside the names of ``theory``: those that it lists, or else defines."""
    import theory

    names = getattr(module, "__all__", None) or [name for name in dir(module) if name[0] != "_"]
    things = {name: getattr(module, name, None) for name in names}
    ours = {n: x for n, x in things.items() if getattr(x, "__module__", "").startswith(module.__name__)}
    return sorted(n for n, x in ours.items() if callable(x) and getattr(theory, n, None) is not x)


def api_entry(name: str, thing) -> str:
    """The anchor of a name, and the name with a link to the file that defines it."""
    thing = getattr(thing, "py_func", thing)
    home = inspect.getmodule(thing) if callable(thing) else None
    file = getattr(home, "__file__", None) if home and home.__name__.startswith("theory") else None
    link = f"](../{Path(file).relative_to(DOCS.parent).as_posix()})" if file else ""
    return f'<a id="{name}"></a>' + (f"[`th.{name}`{link}" if link else f"`th.{name}`")


def first_sentence(thing) -> str:
    """The first sentence of a docstring, without the signature that a generic begins with."""
    text = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=\w[.])(?<!et al\.)\s", text)[0]


def cell(text: str) -> str:
    """Inline reStructuredText as a cell of a table."""
    return re.sub(r"(?<!\\)\|", r"\|", from_rst(text))


def api_pages() -> None:
    """The full texts, which autodoc takes from the docstrings: a page for each subject."""
    pages = []
    for title, names in api_topics().items():
        if inspect.ismodule(names):
            entries = module_entries(names)
        else:
            entries = [entry(f"theory.{name}", thing) for name, thing in names.items()]
        pages.append(slug_of(title))
        write(DOCS / "api" / f"{pages[-1]}.md", "\n".join([f"# {title}", "", "```{eval-rst}", *entries, "```", ""]))
    for path in (DOCS / "api").glob("*.md"):
        if path.stem not in pages:
            path.unlink()


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


def claims_by_topic() -> dict[str, list]:
    """The first part of an id to the claims of which it is."""
    from theory.claims import find_claim, list_claims

    topics: dict = {topic: [] for topic in CLAIM_TOPICS}
    for claim in map(find_claim, list_claims()):
        topics.setdefault(claim.id.split(".")[0], []).append(claim)
    return {topic: group for topic, group in topics.items() if group}


@functools.cache
def claim_verdicts() -> dict[str, str]:
    """Id to verdict, from the record of the claims; a refuted statement that fails is as expected."""
    from theory.claims import find_claim
    from theory.claims.records import read_records
    from theory.claims.verification import judged

    found = {id: judged(find_claim(id), record) for id, record in read_records(DOCS / "claims.jsonl").items()}
    return {id: ", ".join(filter(None, [result.verdict, result.expected])) for id, result in found.items()}


def claim_topics() -> str:
    """The pages of claims, with how many there are."""
    rows = ["| topic | claims | verdicts |", "|---|---:|---|"]
    for topic, group in claims_by_topic().items():
        counts = Counter(claim_verdicts().get(claim.id, "–").partition(",")[0] for claim in group)
        said = ", ".join(f"{n} {verdict}" for verdict, n in in_order(counts))
        rows.append(f"| [{CLAIM_TOPICS.get(topic, topic)}](claims/{topic}.md) | {len(group)} | {said} |")
    return "\n".join(rows)


def claim_pages() -> dict[str, str]:
    """Every claim, by topic: statement and formula, source, closed form with its domain, and what it must refute."""
    topics, replaces = claims_by_topic(), {}
    for claim in (claim for group in topics.values() for claim in group if claim.refuted):
        for other in claim.see:
            replaces.setdefault(other, []).append(claim)
    pages = {}
    for topic, group in topics.items():
        lines = [f"# {CLAIM_TOPICS.get(topic, topic)}", "", "<!-- Written by `python docs/_make.py`. -->", ""]
        lines += ["[Claims](../claims.md) explains the words on this page.", ""]
        for claim in group:
            lines += claim_entry(claim, replaces.get(claim.id, ()))
        pages[topic] = "\n".join(lines)
    return pages


def claim_entry(claim, replaced) -> list[str]:
    """One claim; ``replaced`` are the refuted statements instead of which it holds."""
    kind = claim.kind + (f", refuted ({claim.refuted})" if claim.refuted else "")
    lines = [f"## `{claim.id}`", "", f"**{plain(claim.title)}** ({kind})", ""]
    if claim.latex:
        lines += ["$$", claim.latex, "$$", ""]
    lines += [plain(claim.statement), ""]
    notes = [f"*Verdict:* {claim_verdicts().get(claim.id, 'not measured')}.", f"*Source:* {plain(claim.cited)}."]
    if claim.of is not None:
        notes.append(closed_form(claim.of))
    if claim.attained:
        notes.append(f"*Attained:* {plain(claim.attained).rstrip('.')}.")
    if claim.mutants:
        notes.append(f"*Must refute:* {plain('; '.join(claim.mutants))}.")
    if claim.refuted:
        known = {"in print": "Erratum", "quoted": "As quoted", "reading": "Reading"}.get(claim.refuted)
        notes.append(f"*{known}:* {errata_link(claim)}." if known else "*Question:* nobody claims it; it fails.")
    if replaced:
        notes.append("*Holds instead of:* " + ", ".join(map(errata_link, replaced)) + ".")
    others = [other for other in claim.see if other not in [one.id for one in replaced]]
    if others:
        notes.append("*See also:* " + ", ".join(claim_link(id, "") for id in others) + ".")
    notes.append(f"*Try:* `python -m theory.experiment verify {claim.id}`")
    return [*lines, *[f"- {note}" for note in notes], ""]


def claim_link(id: str, folder: str = "claims/") -> str:
    """A link to the entry of a claim, from a page beside the folder, or in another one."""
    from theory.experiment.ledger_page import link

    return link(id).replace("(claims/", f"({folder}")


def errata_link(claim) -> str:
    """A link to its entry on the page of refuted statements; of a question, to that in the list of claims."""
    from theory.experiment.ledger_page import NAMES, anchor

    if claim.refuted not in NAMES:
        return claim_link(claim.id, "")
    return f"[{plain(claim.title)}](../errata.md#{anchor(claim.id)})"


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
    return f"*Closed form:* {api_link(f'bounds.{bound.__name__}')}{fixed}.{domain}{refused}"


def api_link(name: str) -> str:
    """A link to the row of a name, from a page in a folder of ``docs``."""
    import theory

    part, _, last = name.rpartition(".")
    same = part and getattr(theory, last, None) is getattr(getattr(theory, part), last)
    return f"[`th.{name}`](../api.md#{last if same else name})"


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


def source_items() -> list:
    """Every entry with its verdict, which is computed from its evidence."""
    from theory.experiment.sources_index import judge_index

    return judge_index(DOCS / "sources" / "index.toml", DOCS.parent / "figures")


def source_page(source: str, items: list) -> str:
    """Everything that one source states, in its order."""
    _, title, who, read = SOURCES[source]
    said = ", ".join(f"{n} *{verdict}*" for verdict, n in in_order(Counter(one.verdict for one in items)))
    lines = [f"# {title}", "", "<!-- Written by `python docs/_make.py`. -->", "", who, "", f"**Read.** {read}", ""]
    lines += [f"**{len(items)} entries:** {said}. [Claims](../claims.md#verdicts) says what these words mean.", ""]
    fails = [f"[{inline(one.entry.id)}](#{slug(one.entry.id)})" for one in items if one.verdict == "fails"]
    lines += [f"**What fails:** {'; '.join(fails)}.", ""] if fails else []
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
    lines = [f"## {inline(item.id)}", ""]
    lines += [f"*{item.kind.capitalize()}.* {inline(item.says)}", ""]
    said = "" if item.relation == one.verdict else f", {item.relation}"
    terms = {
        "Printed": inline(item.printed),
        "Here": inline(one.measured),
        "Verdict": f"**{marked(one.verdict)}**{said}. {inline(one.reason)}",
        "Evidence": evidence_of(one.evidence),
        "Left out": f"{evidence_of(one.left_out)}. *Because:* {inline(one.because)}" if one.left_out else "",
        "See": ours_of(see_also(one)),
        "Try": "; ".join(f"`{command}`" for command in item.commands()),
    }
    for term, text in terms.items():
        if text:
            lines.append(f"- **{term}:** {text.rstrip()}")
    return [*lines, ""]


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
    """How many entries of each source have which verdict."""
    counts = Counter((one.entry.source, one.verdict) for one in items)
    verdicts = [verdict for verdict, _ in in_order(Counter(one.verdict for one in items))]
    lines = [f"| source | {' | '.join(verdicts)} | all |", "|---|" + "---:|" * (len(verdicts) + 1)]
    for source, (name, *_) in SOURCES.items():
        row = [counts[source, verdict] for verdict in verdicts]
        lines.append(f"| [{name}](sources/{source}.md) | {' | '.join(map(str, [*row, sum(row)]))} |")
    return "\n".join(lines)


def slug(text: str) -> str:
    """The anchor that a code host and Sphinx give a heading."""
    return re.sub(r"[^\w\- ]", "", text.lower().replace("`", "")).strip().replace(" ", "-")


def ours_of(names: list[str]) -> str:
    """Links to what the package has on an entry, by kind."""
    found: dict[str, list[str]] = {}
    for kind, name in (name.split(":", 1) for name in names):
        found.setdefault(kind, []).append(link_to(kind, name))
    return "; ".join(
        f"{words[len(found[kind]) > 1]} {', '.join(found[kind])}" for kind, words in NAMED.items() if kind in found
    )


def link_to(kind: str, name: str) -> str:
    if kind == "claim":
        return claim_link(name, "../claims/")
    if kind == "bound":
        return api_link(f"bounds.{name}")
    if kind == "study":
        return f"[`{name}`](../studies/{name}.md)"
    if kind == "figure":
        return f"[`{name}`](../../figures/{name}.png)"
    if kind == "lecture":
        (path,) = NOTEBOOKS.glob(f"{name}-*.md")
        return f"[{int(name)}](../../notebooks/{path.name})"
    if kind == "method":
        return api_link(name)
    return f"`{name}`"


def inline(text: str) -> str:
    """Text of the index as Markdown: mathematics and code as they are, pages of ``docs`` as links, all else plain."""
    parts = re.split(r"(\$[^$]+\$|`[^`]+`)", text)
    found = "".join(part if part[:1] in ("$", "`") else plain(part, ends=True) for part in parts)
    found = re.sub(r"^(\d+)([.)])|^([-+])", lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", found)
    return re.sub(r"docs/([a-z-]+\.md)", r"[\1](../\1)", found)


if __name__ == "__main__":
    for changed in committed():
        print(changed.relative_to(DOCS.parent))
