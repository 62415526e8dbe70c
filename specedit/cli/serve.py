"""`specedit serve`: one model for every editor and command, over OpenAI-compatible HTTP."""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specedit import __version__
from specedit.cli.exits import ended_by_errors
from specedit.cli.interrupt import Interrupt
from specedit.config import Settings, load_settings
from specedit.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from specedit.engine.discovery import Registration, ServerRecord
    from specedit.engine.service import Loaded, Tls
    from specedit.models.registry import ResolvedModel

_HOST = "127.0.0.1"
#: Taken where it is free, so that other programs know where to ask.
_PORT = 8765
_MEGABYTE = 1_000_000
_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True)
class _Options:
    """The command line, as given."""

    model: str | None
    host: str | None
    port: int | None
    allowed_hosts: tuple[str, ...]
    token_file: Path | None
    ssl_certfile: Path | None
    ssl_keyfile: Path | None
    max_body_mb: float
    kv_cache_mb: float | None
    max_waiting: int
    drain_seconds: float
    idle_exit: float | None
    ensure: bool
    log_level: str
    log_prompts: bool

    @property
    def max_body_bytes(self) -> int:
        """The largest request."""
        return int(self.max_body_mb * _MEGABYTE)

    @property
    def kv_bytes(self) -> int | None:
        """What keys and values may take."""
        return None if self.kv_cache_mb is None else int(self.kv_cache_mb * _MEGABYTE)

    @property
    def is_placed(self) -> bool:
        """Whether it was said where to listen."""
        return self.host is not None or self.port is not None

    @property
    def shown_host(self) -> str:
        """The host to listen on."""
        return self.host or _HOST

    @property
    def is_local(self) -> bool:
        """Whether only this machine gets there."""
        return _is_loopback(self.shown_host)

    @property
    def names(self) -> Collection[str]:
        """What clients may call the server besides the names of loopback."""
        is_name = not self.is_local and not _is_any(self.shown_host)
        return {*self.allowed_hosts, *([self.shown_host] if is_name else [])}


@click.command(name="serve", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--model", metavar="NAME", help="Name, hub id or path of the model.")
@click.option("--host", metavar="ADDRESS", help=f"Where to listen.  [default: {_HOST}]")
@click.option(
    "--port", type=click.IntRange(0, 65535), help=f"0 takes any free one.  [default: {_PORT}, else any free one]"
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    metavar="NAME",
    multiple=True,
    help="A name by which clients call this machine; all others are refused. Can be repeated.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Ask for the token in this file, not for the one made at the first start.",
)
@click.option(
    "--ssl-certfile", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Serve HTTPS (PEM)."
)
@click.option("--ssl-keyfile", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Its key (PEM).")
@click.option(
    "--max-body-mb",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="The largest request, in megabytes.",
)
@click.option(
    "--kv-cache-mb",
    type=click.FloatRange(min=0),
    help="Memory for the keys and values of recent and paused requests.  [default: by the device]",
)
@click.option(
    "--max-waiting", type=click.IntRange(min=1), default=256, show_default=True, help="Refuse requests beyond so many."
)
@click.option(
    "--drain-seconds",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="At the end, finish answers under way within this time.",
)
@click.option(
    "--idle-exit",
    metavar="MINUTES",
    type=click.FloatRange(min=0, min_open=True),
    help="End after so long with no work.",
)
@click.option("--ensure", is_flag=True, help="Start one in the background unless one runs; print where, as JSON.")
@click.option("--log-level", type=click.Choice(_LEVELS), default="info", show_default=True)
@click.option("--log-prompts", is_flag=True, help="Log what is asked and answered; without it no text is ever logged.")
def command(**given: Any) -> None:
    """Serve a model to editors, to `specedit edit`, and to whatever speaks OpenAI's API.

    One server is enough: a second one for the same model says where the first one is, unless --host or --port ask for
    it. SIGTERM and Ctrl-C finish the answers under way; a second one ends at once.

    Exit code: 0 ended or already running, 2 wrong usage or settings, 4 no model, 130 interrupted before it listened.
    """
    options = _Options(**given)
    _check_usage(options)
    interrupt = Interrupt()
    with ended_by_errors("interrupted"), interrupt.caught():
        if options.ensure:
            _ensure(options)
        else:
            _Serving(options, interrupt).run()


def _check_usage(options: _Options) -> None:
    if (options.ssl_certfile is None) != (options.ssl_keyfile is None):
        raise click.UsageError("--ssl-certfile and --ssl-keyfile go together.")
    for file in (options.ssl_certfile, options.ssl_keyfile):
        if file is not None and not file.is_file():
            raise click.UsageError(f"There is no file {file}.")
    elsewhere = (options.host, options.port, options.token_file, options.ssl_certfile)
    if options.ensure and (options.allowed_hosts or any(given is not None for given in elsewhere)):
        raise click.UsageError("--ensure starts a server for this machine: it takes no address, token or certificate.")
    if not options.is_local and options.token_file is None:
        raise click.UsageError(
            f"Other machines can reach {options.host}: give --token-file FILE, a file of mode 0600 with a token of at "
            "least 16 characters. To make one: (umask 077; openssl rand -hex 32 > FILE)"
        )
    if _is_any(options.shown_host) and not options.allowed_hosts:
        raise click.UsageError(
            f"{options.host} is every address of this machine: say by which name or address clients call it, with "
            "--allowed-host NAME."
        )


# --- one in the background


def _ensure(options: _Options) -> None:
    from specedit.engine import discovery

    settings = _settings(options)
    passed_on = [
        f"--max-body-mb={options.max_body_mb}",
        f"--max-waiting={options.max_waiting}",
        f"--drain-seconds={options.drain_seconds}",
        f"--log-level={options.log_level}",
        *([] if options.kv_cache_mb is None else [f"--kv-cache-mb={options.kv_cache_mb}"]),
        *(["--log-prompts"] if options.log_prompts else []),
    ]
    server = discovery.ensure_server(
        settings.model,
        options=passed_on,
        idle_exit_minutes=options.idle_exit or discovery.IDLE_EXIT_MINUTES,
        on_progress=discovery.once_a_step(_say),
    )
    click.echo(
        json.dumps({"url": server.url, "token_file": server.token_file, "model": server.model, "pid": server.pid})
    )


# --- this process


@dataclass
class _Serving:
    """A server from its command line to its end."""

    options: _Options
    interrupt: Interrupt
    settings: Settings = field(init=False)

    def run(self) -> None:
        """Serve, unless a server of the same model runs already."""
        from specedit.cli import engine as engines
        from specedit.engine import discovery, runtime

        options = self.options
        _log_to_stderr(options.log_level)
        self.settings = _settings(options)
        token_file = (options.token_file or runtime.token_file()).absolute()
        token = runtime.read_token(token_file)
        may_ask = sys.stdin.isatty() and sys.stderr.isatty()
        found = engines.find_model(options.model, settings=self.settings, ask=_ask if may_ask else None)
        model = _served_name(found)
        sockets: list[socket.socket] = []

        def listening() -> ServerRecord:
            sockets.append(self._bound())
            return discovery.ServerRecord(
                url=self._url(sockets[0]),
                token_file=str(token_file),
                model=model,
                pid=os.getpid(),
                version=__version__,
                started=time.time(),
                step=f"loading {model}",
                percent=0,
            )

        # From here on a signal ends the service, which takes them over: it breaks off nothing half-made.
        with self.interrupt.cancelling():
            registration = discovery.register(listening, model=model, beside=options.is_placed)
            if isinstance(registration, discovery.ServerRecord):
                if registration.version != __version__:
                    raise UsageError(
                        f"{model} is served at {registration.url} by specedit {registration.version}, which this "
                        f"version ({__version__}) doesn't talk to. End it with: kill {registration.pid}"
                    )
                _say(f"{model} is served already at {registration.url} (process {registration.pid})")
                return
            try:
                _say(
                    f"listening at {registration.record.url}{self._also()} (process {os.getpid()}), loading {model}; "
                    f"the token lies in {token_file}"
                )
                if not options.is_local and options.ssl_certfile is None:
                    _say("all on the way can read the token and the code: give --ssl-certfile, or use an SSH tunnel")
                is_ended = self._serve(
                    sockets[0], registration, self._loading(registration, found, model, token), token
                )
            finally:
                registration.remove()
        if not is_ended:
            # Python would wait for the loading to let go, or break off in the midst of it.
            sys.stderr.flush()
            os._exit(0)

    def _serve(
        self, listener: socket.socket, registration: Registration, load: Callable[[], Loaded], token: str
    ) -> bool:
        """Serve until the end; whether that was after the model was loaded."""
        from specedit.engine.service import Service, loading
        from specedit.engine.serving.gate import Gate, checked_token

        options = self.options
        record = registration.record

        def ready() -> None:
            registration.update(state="ready")
            _say(f"ready: {record.model} at {record.url}")

        service = Service(
            listener,
            load,
            before=Gate(
                loading,
                token=checked_token(token),
                allowed_hosts=options.names,
                max_body_bytes=options.max_body_bytes,
                body_seconds=60.0,
            ),
            on_ready=ready,
            on_stop=registration.remove,
            tls=self._tls(),
            drain_seconds=options.drain_seconds,
            idle_exit_seconds=None if options.idle_exit is None else options.idle_exit * 60,
            cancel=self.interrupt.cancel,
        )
        service.run()
        return not service.is_loading

    def _bound(self) -> socket.socket:
        from specedit.engine.service import bound

        host, port = self.options.shown_host, self.options.port
        if port is not None:
            return bound(host, port)
        try:
            return bound(host, _PORT)
        except UsageError:
            return bound(host, 0)

    def _url(self, listener: socket.socket) -> str:
        """How to reach it from this machine."""
        host, port = listener.getsockname()[:2]
        if _is_any(host):
            host = "::1" if ":" in host else _HOST
        scheme = "http" if self.options.ssl_certfile is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def _also(self) -> str:
        """From where else it can be reached."""
        names = " or ".join(self.options.allowed_hosts)
        return f", and for other machines as {names}" if not self.options.is_local and names else ""

    def _tls(self) -> Tls | None:
        from specedit.engine.service import Tls

        certificate, key = self.options.ssl_certfile, self.options.ssl_keyfile
        return Tls(certificate, key) if certificate is not None and key is not None else None

    def _loading(
        self, registration: Registration, found: ResolvedModel, model: str, token: str
    ) -> Callable[[], Loaded]:
        """Loads the model, and has the record say how far that is."""
        step = registration.record.step
        percents = [0]

        def tell(share: float) -> None:
            if (percent := int(100 * share)) > percents[-1]:
                percents.append(percent)
                # Whoever waits can do without.
                with suppress(ConfigError):
                    registration.update(state="loading", step=step, percent=percent)

        return lambda: self._loaded(found, model, token, tell)

    def _loaded(self, found: ResolvedModel, model: str, token: str, on_share: Callable[[float], None]) -> Loaded:
        """Load the model, and put the queue and the application before it."""
        from specedit.cli import engine as engines
        from specedit.engine.scheduler import Scheduler
        from specedit.engine.server import ServedModel, create_app
        from specedit.engine.service import Loaded
        from specedit.engine.serving.metrics import Metrics
        from specedit.engine.serving.request_log import RequestLog

        options = self.options
        engine = engines.load_engine(found, settings=self.settings, kv_bytes=options.kv_bytes, on_share=on_share)
        for line in (f"{model} runs on {engine.device}", *engine.warnings):
            _say(line)
        metrics = Metrics()
        scheduler = Scheduler(engine, observer=metrics, max_waiting=options.max_waiting)
        app = create_app(
            RequestLog(scheduler, with_texts=options.log_prompts),
            model=ServedModel(model, engine.context_tokens, int(time.time()), engine.device),
            token=token,
            allowed_hosts=options.names,
            metrics=metrics,
            max_body_bytes=options.max_body_bytes,
        )
        return Loaded(app, scheduler)


def _settings(options: _Options) -> Settings:
    """The user's settings. No project's: the server is for all of them."""
    return load_settings(Path(Path.cwd().anchor), flags={"model": options.model})


def _served_name(found: ResolvedModel) -> str:
    from specedit.engine.discovery import served_name
    from specedit.models.registry import MODELS

    return found.name if found.name in MODELS else served_name(found.name)


def _log_to_stderr(level: str) -> None:
    """Our own lines from `level` on, those of the libraries from warnings on."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    logging.getLogger("specedit").setLevel(level.upper())


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _ask(question: str) -> bool:
    return click.confirm(question, err=True)


def _say(line: str) -> None:
    click.echo(f"specedit: {line}", err=True)
