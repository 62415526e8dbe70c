"""The `specedit` command. Each subcommand lives in a file of its own and is imported only when it is called."""

from __future__ import annotations

import importlib

import click

from specedit import __version__

_COMMANDS = {
    "bench": ("specedit.cli.bench", "Measure what drafting gains, and whether edits are made."),
    "complete": ("specedit.cli.complete", "Print what the model proposes at a place in a file."),
    "doctor": ("specedit.cli.doctor", "Check what an edit needs, and say what is wrong."),
    "edit": ("specedit.cli.edit", "Change files as an instruction says."),
    "lsp": ("specedit.cli.lsp", "Serve an editor: rewrites, completions, next edits."),
    "models": ("specedit.cli.models", "List, pull, find and remove models."),
    "serve": ("specedit.cli.serve", "Serve a model to editors and commands over HTTP."),
    "train": ("specedit.cli.train", "Make what drafting learns from beforehand."),
}


class _LazyGroup(click.Group):
    """A group that knows its commands' one-line help without importing them, so that `--help` stays instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module_name, _ = _COMMANDS[cmd_name]
        command: click.Command = importlib.import_module(module_name).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="specedit")
def main() -> None:
    """Fast, exact code edits by a language model you run yourself."""
