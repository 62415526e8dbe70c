"""Which engine a command asks: the server that was named, one that runs, or the model in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from specedit.config import PLACES, Settings, server_url
from specedit.engine.api import Engine, FimMarkers, GenerateRequest, TextChunk
from specedit.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from specedit.engine.remote import RemoteEngine

#: Variables that say how this very process runs a model, so that a server that happens to run is not asked.
_OF_THIS_PROCESS = ("SPECEDIT_DEVICE", "SPECEDIT_DTYPE")


class ComparableEngine(Engine, Protocol):
    """An engine that can also decode plainly, and has something to say to the user at times."""

    warnings: list[str]

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
        server = server_of(settings)
        return _shared(settings, say) if server is None else _asked(server)
    only_here = bool(local_flags) or any(os.environ.get(name) for name in _OF_THIS_PROCESS)
    if engine is None and not only_here and (found := _running(settings, say)):
        return found
    return _local(settings, draft=draft, ask=ask, say=say)


def server_of(
    settings: Settings,
    *,
    fim_markers: FimMarkers | None = None,
    wait_seconds: float = 0.0,
    say: Callable[[str], None] = lambda _: None,
) -> RemoteEngine | None:
    """The server whose address the settings give, or a `specedit serve` of this user that runs; not asked yet.

    None where the settings name another place, or nothing runs. Without a key, a server of this user at the address is
    given its own token.

    Args:
        settings: what the user wants.
        fim_markers: the model's markers for filling in the middle.
        wait_seconds: how long to wait for a server of this user that is still loading.
        say: told what is waited for.

    Raises:
        ConfigError: the address can't be used, or the runtime directory is not private.
    """
    model, key = settings.model, settings.api_key
    url = None if settings.engine in PLACES else settings.engine
    if settings.engine is None:
        from specedit.engine.discovery import find_server

        if server := find_server(settings.model, wait_seconds=wait_seconds, on_progress=say):
            url, model, key = server.url, server.model, server.token
    elif url is not None and key is None:
        from specedit.engine.discovery import token_of

        with suppress(ConfigError):
            key = token_of(server_url(url))
    if url is None:
        return None
    # Imported late, as a model in this process needs no HTTP.
    from specedit.engine.client.transport import Timeouts
    from specedit.engine.remote import RemoteEngine

    return RemoteEngine(
        url,
        model=model,
        api_key=key,
        send_prediction=settings.send_prediction,
        fim_markers=fim_markers,
        timeouts=Timeouts(read_seconds=settings.engine_timeout_seconds),
    )


def title_of(engine: RemoteEngine) -> str:
    """Where a server is and what runs there, for the user; asks it."""
    from specedit.engine.client.dialect import TITLES

    return f"{engine.url} ({TITLES[engine.kind]})"


def _asked(engine: RemoteEngine) -> Choice:
    served = engine.connect()
    return Choice(served.id, lambda: engine, title_of(engine), is_ours=served.kind == "specedit")


def _running(settings: Settings, say: Callable[[str], None]) -> Choice | None:
    """A server of this user that has the model, if one runs."""
    from specedit.engine.discovery import servers

    try:
        engine = server_of(settings, wait_seconds=settings.engine_timeout_seconds, say=say)
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
    from specedit.engine.discovery import SharedEngine

    engine = SharedEngine(settings.model, on_progress=say)
    return Choice(engine.model_name, lambda: engine, "the server that all editors share")


def _local(settings: Settings, *, draft: bool, ask: Callable[[str], bool] | None, say: Callable[[str], None]) -> Choice:
    from specedit.cli import engine as engines

    if sys.stderr.isatty():
        say("loading the model")
    found = engines.find_model(None, settings=settings, ask=ask)
    return Choice(found.name, lambda: engines.load_engine(found, settings=settings, draft=draft))
