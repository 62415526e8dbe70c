"""Which engine a command asks: the server that was named, one that runs, or the model in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from specedit.config import Settings
from specedit.engine.api import Engine, GenerateRequest, TextChunk
from specedit.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from specedit.engine.remote import RemoteEngine

#: Variables that say how this very process runs a model, so that a server that happens to run is not asked.
_OF_THIS_PROCESS = ("SPECEDIT_DEVICE", "SPECEDIT_DTYPE")


class ComparableEngine(Engine, Protocol):
    """An engine that can also decode plainly, and has something to say to the user at times."""

    warnings: list[str]

    @property
    def device(self) -> str | None:
        """What the model runs on, as torch calls it, where that is known; may wait for a server."""
        ...

    def generate_plain(self, request: GenerateRequest) -> Iterator[TextChunk]:
        """Stream the answer by plain decoding: the same text, one token a forward, to compare with."""
        ...


@dataclass(frozen=True)
class Choice:
    """An engine that was chosen.

    Attributes:
        name: of the model, or of what is asked.
        make: gets the engine; a model in this process is loaded only then.
        place: where it is, for the user; None in this process.
        is_ours: whether it is specedit's: it can be compared with plain decoding, and tells its drafts and steps.
    """

    name: str
    make: Callable[[], ComparableEngine]
    place: str | None = None
    is_ours: bool = True


def choose(
    settings: Settings,
    *,
    local_flags: Sequence[str] = (),
    draft: bool = True,
    ask: Callable[[str], bool] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Choice:
    """The engine that the settings name; where they name none, a `specedit serve` that runs, else this process.

    A server at an address is asked what it is, a model in this process is looked for.

    Args:
        settings: what the user wants.
        local_flags: flags that were given and that only a model in this process can follow.
        draft: False decodes one token a step, in this process.
        ask: asked whether to pull a model that is not there; None never pulls.
        say: told what is waited for, and what the user should know.

    Raises:
        UsageError: such a flag stands beside a server.
        EngineError: the server can't be reached, or is not what it should be.
        ModelError: the model for this process can't be had.
    """
    engine = settings.engine
    if engine not in (None, "local"):
        if local_flags:
            raise UsageError(
                f"{local_flags[0]} is for a model in this process, and the engine is {engine}: leave it out, or add "
                "--engine local"
            )
        from specedit.engine.choice import server_of
        from specedit.models.registry import fim_markers_of

        server = server_of(settings, fim_markers=fim_markers_of)
        return _shared(settings, say) if server is None else _asked(server)
    only_here = bool(local_flags) or any(os.environ.get(name) for name in _OF_THIS_PROCESS)
    if engine is None and not only_here and (found := _running(settings, say)):
        return found
    return _local(settings, draft=draft, ask=ask, say=say)


def _asked(engine: RemoteEngine) -> Choice:
    from specedit.engine.choice import title_of

    served = engine.connect()
    return Choice(served.id, lambda: engine, title_of(engine), is_ours=served.kind == "specedit")


def _running(settings: Settings, say: Callable[[str], None]) -> Choice | None:
    """A server of this user that has the model, if one runs."""
    from specedit.engine.choice import server_of
    from specedit.engine.discovery import once_a_step, servers

    try:
        engine = server_of(settings, wait_seconds=settings.engine_timeout_seconds, on_progress=once_a_step(say))
        models = {record.model for record in servers()}
    except ConfigError as error:
        say(f"running servers were not looked for: {error}")
        return None
    if engine is None:
        return None
    if settings.model is None and len(models) > 1:
        say(f"several models are served ({', '.join(sorted(models))}): name one with --model")
    return _asked(engine)


def _shared(settings: Settings, say: Callable[[str], None]) -> Choice:
    from specedit.engine.discovery import SharedEngine, once_a_step

    engine = SharedEngine(settings.model, on_progress=once_a_step(say))
    return Choice(engine.model_name, lambda: engine, "the server that all editors share")


def _local(settings: Settings, *, draft: bool, ask: Callable[[str], bool] | None, say: Callable[[str], None]) -> Choice:
    from specedit.cli import engine as engines

    if sys.stderr.isatty():
        say("loading the model")
    found = engines.find_model(None, settings=settings, ask=ask)
    return Choice(found.name, lambda: engines.load_engine(found, settings=settings, draft=draft))
