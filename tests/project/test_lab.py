"""The lectures as a class sees them: in a real JupyterLab, in headless Chromium."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest
from chromium import Chromium, find_chromium
from conftest import ROOT

sys.path.insert(0, str(ROOT / "notebooks"))

RUN = ("01-why-is-distributed-sgd-slow", "11-check-your-own-theorem")  # the two that take the least time
RAW = ("```", ":::", "{admonition}", "{code-cell}", "{doc}", "{ref}", "{note}", ":class:", ":tags:", "<details", "$$")
TRACKER = {"windowingMode": "none"}  # so that every cell is on the page, also those that nobody has scrolled to


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def git(folder, *arguments) -> str:
    who = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    return subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A repository with the lectures as `make lectures` prepares them."""
    pytest.importorskip("jupytext", reason="lectures: jupytext is not installed (make lectures installs it)")
    if shutil.which("git") is None:
        pytest.skip("lectures in JupyterLab: no git here")
    import prepare

    folder = tmp_path_factory.mktemp("clone")
    left_out = shutil.ignore_patterns("_build", "lectures", "__pycache__", "*.ipynb", ".ipynb_checkpoints")
    for name in ("notebooks", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    shutil.copy(ROOT / ".gitignore", folder)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "a clone")
    assert prepare.write(folder / "lectures") == []
    return folder


@contextmanager
def jupyterlab(folder, home):
    """A server of JupyterLab with settings of its own; its address."""
    port, token = free_port(), "a-test"
    names = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime"}
    names |= {"JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces", "IPYTHONDIR": "ipython"}
    environment = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
    environment |= {key: str(home / name) for key, name in names.items()} | {"PYTHONPATH": str(ROOT)}
    settings = home / "settings" / "@jupyterlab"
    (settings / "notebook-extension").mkdir(parents=True)
    (settings / "notebook-extension" / "tracker.jupyterlab-settings").write_text(json.dumps(TRACKER), encoding="utf-8")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += [f"--IdentityProvider.token={token}", "--LabApp.expose_app_in_browser=True", f"--notebook-dir={folder}"]
    command += re.findall(r"--LabApp\.\S+", (ROOT / "Makefile").read_text(encoding="utf-8"))
    with open(home / "log", "wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
        try:
            end = time.monotonic() + 120
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/api?token={token}", timeout=5).close()
                    break
                except (urllib.error.URLError, OSError):
                    if process.poll() is not None or time.monotonic() > end:
                        pytest.fail(f"JupyterLab did not start:\n{(home / 'log').read_text()[-2000:]}")
                    time.sleep(0.2)
            yield f"http://127.0.0.1:{port}", token
        finally:
            process.terminate()  # ends its kernels, too
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(scope="module")
def lab(clone, tmp_path_factory):
    """JupyterLab as it opens, in a browser."""
    if importlib.util.find_spec("jupyterlab") is None:
        pytest.skip("lectures: jupyterlab is not installed (make lectures installs it)")
    find_chromium()
    home = tmp_path_factory.mktemp("home")
    with jupyterlab(clone, home) as (address, token), Chromium(home / "profile", timeout=180) as browser:
        browser.size(1400, 1000)
        browser.open(f"{address}/?token={token}")
        ask(browser, 'await opened("lectures/index.ipynb");')  # each test may be the first
        yield browser


HELP = """
const app = () => window.jupyterapp;
const wait = async (ready, seconds = 60) => {
  for (let k = 0; k < seconds * 10 && !ready(); k++) await new Promise(go => setTimeout(go, 100));
  if (!ready()) throw new Error("waited in vain for " + ready);
};
const panel = () => app()?.shell?.currentWidget;
const opened = async path => {
  await wait(() => panel()?.context?.path === path && panel().context.isReady && panel().content.widgets?.length);
  await wait(() => panel().content.widgets.filter(c => c.model.type === "markdown")
      .every(c => c.node.querySelector(".jp-RenderedMarkdown")?.childElementCount));
};
const prose = () => [...panel().node.querySelectorAll(".jp-MarkdownOutput")];
"""


def ask(browser, body: str):
    """The value of the body of an asynchronous JavaScript function."""
    return browser.run(f"(async () => {{ {HELP} {body} }})()")


def open_notebook(browser, path: str, *, to_run: bool = False) -> None:
    """To read only, no kernel is started."""
    arguments = json.dumps({"path": path} if to_run else {"path": path, "kernelPreference": {"shouldStart": False}})
    ask(browser, f'await app().commands.execute("docmanager:open", {arguments}); await opened("{path}");')


def links(browser) -> list[str]:
    """Local links of the notebook that is open, as paths below the server's folder."""
    found = ask(
        browser,
        """return prose().flatMap(c => [...c.querySelectorAll("a[href]")]).map(a => a.getAttribute("href"))
            .filter(href => !href.startsWith("#"));""",
    )
    assert not [href for href in found if "://" in href and "/files/" not in href and "127.0.0.1" in href]
    return sorted({href.split("/files/")[1].split("?")[0].split("#")[0] for href in found if "/files/" in href})


def test_lab_opens_on_the_index_of_lectures(lab, clone):
    ask(lab, 'await opened("lectures/index.ipynb");')
    toasts = "return [...document.querySelectorAll('.Toastify__toast')].map(toast => toast.innerText);"
    assert ask(lab, f"await new Promise(go => setTimeout(go, 3000)); {toasts}") == []  # nobody is asked about news
    found = links(lab)
    assert {f"lectures/{page.stem}.ipynb" for page in clone.glob("notebooks/[0-9]*.md")} <= set(found)
    assert all((clone / path).is_file() for path in found), found
    lab.run("""document.querySelector('.jp-MarkdownOutput a[href*="04-sparsify"]').click()""")
    ask(lab, 'await opened("lectures/04-sparsify-and-quantize.ipynb");')


def test_no_page_has_raw_markup_or_a_dead_link(lab, clone):
    for path in sorted(clone.glob("lectures/*.ipynb")):
        open_notebook(lab, f"lectures/{path.name}")
        text = ask(lab, "return prose().map(c => c.innerText).join('\\n');")
        assert len(text) > 1000
        assert not [raw for raw in RAW if raw in text], path.name
        dead = [link for link in links(lab) if not (clone / link).is_file()]
        assert not dead, f"{path.name} links to {dead}"
        hidden = ask(
            lab, "return panel().content.widgets.filter(c => c.inputHidden).map(c => c.model.sharedModel.source);"
        )
        if path.name[0].isdigit():
            assert sum(source.startswith("# Solution") for source in hidden) >= 3, path.name
        ask(lab, 'await app().commands.execute("docmanager:save"); panel().close();')
    assert git(clone, "status", "--porcelain") == ""


def test_a_link_to_the_documentation_opens_it_to_read(lab):
    open_notebook(lab, "lectures/01-why-is-distributed-sgd-slow.ipynb")
    ask(lab, """panel().node.querySelector('.jp-MarkdownOutput a[href*="docs/claims.md"]').click();""")
    ask(lab, """await wait(() => document.querySelector(".jp-MarkdownViewer h1"));""")
    open_notebook(lab, "lectures/01-why-is-distributed-sgd-slow.ipynb")
    ask(lab, "panel().close();")


@pytest.mark.slow
def test_lectures_run_in_lab(lab, clone):
    for stem in RUN:
        open_notebook(lab, f"lectures/{stem}.ipynb", to_run=True)
        ask(lab, "await panel().sessionContext.ready; await wait(() => panel().sessionContext.session?.kernel?.info);")
        assert not ask(lab, "return panel().context.model.dirty;"), "opened, and not changed"
        ask(lab, 'await app().commands.execute("notebook:run-all-cells");')
        outputs = ask(
            lab,
            """return panel().content.widgets.filter(c => c.model.type === "code")
                .flatMap(c => c.model.outputs.toJSON())
                .map(o => [o.output_type, o.evalue ?? o.name ?? "", o.text ?? ""]);""",
        )
        assert not [output for output in outputs if output[0] == "error"], outputs
        assert not [output for output in outputs if "ipykernel" in str(output)], "a warning with a path"
        assert len([output for output in outputs if output[0] == "display_data"]) > 3
        pictures = ask(lab, "return panel().node.querySelectorAll('.jp-OutputArea-output img').length;")
        assert pictures > 3
        breaks = ask(
            lab,
            """return [...panel().node.querySelectorAll(".jp-OutputArea-output pre")]
                .map(p => getComputedStyle(p)).map(s => s.wordBreak + " " + s.overflowWrap);""",
        )
        assert set(breaks) == {"normal normal"}, "results break within words"
        ask(lab, 'await app().commands.execute("docmanager:save"); await panel().sessionContext.shutdown();')
    assert git(clone, "status", "--porcelain") == ""
