"""`specedit models`: list, pull, find and remove models."""

from __future__ import annotations

import json
from typing import Any

import click

from specedit.cli.exits import ended_by_errors
from specedit.errors import ModelNotFoundError

_INTERRUPTED = "interrupted. What was downloaded is kept; the same command goes on from here."


@click.group(name="models", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """List, pull, find and remove models."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_models(as_json: bool) -> None:
    """Show the models that have a name, and all others that were pulled."""
    with ended_by_errors(_INTERRUPTED):
        rows = _rows()
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    from specedit.models.progress import readable_size

    lines = [("name", "size", "licence", "state", "")]
    for row in rows:
        size = readable_size(row["size_bytes"]) if row["size_bytes"] else ""
        state = "pulled" if row["pulled"] else "not pulled"
        lines.append((row["name"], size, row["license"] or "", state, row["path"] or row["summary"]))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


@command.command()
@click.argument("name")
@click.option("--keep-download", is_flag=True, help="Keep a downloaded GGUF file after it was converted.")
def pull(name: str, keep_download: bool) -> None:
    """Fetch a model, or convert a local .gguf file.

    NAME is a name that `specedit models list` shows, a hub id (organisation/name or
    organisation/name/file.gguf), or a .gguf file. Run again after an interruption, it goes on where it
    stopped. A downloaded GGUF file is deleted once it is converted to safetensors.
    """
    with ended_by_errors(_INTERRUPTED):
        from specedit.models import fetch, registry

        entry = registry.lookup(name)
        fetch.require_local()
        from specedit.cli.progress import drawn_progress
        from specedit.engine.target import convert_gguf

        with drawn_progress() as progress:
            model = fetch.pull(entry, convert_gguf, progress, keep_download=keep_download)
        click.echo(f"{model.name} is ready: {model.path}", err=True)


@command.command()
@click.argument("name")
def path(name: str) -> None:
    """Print the directory that a model is loaded from."""
    with ended_by_errors(_INTERRUPTED):
        from specedit.models import registry

        click.echo(registry.resolve(name).path)


@command.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Don't ask.")
def remove(name: str, yes: bool) -> None:
    """Delete a pulled model, and what a cut-off pull of it left."""
    with ended_by_errors(_INTERRUPTED):
        from specedit.models import registry, store
        from specedit.models.progress import readable_size
        from specedit.models.sources import LocalDir

        entry = registry.lookup(name)
        if isinstance(entry.sources[0], LocalDir):
            raise click.UsageError(f"{name} is a directory of yours, not a pulled model. Delete it yourself.")
        stored = registry.find_stored(entry)
        key = stored.key if stored else registry.cache_key(entry)
        leftovers = [place for place in (store.directory_of(key), store.downloads_of(key)) if place.exists()]
        if not leftovers:
            raise ModelNotFoundError(f"{entry.name} has not been pulled; there is nothing to remove.")
        shared = stored is not None and stored.manifest.weights is not None
        if stored and not shared:
            click.echo(f"{stored.directory} holds {readable_size(stored.size_bytes)}.", err=True)
        if not yes and not click.confirm(f"Remove {entry.name}?", err=True):
            click.echo("Nothing was removed.", err=True)
            return
        with store.lock(key):
            store.remove(key)
        click.echo(f"Removed {entry.name}.", err=True)
        if stored and shared:
            click.echo(
                f"Its weights stay in the hub's own cache, which other programs share: {stored.weights}\n"
                "Free them with `hf cache`.",
                err=True,
            )


def _rows() -> list[dict[str, Any]]:
    from specedit.models import registry, store

    stored = {model.manifest.name: model for model in store.installed()}
    rows = []
    for name in registry.MODELS | stored:
        entry = registry.MODELS.get(name)
        model = stored.get(name)
        rows.append(
            {
                "name": name,
                "size_bytes": model.size_bytes if model else entry and entry.size_bytes,
                "license": entry and entry.license,
                "pulled": model is not None,
                "path": str(model.weights) if model else None,
                "source": model.manifest.source if model else None,
                "summary": entry.summary if entry else "",
            }
        )
    return rows
