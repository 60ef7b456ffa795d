"""What a result depends on: the definitions that were executed for it, and the constants and classes that these name.

A node is a statement at the top level of a file: a definition, an assignment, a registration.  Its digest is that of
its code, without docstrings and comments.  Functions count if they were executed; classes and constants if a node names
them, as nobody sees them being read.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "WHOLE", "Executed", "Node", "Sources"]

ROOT = Path(__file__).resolve().parents[2]  # of a checkout
WHOLE = "*"  # the node of a file whose definitions are not told apart
Executed = Mapping[str, list[str]]  # names of nodes by file
TOOLS = frozenset(  # executed beside a result: they record it, save it, or fetch compiled code
    f"theory/{name}.py"
    for name in (
        "reporting/tracing",
        "experiment/kept_evidence",
        "core/compile_cache",
        "core/compile_bar",
        "core/stored_arrays",
        "core/stored_code",
        "core/fingerprints",
        "core/private_files",
    )
) | {"tests/kept_tests.py"}
TOPICS = "theory/claims/topics/"  # where each registration is a result of its own
WORDS = frozenset("title statement latex attained proof source source_known quote see refuted bibtex".split())
REMEMBERED = ("cache", "lru_cache", "cached_property")  # a result from before is returned without being executed
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Node(NamedTuple):
    """A statement at the top level of a file."""

    file: str
    name: str


class Reference(NamedTuple):
    """A dotted name in code, and whether it is called there when the module is imported."""

    chain: tuple[str, ...]
    called: bool


def _dotted(node: ast.AST) -> tuple[str, ...]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


def _label(call: ast.AST) -> str:
    """A short name of a call: the function and its first argument."""
    if not isinstance(call, ast.Call):
        return ast.unparse(call)[:60]
    first = ast.unparse(call.args[0])[:60] if call.args else ""
    return f"{ast.unparse(call.func)}({first})"


class _Bare(ast.NodeTransformer):
    """Code without docstrings; of a topic, claims without their words."""

    def __init__(self, topic: bool):
        self.topic = topic

    def _definition(self, node):
        self.generic_visit(node)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Module = _definition

    def visit_Call(self, node):
        self.generic_visit(node)
        if self.topic:
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in WORDS]
        return node


def _references(node: ast.AST, bodies: bool) -> Iterator[Reference]:
    """The names in code; ``bodies``: also those inside functions, which are not called when the module is imported."""
    todo: list[tuple[ast.AST, bool]] = [(node, True)]
    while todo:
        one, imported = todo.pop()
        if isinstance(one, ast.Call) and (chain := _dotted(one.func)):
            yield Reference(chain, imported)
        if isinstance(one, DEFINITIONS):
            yield from (Reference(chain, imported) for d in one.decorator_list if (chain := _dotted(d)))
        if chain := _dotted(one):
            yield Reference(chain, False)
            continue
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            parts: list[ast.AST] = [*one.decorator_list, *one.args.defaults, *filter(None, one.args.kw_defaults)]
            todo += [(part, False) for part in one.body] if bodies else []
        elif isinstance(one, ast.Lambda):
            parts = []
            todo.append((one.body, False))
        elif isinstance(one, ast.AnnAssign):
            parts = [one.value] if one.value is not None else []
        else:
            parts = list(ast.iter_child_nodes(one))
        todo += [(part, imported) for part in parts]


class _File:
    """The nodes of a file, what binds which name, and what is imported under which name."""

    def __init__(self, path: Path, package: str, topic: bool):
        self.package = package
        self.nodes: dict[str, list[ast.stmt]] = {}
        self.owner: dict[str, str] = {}  # bound name -> node
        self.imports: dict[str, tuple[str, str]] = {}
        self.stars: list[str] = []
        self.loose: list[str] = []  # nodes that bind nothing: registrations, loops
        self.spans: list[tuple[int, int, str]] = []
        self.tree = _Bare(topic).visit(ast.parse(path.read_bytes()))
        stub = path.with_suffix(".pyi")  # names that are loaded when they are asked for
        for statement in ast.parse(stub.read_bytes()).body if stub.is_file() else ():
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                self._import(statement, self.imports)
        for statement in self.tree.body:
            self._add(statement)

    def _add(self, statement: ast.stmt) -> None:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            self._import(statement, self.imports)
            return
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return  # a docstring
        first, bound, loose = statement.lineno, [], False
        if isinstance(statement, DEFINITIONS):
            first = min([first, *(d.lineno for d in statement.decorator_list)])
            name, bound = statement.name, [statement.name]
            if name == "_":
                name, bound = f"@{_label(statement.decorator_list[0])}" if statement.decorator_list else name, []
        elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            every = [n for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            bound = [n.id for n in every]
            name, loose = bound[0] if bound else type(statement).__name__, not bound
        elif isinstance(statement, ast.Expr):
            name, loose = _label(statement.value), True
        else:
            name, loose = type(statement).__name__, True
            for inner in ast.walk(statement):
                if isinstance(inner, (ast.Import, ast.ImportFrom)):
                    self._import(inner, self.imports)
                elif isinstance(inner, DEFINITIONS):
                    bound.append(inner.name)
                elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    bound.append(inner.id)
        if loose and name not in self.loose:
            self.loose.append(name)
        self.nodes.setdefault(name, []).append(statement)
        self.spans.append((first, statement.end_lineno or first, name))
        for one in bound:
            home = self.owner.setdefault(one, name)
            if home != name:  # bound by several statements: they count as one
                self.nodes[home].append(statement)

    def _import(self, statement: ast.Import | ast.ImportFrom, into: dict[str, tuple[str, str]]) -> None:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                into[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0],
                    "",
                )
            return
        base = self.package.split(".")
        base = base[: len(base) - statement.level + 1] if statement.level else []
        module = ".".join([*base, *filter(None, [statement.module])])
        for alias in statement.names:
            if alias.name == "*":
                self.stars.append(module)
            else:
                into[alias.asname or alias.name] = (module, alias.name)

    @functools.cache  # noqa: B019 - as long as the file
    def digest(self, name: str) -> str:
        """Digest of a node."""
        statements = self.tree.body if name == WHOLE else self.nodes[name]
        return hashlib.sha256(" ".join(map(ast.dump, statements)).encode()).hexdigest()[:16]


class Sources:
    """The source files of a checkout.

    Parameters
    ----------
    root : path-like
        The folder of the checkout; another one than that of the running package for a copy.
    """

    def __init__(self, root: Path | str = ROOT) -> None:
        self.root = Path(root).resolve()
        self._files: dict[str, _File | None] = {}
        self._found: dict[tuple[Node, bool, bool], frozenset[tuple[Node, bool]]] = {}

    def file(self, name: str) -> _File | None:
        """A file, by its path below the root; None if there is no such file."""
        if name not in self._files:
            path = self.root / name
            package = Path(name).parent.as_posix().replace("/", ".")
            self._files[name] = (
                _File(path, package, name.startswith(TOPICS)) if path.is_file() and path.suffix == ".py" else None
            )
        return self._files[name]

    def node_at(self, file: str, line: int) -> Node | None:
        """The node that has this line; None for code of the module itself."""
        found = self.file(file)
        names = [name for first, last, name in found.spans if first <= line <= last] if found else []
        return Node(file, names[0]) if names else None

    def executed(self, places: Iterable[tuple[str, int]]) -> dict[str, list[str]]:
        """The nodes of executed code, from its files and first lines; what is outside the checkout is left out."""
        found: dict[str, set[str]] = {}
        for file, line in places:
            path = Path(file)
            if not path.is_relative_to(self.root) or "site-packages" in path.parts or not path.is_file():
                continue  # an environment in the checkout is outside it, too: versions stand for what is installed
            node = self.node_at(path.relative_to(self.root).as_posix(), line)
            if node is not None and node.file not in TOOLS:
                found.setdefault(node.file, set()).add(node.name)
        return {file: sorted(found[file]) for file in sorted(found)}

    def digest(self, executed: Executed) -> str:
        """Digest of all that a result depends on; "" if something that was executed is gone.

        Parameters
        ----------
        executed : mapping
            Names of nodes by file; ``*`` for a file as a whole, a name that no Python file has for data.
        """
        begin = [Node(file, name) for file, names in executed.items() for name in names]
        if not all(self._exists(node) for node in begin):
            return ""
        total = hashlib.sha256()
        for node in sorted(self.closure(begin)):
            total.update(f"{node.file} {node.name} {self._digest(node)}\n".encode())
        return total.hexdigest()[:16]

    def _exists(self, node: Node) -> bool:
        file = self.file(node.file)
        if file is None:
            return node.name == WHOLE and (self.root / node.file).is_file()
        return node.name == WHOLE or node.name in file.nodes

    def _digest(self, node: Node) -> str:
        file = self.file(node.file)
        if file is None:
            return hashlib.sha256((self.root / node.file).read_bytes()).hexdigest()[:16]
        return file.digest(node.name)

    def closure(self, begin: Iterable[Node], called: bool = False) -> set[Node]:
        """The nodes, the classes and constants that they name, and so on; ``called``: the functions, too."""
        seen: set[tuple[Node, bool]] = set()
        todo = [(node, called) for node in begin]
        touched: set[str] = set()
        executed = {node for node, _ in todo}
        while todo:
            item = todo.pop()
            if item in seen:
                continue
            seen.add(item)
            node = item[0]
            if node in executed and node.file not in touched:
                touched.add(node.file)
                todo += [(Node(node.file, name), False) for name in self._loose(node.file)]
            question = (*item, node in executed)
            if question not in self._found:
                self._found[question] = frozenset(self._names(*question))
            todo += [one for one in self._found[question] if one[0].file not in TOOLS]
        return {node for node, _ in seen}

    def _loose(self, name: str) -> list[str]:
        """Statements that are executed with the file and bind nothing; of a topic not those that are claims."""
        file = self.file(name)
        if file is None:
            return []
        return [n for n in file.loose if not (name.startswith(TOPICS) and isinstance(file.nodes[n][0], ast.Expr))]

    def _names(self, node: Node, called: bool, ran: bool) -> Iterator[tuple[Node, bool]]:
        """What a node names, and whether it is to be followed as if it had been executed."""
        file = self.file(node.file)
        if file is None:
            return
        for statement in file.tree.body if node.name == WHOLE else file.nodes[node.name]:
            inside = dict(file.imports)
            for inner in ast.walk(statement):
                if isinstance(inner, (ast.Import, ast.ImportFrom)):
                    file._import(inner, inside)
            function = isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef))
            registers = _registers(statement) if node.file.startswith(TOPICS) else ()
            for one in _references(statement, bodies=True if function else ran or called):
                target = self._resolve(node.file, one.chain, inside)
                if target is None:
                    continue
                home = self.file(target.file)
                kind = home.nodes[target.name][0] if home else None
                if not isinstance(kind, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield target, False
                elif called or _decorated(kind, REMEMBERED) or (one.called and one.chain != registers):
                    yield target, True

    def _resolve(self, name: str, chain: tuple[str, ...], imports: Mapping[str, tuple[str, str]]) -> Node | None:
        """The node that a dotted name in a file leads to."""
        file = self.file(name)
        found: Node | str | None = None
        if file and chain[0] in file.owner and chain[0] not in set(imports) - set(file.imports):
            found = Node(name, file.owner[chain[0]])
        elif chain[0] in imports:
            found = self._member(*imports[chain[0]])
        elif file:
            found = self._starred(file, chain[0])
        for attribute in chain[1:]:
            if not isinstance(found, str):
                break
            found = self._member(found, attribute)
        return found if isinstance(found, Node) else None

    def _member(self, module: str, attribute: str, depth: int = 0) -> Node | str | None:
        """What a module has under a name: a node, or a module's dotted name."""
        path = self._path(module)
        if path is None or depth > 12:
            return None
        if not attribute:
            return module
        file = self.file(path)
        if file is not None:
            if attribute in file.owner:
                return Node(path, file.owner[attribute])
            if attribute in file.imports:
                return self._member(*file.imports[attribute], depth + 1)
        if self._path(f"{module}.{attribute}") is not None:
            return f"{module}.{attribute}"
        return self._starred(file, attribute, depth) if file is not None else None

    def _starred(self, file: _File, name: str, depth: int = 0) -> Node | str | None:
        for star in file.stars:
            found = self._member(star, name, depth + 1)
            if found is not None:
                return found
        return None

    @functools.cache  # noqa: B019 - as long as the sources
    def _path(self, module: str) -> str | None:
        base = module.replace(".", "/")
        for path in (f"{base}.py", f"{base}/__init__.py"):
            if base and (self.root / path).is_file():
                return path
        return None


def _registers(statement: ast.stmt) -> tuple[str, ...]:
    """The function that registers a claim: what it does besides is executed when the claim is measured."""
    calls = [statement.value] if isinstance(statement, ast.Expr) else getattr(statement, "decorator_list", [])
    return next((_dotted(call.func) for call in calls if isinstance(call, ast.Call)), ())


def _decorated(function: ast.FunctionDef | ast.AsyncFunctionDef, names: tuple[str, ...]) -> bool:
    """Whether one of these names is the end of a decorator."""
    found = [_dotted(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list]
    return any(chain and chain[-1] in names for chain in found)
