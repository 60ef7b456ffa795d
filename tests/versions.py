"""The tests that see most of Numba and NumPy, with other versions: ``python tests/versions.py [NAME ...]``.

``lowest`` takes the lowest NumPy, Numba and SciPy that pyproject.toml allows, with the oldest Python; ``python3.12``
and so on take the newest, with every Python that is found.  Each gets an environment and a cache of its own, which are
removed afterwards.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("core/test_numba_private.py", "core/test_stored_code.py", "cluster/test_run_arguments.py")
TESTS += ("methods/test_misuse.py", "methods/test_shape.py", "wire/test_payloads.py")
TOOLS = ("pytest>=9", "pytest-xdist", "hypothesis", "mpich")


def lowest() -> list[str]:
    """The lowest versions that are allowed, as requirements."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = (re.match(r"(numpy|numba|scipy)>=([\d.]+)", line) for line in project["dependencies"])
    return [f"{match[1]}=={match[2]}.*" for match in found if match]


def pythons() -> dict[str, str]:
    """Every Python from 3.11 on that starts, by name."""
    found = {}
    for minor in range(11, 20):
        name = f"python3.{minor}"
        homes = [path for path in (shutil.which(name), *_pyenv(minor)) if path]
        for path in homes:
            if subprocess.run([path, "-c", "import ensurepip"], capture_output=True).returncode == 0:
                found.setdefault(name, path)
    return found


def _pyenv(minor: int) -> list[str]:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return [str(path) for path in sorted(root.glob(f"3.{minor}.*/bin/python"))]


def passes(python: str, pins: list[str]) -> bool:
    """Whether the tests pass with this Python and these versions."""
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "venv"
        subprocess.run([python, "-m", "venv", str(own)], check=True)
        run = str(own / "bin" / "python")
        install = [run, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(ROOT), *TOOLS, *pins]
        if subprocess.run(install).returncode:
            return False
        # what theory needs stays; itself it is that of the checkout
        subprocess.run([run, "-m", "pip", "uninstall", "--quiet", "--yes", "theory"], check=True)
        versions = "import sys, numpy, numba, scipy; print(sys.version.split()[0], *(m.__name__ + ' ' + m.__version__ "
        subprocess.run([run, "-c", versions + "for m in (numpy, numba, scipy)), sep=', ', flush=True)"], check=True)
        path = f"{own / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PYTHONPATH": str(ROOT), "THEORY_CACHE": str(Path(folder) / "cache"), "PATH": path}
        command = [run, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
        tests = [str(ROOT / "tests" / name) for name in TESTS]
        return subprocess.run([*command, *tests], cwd=ROOT, env=environment).returncode == 0


def main(wanted: list[str]) -> int:
    """Try each, say which passes, and return how many do not."""
    known = pythons()
    trials = {"lowest": (next(iter(known.values())), lowest())} | {name: (path, []) for name, path in known.items()}
    result = {name: passes(*trials[name]) for name in wanted or trials}
    for name, good in result.items():
        print(f"{name}: {'passed' if good else 'FAILED'}")
    return sum(not good for good in result.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
