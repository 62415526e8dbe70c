"""VS Code, driven: code-server with the packaged extension, a page on it, and a way into the extension host."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.lsp.harness import environment
from tests.lsp.scripted_lsp import Script

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

REPOSITORY = Path(__file__).parents[3]
_TESTER = Path(__file__).parent / "tester"
_CHROMIUMS = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
_CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

_SEEN = """line => line.innerText + [...line.querySelectorAll('*')].flatMap((part) => ['::before', '::after'].map(
    (which) => getComputedStyle(part, which).content)).join(' ')"""

STATUS = "[id='specedit.specedit.specedit.status']"
"""The extension's item in the status bar."""

# Nothing of VS Code's own comes between a test and what it looks at.
_QUIET = {
    "extensions.autoCheckUpdates": False,
    "extensions.ignoreRecommendations": True,
    "editor.inlineSuggest.minShowDelay": 0,
    "files.autoSave": "off",
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "window.commandCenter": False,
    "workbench.activityBar.location": "default",
    "workbench.editor.enablePreview": False,
    "workbench.layoutControl.enabled": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
}


class MissingError(Exception):
    """Something that the tests need isn't there; the message says what brings it."""


@dataclass(frozen=True)
class Installed:
    """Where the parts of a driven VS Code are."""

    node: Path
    entry: Path
    chromium: str
    vsix: Path

    @classmethod
    def find(cls) -> Installed:
        """What SPECEDIT_TEST_CODE_SERVER, SPECEDIT_TEST_CHROMIUM and SPECEDIT_TEST_VSIX name, else what make brings.

        Raises:
            MissingError: something isn't there.
        """
        at = Path(os.environ.get("SPECEDIT_TEST_CODE_SERVER", REPOSITORY / ".venv/editors/vscode"))
        node, entry = at / "node/node", at / "node_modules/code-server/out/node/entry.js"
        if not (at / "installed").exists():
            raise MissingError("no code-server: run tests/editors/install_vscode.sh .venv/editors")
        named = os.environ.get("SPECEDIT_TEST_CHROMIUM")
        chromium = next(filter(None, map(shutil.which, [named] if named else _CHROMIUMS)), None)
        if not chromium:
            raise MissingError("no Chromium: run tests/editors/install_vscode.sh .venv/editors")
        packaged = sorted((REPOSITORY / "editors/vscode").glob("*.vsix"), key=lambda file: file.stat().st_mtime)
        vsix = (
            Path(os.environ["SPECEDIT_TEST_VSIX"]) if "SPECEDIT_TEST_VSIX" in os.environ else (packaged or [None])[-1]
        )
        if not vsix:
            raise MissingError("no extension: run make vsix")
        if not find_spec("playwright"):
            raise MissingError("no Playwright: pip install -r tests/editors/requirements.txt")
        return cls(node, entry, chromium, vsix)


class VSCode:
    """One window of VS Code, on a folder of its own."""

    def __init__(self, root: Path, page: Page, process: subprocess.Popen[bytes]) -> None:
        self.root = root
        self.folder = root / "folder"
        self.page = page
        self._process = process

    # In the extension host

    def js(self, code: str, *args: Any, seconds: float = 120) -> Any:
        """What `code` returns: the body of an async function of `vscode`, `args` and `tools` (tester/extension.js)."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(seconds)
            connection.connect(str(self.root / "tester.sock"))
            connection.sendall(json.dumps({"code": code, "args": args}).encode() + b"\n")
            answer = json.loads(connection.makefile().readline())
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer["value"]

    def wait_for_extensions(self) -> None:
        """Wait until the extension host has started."""
        # The page starts it, and its events are handled only while Playwright waits.
        wait_until(lambda: (self.root / "tester.sock").exists() or self.page.wait_for_timeout(100), 120)

    def ready(self) -> VSCode:
        """This window, once the language server has started in it."""
        self.until("(await vscode.commands.getCommands()).includes('specedit.rewrite')")
        return self

    def command(self, name: str, *args: Any) -> Any:
        """What a command gives."""
        return self.js("return await vscode.commands.executeCommand(args[0], ...args.slice(1)) ?? null", name, *args)

    def start(self, name: str, *args: Any) -> None:
        """Start a command that asks the user, or takes long, and don't wait for it."""
        self.js("vscode.commands.executeCommand(args[0], ...args.slice(1)); return null", name, *args)

    def until(self, condition: str, *args: Any, seconds: float = 60) -> Any:
        """What the expression `condition` gives once it gives something."""
        return self.js(f"return await tools.until(async () => {condition}, {seconds})", *args, seconds=seconds + 60)

    def open(self, name: str, content: str | bytes) -> Path:
        """Write a file into the folder, and open it alone in an editor."""
        path = write(self.folder / name, content)
        self.js("await tools.open(args[0])", str(path))
        return path

    def text(self) -> str:
        """The text of the file that was opened last."""
        return self.js("return tools.text()")

    def until_text(self, text: str) -> None:
        """Wait until that file has become `text`."""
        wait_until(lambda: self.text() == text)

    def save(self) -> bytes:
        """Save that file, and give what is on the disk."""
        self.js("await tools.document.save()")
        return Path(self.js("return tools.document.fileName")).read_bytes()

    def insert(self, line: int, character: int, text: str) -> None:
        """Insert text into that file, as if it were typed there."""
        self.js("await tools.insert(...args)", line, character, text)

    def lenses(self) -> list[str]:
        """The commands behind the code lenses of that file, from top to bottom."""
        return self.js("return await tools.lenses()")

    # The server's side

    def script(self, script: Script) -> None:
        """Have the model follow a script from now on; the server starts anew."""
        self._write_script(script)
        before = self.server_pid()
        self.start("specedit.restart")
        wait_until(lambda: self.server_pid() not in (before, None))

    def _write_script(self, script: Script) -> None:
        record = str(self.root / "asked.jsonl")
        (self.root / "script.json").write_text(json.dumps(asdict(replace(script, record=record))))

    def asked(self) -> list[dict[str, Any]]:
        """What the model was asked, and how its answers ended."""
        record = self.root / "asked.jsonl"
        return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []

    def server_pid(self) -> int | None:
        """The process of the language server that was started last."""
        try:
            return int((self.root / "server.pid").read_text())
        except (OSError, ValueError):
            return None

    # As a person

    def keys(self, *keys: str) -> None:
        """Press keys, as Playwright names them."""
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Type text into what has the focus."""
        self.page.keyboard.type(text, delay=15)

    def palette(self, title: str) -> None:
        """Run a command from the palette."""
        self.keys("F1")
        self.answer(title)
        self.page.locator(".quick-input-list .monaco-list-row").filter(has_text=title).first.click()

    def answer(self, text: str) -> None:
        """Type into what asks at the top of the window, once it does."""
        self.page.locator(".quick-input-widget input:focus").wait_for()
        self.type(text)

    def status(self) -> str:
        """What the item in the status bar says, to the eye and to a screen reader; empty where there is none."""
        item = self.page.locator(STATUS)
        return f"{item.inner_text()}: {item.get_attribute('aria-label')}" if item.count() else ""

    def ghost_text(self) -> str:
        """What is drawn at the cursor, and isn't in the document."""
        first = self.page.locator(".ghost-text-decoration").all_text_contents()
        further = self.page.locator(".suggest-preview-text .view-line").all_text_contents()
        return "\n".join(["".join(first), *further]).strip("\n").replace("\xa0", " ")

    def drawn(self, text: str) -> str:
        """What is seen of the first line with that text: the line, and what is drawn into it."""
        line = self.page.locator(".view-line").filter(has_text=text).first
        return line.evaluate(_SEEN).replace("\xa0", " ")

    def notifications(self) -> list[str]:
        """What messages on the screen say."""
        return self.page.locator(".notification-list-item-message").all_text_contents()

    def dismiss_notifications(self) -> None:
        """Take all messages from the screen."""
        self.command("notifications.clearAll")

    def picture(self, name: str, **options: Any) -> Path:
        """A screenshot, in the folder of this window."""
        path = self.root / f"{name}.png"
        self.page.screenshot(path=path, **options)
        return path

    def close(self) -> None:
        """End the page and every process of this window."""
        self.page.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def write(path: Path, content: str | bytes) -> Path:
    """Write a file with the directories above it; a script can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if path.read_bytes().startswith(b"#!"):
        path.chmod(0o755)
    return path


def wait_until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """What `condition` gives once it gives something.

    Raises:
        AssertionError: it did not within `seconds`.
    """
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {inspect.getsource(condition).strip()}"
        time.sleep(0.05)
    return found


@contextmanager
def chromium(installed: Installed) -> Iterator[Browser]:
    """A browser without a window."""
    # Tests of other things are collected where it isn't installed.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed.chromium, args=list(_CHROMIUM_FLAGS))
        yield browser
        browser.close()


@contextmanager
def vscode(
    installed: Installed,
    browser: Browser,
    root: Path,
    *,
    script: Script | None = None,
    stage: dict[str, Any] | None = None,
    command: tuple[str, ...] = (),
    settings: dict[str, Any] | None = None,
    files: dict[str, str] | None = None,
    flags: tuple[str, ...] = ("--disable-workspace-trust",),
    scale: float = 1,
) -> Iterator[VSCode]:
    """A window of VS Code in `root`, with a language server.

    Args:
        installed: what is started.
        browser: shows the window.
        root: an empty directory for all that belongs to it.
        script: what the server's model follows.
        stage: how far the model is loaded, kept in `stage.json` until that is deleted.
        command: starts another server.
        settings: of the user and of the machine.
        files: what the folder holds, by name.
        flags: more of code-server's.
        scale: pixels on the screen for each of the page.
    """
    (root / "folder").mkdir(parents=True)
    _unpack_extensions(installed.vsix, root / "extensions")
    if stage:
        write(root / "stage.json", json.dumps(stage))
    scripted = (
        sys.executable,
        "-m",
        "tests.editors.vscode.staged_lsp",
        *map(str, (root / "script.json", root / "stage.json")),
    )
    server = _server(root, command or scripted)
    # Of a window that is remote, as one in a browser is, what a machine may set comes from the machine's file.
    chosen = json.dumps({**_QUIET, "specedit.server.path": str(server), **(settings or {})})
    for name in ("User", "Machine"):
        write(root / "data" / name / "settings.json", chosen)
    for name, text in (files or {}).items():
        write(root / "folder" / name, text)
    (root / "code-server.yaml").write_text("bind-addr: 127.0.0.1:0\nauth: none\ncert: false\n")
    log = (root / "code-server.log").open("wb")
    process = subprocess.Popen(
        [
            str(installed.node),
            str(installed.entry),
            *("--config", str(root / "code-server.yaml")),
            *("--user-data-dir", str(root / "data")),
            *("--extensions-dir", str(root / "extensions")),
            *("--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"),
            *flags,
            str(root / "folder"),
        ],
        env=_environment(root),
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    page = browser.new_page(viewport={"width": 1280, "height": 800}, device_scale_factor=scale)
    window = VSCode(root, page, process)
    window._write_script(script or Script())
    try:
        page.goto(f"{_address(root / 'code-server.log')}?folder={root / 'folder'}")
        page.locator(".monaco-workbench .statusbar").wait_for(timeout=120_000)
        window.wait_for_extensions()
        yield window
    finally:
        window.close()
        log.close()


def _environment(root: Path) -> dict[str, str]:
    """Nothing of a person's own configuration is read, and nothing is sent to a gallery."""
    return {
        **environment(root),
        "EXTENSIONS_GALLERY": '{"serviceUrl":""}',
        "SPECEDIT_TESTER_SOCKET": str(root / "tester.sock"),
    }


def _unpack_extensions(vsix: Path, extensions: Path) -> None:
    with zipfile.ZipFile(vsix) as package:
        version = json.loads(package.read("extension/package.json"))["version"]
        for member in package.namelist():
            if member.startswith("extension/"):
                package.extract(member, extensions)
    (extensions / "extension").rename(extensions / f"specedit.specedit-{version}")
    shutil.copytree(_TESTER, extensions / "specedit.tester-0.0.0")


def _server(root: Path, command: tuple[str, ...]) -> Path:
    """A program `specedit` that starts the language server and writes down its process and its errors."""
    quote = shlex.quote
    return write(
        root / "bin/specedit",
        "#!/bin/sh\n"
        'test "$2" != --help || exit 0\n'
        f"echo $$ > {quote(str(root / 'server.pid'))}\n"
        f"cd {quote(str(REPOSITORY))}\n"
        f"exec {shlex.join(command)} 2>> {quote(str(root / 'server.log'))}\n",
    )


def _address(log: Path) -> str:
    return wait_until(lambda: (found := re.search(r"listening on (http://\S+)", log.read_text())) and found[1])
