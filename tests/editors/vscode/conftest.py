"""VS Code for tests: one window a module, and what it showed where a test fails."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.editors.vscode.harness import Installed, MissingError, VSCode, chromium, vscode


@pytest.fixture(scope="session")
def installed() -> Installed:
    """The parts of VS Code, or a skip that says what brings them."""
    try:
        return Installed.find()
    except MissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def open_window(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., VSCode]]:
    """Opens a window of VS Code, closed with the module; takes what `vscode` takes."""
    with ExitStack() as stack:
        browser = stack.enter_context(chromium(installed))

        def open_one(**given: Any) -> VSCode:
            return stack.enter_context(vscode(installed, browser, tmp_path_factory.mktemp("vscode"), **given))

        yield open_one


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where a test fails: the screen it failed on, and where the logs lie."""
    report = yield
    if report.failed:
        for window in getattr(item, "funcargs", {}).values():
            if isinstance(window, VSCode):
                picture = window.picture(f"failed-{item.name}")
                report.sections.append(("VS Code", f"screen: {picture}\nlogs:   {window.root}/data/logs"))
    return report
