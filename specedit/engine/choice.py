"""Which server the settings mean: the one that they name, or one of this user that runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from specedit.config import PLACES, Settings, server_url
from specedit.engine.api import FimMarkers
from specedit.engine.discovery import Progress, find_server, token_of
from specedit.errors import ConfigError

if TYPE_CHECKING:
    from specedit.engine.remote import RemoteEngine


def server_of(
    settings: Settings,
    *,
    fim_markers: Callable[[str], FimMarkers | None] = lambda _: None,
    wait_seconds: float = 0.0,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> RemoteEngine | None:
    """The server whose address the settings give, or a `specedit serve` of this user that runs; not asked yet.

    None where the settings name another place, or nothing runs. Without a key, a server of this user at the address is
    given its own token.

    Args:
        settings: what the user wants.
        fim_markers: gives a model's markers for filling in the middle, by the name that the server has for it.
        wait_seconds: how long to wait for a server of this user that is still loading.
        on_progress: told what is waited for.

    Raises:
        ConfigError: the address can't be used, or the runtime directory is not private.
    """
    model, key = settings.model, settings.api_key
    url = None if settings.engine in PLACES else settings.engine
    if settings.engine is None:
        if server := find_server(settings.model, wait_seconds=wait_seconds, on_progress=on_progress):
            url, model, key = server.url, server.model, server.token
    elif url is not None and key is None:
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
