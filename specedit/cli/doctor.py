"""`specedit doctor`: whether an edit would find all that it needs."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from specedit.cli.exits import NO_ENGINE, ended_by_errors
from specedit.cli.terminal import harmless
from specedit.config import Settings, load_settings, user_config_file
from specedit.edit.files import project_root
from specedit.engine.api import Fim, GenerateRequest, Message, Sampling, TextChunk, Usage
from specedit.errors import EngineError, SpecEditError

if TYPE_CHECKING:
    from specedit.engine.remote import RemoteEngine

_QUESTION = (Message("user", "Count from one to twenty in words."),)
_FEW_TOKENS = 16
_MANY_TOKENS = 512


@dataclass(frozen=True)
class Check:
    """What one check found.

    Attributes:
        name: what was checked.
        state: "ok", "note" (edits work, but this does not) or "wrong" (edits don't work).
        said: what is there, or what is wrong and what to do.
    """

    name: str
    state: Literal["ok", "note", "wrong"]
    said: str


@click.command(name="doctor", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--engine", metavar="URL", help="An OpenAI-compatible server; or local, or shared.")
@click.option("--model", metavar="NAME", help="Name, hub id or path of the model; or what the server calls it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(engine: str | None, model: str | None, as_json: bool) -> None:
    """Check what an edit needs, in the order in which it needs it, and say what is wrong and how to mend it.

    A server is asked for a few short answers. Exit code: 0, or 4 if an edit would not work.
    """
    found: list[Check] = []
    with ended_by_errors("interrupted."):
        for check in checks(engine=engine, model=model):
            found.append(check)
            if not as_json:
                click.echo(harmless(f"{check.state:5}  {check.name}: {check.said}"))
    works = all(check.state != "wrong" for check in found)
    if as_json:
        click.echo(json.dumps({"ok": works, "checks": [asdict(check) for check in found]}, indent=2))
    sys.exit(0 if works else NO_ENGINE)


def checks(*, engine: str | None = None, model: str | None = None) -> Iterator[Check]:
    """One check after another; what can't work after one that is wrong is not checked.

    Args:
        engine: as the setting, before which it goes.
        model: as the setting.
    """
    user_file, root = user_config_file(), project_root(Path.cwd())
    there = "" if user_file.exists() else " (not there: defaults)"
    try:
        settings = load_settings(root, flags={"engine": engine, "model": model})
    except SpecEditError as error:
        yield Check("settings", "wrong", str(error))
        return
    yield Check("settings", "ok", f"{user_file}{there}, project {root}")
    yield _servers()
    from specedit.engine.choice import server_of
    from specedit.models.registry import fim_markers_of

    try:
        server = server_of(settings, fim_markers=fim_markers_of)
    except SpecEditError as error:
        yield Check("engine", "wrong", str(error))
        return
    if server is None:
        yield from _local(settings)
        return
    with closing(server):
        yield from _remote(server, settings)


def _servers() -> Check:
    from specedit.engine.discovery import servers

    try:
        running = servers()
    except SpecEditError as error:
        return Check("running servers", "note", f"{error} Until then no running server is found.")
    shown = ", ".join(f"{one.model} at {one.url} ({one.state}, process {one.pid})" for one in running)
    if any(one.url.startswith("https:") for one in running):
        return Check("running servers", "note", f"{shown}. One with a certificate is used only if --engine names it.")
    return Check("running servers", "ok", shown or "none")


# --- a server


def _remote(engine: RemoteEngine, settings: Settings) -> Iterator[Check]:
    from specedit.engine.choice import title_of

    try:
        served = engine.connect()
    except SpecEditError as error:
        yield Check("engine", "wrong", str(error))
        return
    yield Check("engine", "ok", title_of(engine))
    for warning in engine.warnings:
        yield Check("engine", "note", warning)
    yield Check("model", "ok", served.id)
    yield Check("context", "ok", f"{served.context_tokens} tokens" if served.context_tokens else "not told")
    ask = GenerateRequest(_QUESTION, max_new_tokens=_FEW_TOKENS)
    try:
        chunks = list(engine.generate(ask))
    except SpecEditError as error:
        yield Check("answer", "wrong", str(error))
        return
    yield Check("key", "ok", "accepted" if settings.api_key else "none was needed from you")
    yield _streaming(chunks)
    for check in (_seed, _prediction, _filling, _cancel):
        try:
            yield check(engine, settings)
        except SpecEditError as error:
            yield Check(check.__name__.strip("_"), "wrong", str(error))


def _streaming(chunks: list[TextChunk]) -> Check:
    pieces = [chunk for chunk in chunks if chunk.text]
    usage = chunks[-1].usage
    said = f"{len(pieces)} pieces, the first after {usage.prefill_seconds:.2f} s, {usage.output_tokens} tokens"
    state: Literal["ok", "note"] = "ok" if len(pieces) > 1 else "note"
    return Check("streaming", state, said + ("" if state == "ok" else ": does something in between hold answers back?"))


def _seed(engine: RemoteEngine, _settings: Settings) -> Check:
    ask = GenerateRequest(_QUESTION, sampling=Sampling(temperature=1.0), seed=7, max_new_tokens=_FEW_TOKENS)
    if _text(engine, ask)[0] == _text(engine, ask)[0]:
        return Check("seed", "ok", "the same seed gave the same text twice")
    return Check("seed", "note", "the same seed gave two texts: with --temperature, edits can't be repeated here")


def _prediction(engine: RemoteEngine, settings: Settings) -> Check:
    if engine.kind != "specedit":
        said = "sent; only specedit's server tells what it gained" if settings.send_prediction else "not sent"
        return Check("prediction", "ok", f"{said} (setting send_prediction)")
    ask = GenerateRequest(_QUESTION, max_new_tokens=_FEW_TOKENS)
    text, _ = _text(engine, ask)
    again, usage = _text(engine, replace(ask, prediction=text))
    if again != text:
        return Check("prediction", "wrong", "it changed the answer, which it never may: please report it")
    if not usage.accepted:
        return Check("prediction", "note", "nothing of it was accepted: is drafting off in the server's settings?")
    return Check("prediction", "ok", f"{usage.accepted} of {usage.output_tokens} tokens were drafted and accepted")


def _filling(engine: RemoteEngine, _settings: Settings) -> Check:
    ask = GenerateRequest(fim=Fim("def half(x):\n    return ", "\n"), max_new_tokens=1, priority="inline")
    ways = {
        "suffix": "by `suffix`",
        "infill": "by llama-server's /infill",
        "markers": "by the model's markers in a prompt",
        None: "not at all",
    }
    try:
        _text(engine, ask)
    except EngineError as error:
        return Check("filling in the middle", "note", str(error))
    return Check("filling in the middle", "ok", ways[engine.fim_way])


def _cancel(engine: RemoteEngine, _settings: Settings) -> Check:
    ask = GenerateRequest(_QUESTION, max_new_tokens=_MANY_TOKENS)
    chunks = engine.generate(ask)
    next(chunks)
    ask.cancel.cancel()
    for _ in chunks:
        pass
    started = time.perf_counter()
    _text(engine, GenerateRequest(_QUESTION, max_new_tokens=1))
    return Check("cancel", "ok", f"{time.perf_counter() - started:.2f} s later the next answer was there")


def _text(engine: RemoteEngine, request: GenerateRequest) -> tuple[str, Usage]:
    chunks = list(engine.generate(request))
    return "".join(chunk.text for chunk in chunks), chunks[-1].usage


# --- this process


def _local(settings: Settings) -> Iterator[Check]:
    where = "the server that all editors share, started at the first edit" if settings.engine == "shared" else ""
    yield Check("engine", "ok", where or "this process")
    parts: dict[str, Callable[[Settings], str]] = {
        "torch": _torch,
        "device": _device,
        "model": _model,
        "memory": _memory,
    }
    for name, part in parts.items():
        try:
            yield Check(name, "ok", part(settings))
        except SpecEditError as error:
            yield Check(name, "wrong", str(error))
            return


def _torch(_settings: Settings) -> str:
    from importlib.metadata import version

    from specedit.models.fetch import require_local

    require_local()
    return version("torch")


def _device(settings: Settings) -> str:
    import torch

    if settings.device != "auto":
        try:
            torch.empty(1, device=settings.device)
        except (RuntimeError, AssertionError) as error:
            raise EngineError(f'the device {settings.device!r} can\'t be used: choose another, or "auto"') from error
        return settings.device
    if torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name()})"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _model(settings: Settings) -> str:
    from specedit.models import registry

    found = registry.resolve(_name(settings))
    return f"{found.name}, {found.path}"


def _memory(settings: Settings) -> str:
    from specedit.engine.target import cuda_memory_bytes
    from specedit.models import registry
    from specedit.models.progress import readable_size

    weights = sum(file.stat().st_size for file in registry.resolve(_name(settings)).path.glob("*.safetensors"))
    on_gpu = settings.device.startswith("cuda") or settings.device == "auto"
    gpu = cuda_memory_bytes() if on_gpu else None
    held = gpu if gpu is not None else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if weights > held:
        raise EngineError(
            f"the weights take {readable_size(weights)} and there are {readable_size(held)}: choose a smaller --model"
        )
    return f"{readable_size(held)}, the weights take {readable_size(weights)}"


def _name(settings: Settings) -> str:
    from specedit.engine.target import cuda_memory_bytes
    from specedit.models import registry

    return settings.model or registry.default_model(cuda_memory_bytes())
