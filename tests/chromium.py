"""A real browser for tests: headless Chromium, driven over two pipes by its DevTools protocol.

It needs nothing but the program: no driver, no socket, no package.  Each browser has a profile of its own, which is
thrown away, and is ended with everything it started.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
# The browser reads commands from descriptor 3 and writes answers to 4.
LAUNCHER = (
    "import os, sys; a, b = map(int, sys.argv[1:3]); os.dup2(a, 60); os.dup2(b, 61); os.dup2(60, 3); "
    "os.dup2(61, 4); os.execvp(sys.argv[3], sys.argv[3:])"
)


def find_chromium() -> str:
    """The program; the test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"browser: none of {', '.join(NAMES)} is on the PATH (Debian: apt-get install chromium)")
    return found


class Chromium:
    """One browser with one page.

    Parameters
    ----------
    folder : path
        An empty folder for its profile.
    timeout : float
        Seconds after which an answer or an event that did not come is a failure.
    """

    def __init__(self, folder: Path, timeout: float = 60.0):
        self.timeout, self.events, self._number, self._rest = timeout, [], 0, b""
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        for end in (to_browser, from_browser):
            os.set_inheritable(end, True)
        command = [find_chromium(), *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        launch = [sys.executable, "-c", LAUNCHER, str(to_browser), str(from_browser), *command]
        self._process = subprocess.Popen(
            launch,
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._session = None
        try:
            target = self.ask("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.ask(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for end in (self._write, self._read):
            os.close(end)  # it ends when its pipe does
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._process.wait(5)

    def ask(self, method: str, **parameters) -> dict:
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        try:
            os.write(self._write, json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            self._ended()
        answer = self._until(lambda m: m.get("id") == self._number, method)
        assert "error" not in answer, f"{method}: {answer.get('error')}"
        return answer["result"]

    def _until(self, wanted, what: str) -> dict:
        end = time.monotonic() + self.timeout
        while True:
            while b"\0" in self._rest:
                text, _, self._rest = self._rest.partition(b"\0")
                message = json.loads(text)
                if "method" in message:
                    self.events.append(message)
                if wanted(message):
                    return message
            ready = select.select([self._read], [], [], max(0.0, end - time.monotonic()))[0]
            if not ready:
                pytest.fail(f"browser: no answer to {what} in {self.timeout} s")
            data = os.read(self._read, 1 << 20)
            if not data:
                self._ended()
            self._rest += data

    def _ended(self):
        """A browser that ends at once is not installed properly, which says nothing about the page."""
        if self._session is None:
            pytest.skip(f"browser: {find_chromium()} ends as soon as it is started")
        pytest.fail("browser: it has ended")

    def open(self, address: str) -> None:
        """Go to a page and wait until it is loaded."""
        self.events.clear()
        self.ask("Page.navigate", url=address)
        if not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._until(lambda m: m.get("method") == "Page.loadEventFired", f"loading {address}")

    def run(self, script: str):
        """The value of a JavaScript expression."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key: Tab, Enter or a character."""
        codes = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " ")}
        code, text = codes.get(key, (ord(key[0].upper()), key))
        facts = {"key": key, "code": key if len(key) > 1 else "", "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **facts)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **facts)

    def size(self, width: int, height: int, *, mobile: bool = False) -> None:
        """Set the size of the window in CSS pixels."""
        facts = dict(width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.ask("Emulation.setDeviceMetricsOverride", **facts)

    def screenshot(self, path: Path, **options) -> None:
        """Write what is seen as PNG."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png", **options)["data"]))

    def pdf(self, path: Path) -> None:
        """Write what would be printed."""
        path.write_bytes(base64.b64decode(self.ask("Page.printToPDF", preferCSSPageSize=True)["data"]))

    def complaints(self) -> list[str]:
        """What the console says: errors, warnings and exceptions."""
        found = []
        for event in self.events:
            facts = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(facts["exceptionDetails"].get("exception", facts["exceptionDetails"])))
            elif event["method"] == "Runtime.consoleAPICalled" and facts["type"] in ("error", "warning", "assert"):
                found.append(str(facts["args"]))
            elif event["method"] == "Log.entryAdded" and facts["entry"]["level"] in ("error", "warning"):
                found.append(facts["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """The addresses that the page asked for."""
        sent = (event for event in self.events if event["method"] == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in sent]
