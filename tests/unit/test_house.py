"""What holds everywhere: which package may import which, what stays light, and that the built wheel works elsewhere."""

from __future__ import annotations

import ast
import os
import resource
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPECEDIT = Path(sysconfig.get_path("scripts")) / "specedit"

# What a module may import of specedit; the longest prefix decides.
MAY_IMPORT = {
    "specedit": set(),
    "specedit.errors": set(),
    "specedit.config": {"specedit.errors"},
    "specedit.edit": {"specedit.edit", "specedit.engine.api"},
    "specedit.draft": {"specedit.draft", "specedit.engine.api"},
    "specedit.draft.tree": set(),
    "specedit.draft.native": set(),
    "specedit.draft.suffix_index": {"specedit.draft.tree", "specedit.draft.native"},
    "specedit.draft.replay": {"specedit.draft", "specedit.edit.repeat", "specedit.engine.api"},
    "specedit.engine": {"specedit.engine", "specedit.draft"},
    "specedit.engine.api": set(),
    "specedit.engine.wire": {"specedit.engine.api"},
    "specedit.engine.gap": {"specedit.engine.api"},
    "specedit.engine.client": {"specedit.engine.client", "specedit.engine.api", "specedit.engine.wire"}
    | {"specedit.engine.gap"},
    "specedit.engine.remote": {"specedit.engine.client", "specedit.engine.api"},
    "specedit.engine.runtime": set(),
    "specedit.engine.discovery": {"specedit.engine.api", "specedit.engine.wire", "specedit.engine.remote"}
    | {"specedit.engine.runtime"},
    "specedit.engine.serving": {"specedit.engine.serving", "specedit.engine.api", "specedit.engine.wire"}
    | {"specedit.engine.scheduler"},
    "specedit.engine.loop": {"specedit.engine", "specedit.draft.base", "specedit.draft.tree"},
    "specedit.engine.reference": {"specedit.engine.api", "specedit.engine.sampling", "specedit.engine.stats"}
    | {"specedit.engine.stops", "specedit.engine.tokens"},
    "specedit.integrations": {"specedit.integrations", "specedit.draft", "specedit.edit.fence", "specedit.edit.hints"}
    | {"specedit.engine.api", "specedit.engine.tokens"},
    "specedit.models": {"specedit.models", "specedit.engine.api"},
    "specedit.bench": {"specedit"},
    "specedit.train": {"specedit"},
    "specedit.cli": {"specedit"},
    "specedit.cli.lsp": {"specedit_lsp.server"},
    "specedit_lsp.__main__": {"specedit.cli.lsp"},
    "specedit_lsp": {"specedit_lsp", "specedit.edit", "specedit.models.registry", "specedit.engine.api"}
    | {"specedit.engine.client", "specedit.engine.remote", "specedit.engine.runtime", "specedit.engine.discovery"}
    | {"specedit.engine.choice"},
}
EVERYWHERE = {"specedit.errors", "specedit.config"}
LOWEST = {"specedit", "specedit.errors", "specedit.config"}

HEAVY = ("torch", "transformers", "tokenizers", "safetensors", "gguf", "huggingface_hub", "numpy")
#: What a server that nobody has asked anything yet does not need.
NOT_YET = ("httpx2", "tree_sitter_python", "tree_sitter_typescript", "rich")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for top in (ROOT, ROOT / "lsp"):
        for path in sorted((top / ("specedit" if top == ROOT else "specedit_lsp")).rglob("*.py")):
            parts = path.relative_to(top).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield name, ast.parse(path.read_bytes(), str(path))


def imported(tree: ast.Module) -> set[str]:
    """The modules that a module names anywhere; `from a import b` gives both `a` and `a.b`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def under(name: str, packages: set[str] | tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def rule_for(module: str) -> str:
    return max((prefix for prefix in MAY_IMPORT if under(module, (prefix,))), key=len)


def forbidden(module: str, tree: ast.Module) -> set[str]:
    allowed = MAY_IMPORT[rule_for(module)] | (set() if module in LOWEST else EVERYWHERE)
    ours = {
        name for name in imported(tree) if under(name, ("specedit", "specedit_lsp")) and name != "specedit.__version__"
    }
    return {name for name in ours if not under(name, allowed)}


def test_imports_go_down_the_ladder() -> None:
    assert {module: bad for module, tree in modules() if (bad := forbidden(module, tree))} == {}


def test_the_ladder_sees_a_wrong_import() -> None:
    wrong = ast.parse("def f():\n    from specedit.engine import local\nimport specedit.cli.edit")
    assert forbidden("specedit.edit.session", wrong) == {"specedit.engine.local", "specedit.cli.edit"}
    assert forbidden("specedit.engine.loop", ast.parse("from specedit.draft.prompt_lookup import PromptLookup"))
    assert forbidden("specedit.edit.session", ast.parse("from specedit.engine.api import Engine")) == set()


def test_each_heavy_library_stays_in_its_room() -> None:
    may_use = {
        "torch": ("specedit.engine", "specedit.bench", "specedit.train", "specedit.cli"),
        "transformers": ("specedit.engine.target", "specedit.engine.tokens", "specedit.bench"),
        "huggingface_hub": ("specedit.models.hub",),
        "pygls": ("specedit_lsp",),
        "lsprotocol": ("specedit_lsp",),
    }
    for module, tree in modules():
        for library, rooms in may_use.items():
            if not under(module, rooms):
                assert not any(under(name, (library,)) for name in imported(tree)), f"{module} imports {library}"


@pytest.mark.parametrize(
    "code",
    [
        "import specedit",
        "from specedit.cli import main; main(['--help'], standalone_mode=False)",
        "import specedit.models.registry",
        "import specedit.engine.api",
        "import specedit.engine.wire",
        "import specedit.engine.discovery",
        "import specedit_lsp.server",
    ],
)
def test_what_is_light_loads_nothing_heavy(code: str) -> None:
    check = f"{code}\nimport sys\nprint([name for name in {HEAVY} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd="/").stdout
    assert output.splitlines()[-1] == "[]"


def test_a_language_server_starts_with_what_it_needs_at_once() -> None:
    check = f"import specedit_lsp.server, sys\nprint([name for name in {NOT_YET} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd="/").stdout
    assert output.splitlines()[-1] == "[]"


def test_help_is_instant() -> None:
    def cpu_seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([SPECEDIT, "--help"], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(cpu_seconds() for _ in range(3)) < 0.3


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of a fresh environment with the built wheel, without the extra `local`, outside the checkout."""
    place = tmp_path_factory.mktemp("elsewhere")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def pip(*arguments: str | Path) -> None:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", place / "dist", ROOT)
    venv.create(place / "venv", with_pip=False, symlinks=True)
    [wheel] = (place / "dist").glob("specedit-*.whl")
    pip("--python", place / "venv", "install", wheel)
    return place / "venv" / "bin"


def run(scripts: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(scripts.parent), "SPECEDIT_CACHE": str(scripts / "cache")}
    environment["SPECEDIT_RUNTIME"] = str(scripts / "run")
    return subprocess.run(
        [scripts / "specedit", *arguments], env=environment, cwd=scripts, capture_output=True, text=True, timeout=60
    )


def test_a_built_wheel_runs_without_torch(elsewhere: Path) -> None:
    found = subprocess.run([elsewhere / "python", "-c", "import torch"], capture_output=True, text=True)
    assert "ModuleNotFoundError" in found.stderr
    helped = run(elsewhere, "--help")
    assert helped.returncode == 0, helped.stderr
    assert "edit" in helped.stdout
    listed = run(elsewhere, "models", "list")
    assert listed.returncode == 0, listed.stderr
    assert "qwen2.5-coder-0.5b" in listed.stdout


@pytest.mark.parametrize("command", [["edit", "a.py", "-m", "rename x to y"], ["models", "pull", "smollm2-135m"]])
def test_what_needs_torch_names_the_install(elsewhere: Path, command: list[str]) -> None:
    file = elsewhere / "a.py"
    file.write_text("x = 1\n")
    failed = run(elsewhere, *command)
    assert failed.returncode == 4, failed.stderr
    assert "pip install 'specedit[local]'" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert file.read_text() == "x = 1\n"
