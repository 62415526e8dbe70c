"""`specedit complete`: the text at a place in a file, as an editor would propose it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from specedit.cli import stats
from specedit.cli.choice import choose
from specedit.cli.exits import INTERRUPTED, NOT_ALL_DONE, code_of
from specedit.cli.interrupt import Interrupt
from specedit.cli.terminal import harmless
from specedit.config import Settings, load_settings
from specedit.edit.completion import Completion, CompletionRequest, alternatives
from specedit.edit.context import DiskSources, gather
from specedit.edit.document import Document, split_lines
from specedit.edit.files import project_root, read_file, refuse_secret
from specedit.edit.prompt_budget import PromptBudget
from specedit.errors import FileError, SpecEditError, UsageError

STDIN = Path("-")


@dataclass(frozen=True)
class _Options:
    """The command line, as given."""

    path: Path
    at: tuple[int, int]
    as_json: bool
    stdin_filename: Path | None
    count: int
    max_new_tokens: int
    stats: bool
    engine: str | None
    model: str | None
    seed: int
    allow_ignored: bool

    @property
    def place(self) -> Path:
        """The file, absolute."""
        return Path.cwd() / ((self.stdin_filename or Path("stdin")) if self.path == STDIN else self.path)

    def settings(self) -> Settings:
        """All settings, these flags last."""
        flags = {"engine": self.engine, "model": self.model, "allow_ignored": self.allow_ignored or None}
        return load_settings(project_root(self.place), flags=flags)


def _parsed_place(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[int, int]:
    line, colon, column = value.partition(":")
    if not (colon and line.isdecimal() and column.isdecimal()):
        raise click.BadParameter(f"{value!r} is not a line and a column, such as 12:5.")
    return int(line), int(column)


@click.command(name="complete", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument(
    "path",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, readable=False, allow_dash=True, path_type=Path),
)
@click.option(
    "--at",
    required=True,
    metavar="LINE:COL",
    callback=_parsed_place,
    help="Where the cursor stands, both counted from 1; the column in characters.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a completion.")
@click.option(
    "--alternatives", "count", type=click.IntRange(1, 10), default=1, show_default=True, help="The most completions."
)
@click.option("--max-new-tokens", type=click.IntRange(min=1), default=128, show_default=True, help="Of a completion.")
@click.option(
    "--stdin-filename",
    metavar="NAME",
    type=click.Path(path_type=Path),
    help="With - as FILE: the name of the text on stdin.",
)
@click.option("--stats", is_flag=True, help="Say what the completions cost.")
@click.option(
    "--engine",
    metavar="URL",
    help="An OpenAI-compatible server to ask; or local (this process), or shared (a server that is started once).",
)
@click.option("--model", metavar="NAME", help="Name, hub id or path of the model; or what the server calls it.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For the alternatives.")
@click.option("--allow-ignored", is_flag=True, help="Read files that git ignores.")
def command(**given: Any) -> None:
    """Print the text that the model proposes at a place in FILE.

    The model is shown the text around it, and what the file uses of the files that it imports. Nothing is written.

    Exit code, the first that applies: 130 interrupted, 2 wrong usage or settings, 4 no model or no answer, 3 the file
    was refused, 0.
    """
    options = _Options(**given)
    if options.stdin_filename and options.path != STDIN:
        raise click.UsageError("--stdin-filename needs - as FILE.")
    interrupt = Interrupt()
    try:
        with interrupt.caught():
            code = _complete(options, interrupt)
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted")
        code = INTERRUPTED
    except FileError as error:
        _say(str(error))
        code = NOT_ALL_DONE
    except SpecEditError as error:
        _say(str(error))
        code = code_of(error)
    sys.exit(code)


def _complete(options: _Options, interrupt: Interrupt) -> int:
    settings = options.settings()
    document = _document(options, settings)
    offset = _offset(document, options)
    root = project_root(options.place)
    may_ask = sys.stdin.isatty() and sys.stderr.isatty()
    choice = choose(settings, ask=_ask if may_ask else None, say=_say)
    if choice.place is not None:
        _say(f"the engine is {choice.name} at {choice.place}")
    engine = choice.make()
    for warning in engine.warnings:
        _say(warning)
    budget = PromptBudget.for_device(engine.device)
    request = CompletionRequest(
        document,
        offset,
        files=gather(document, offset, DiskSources(root, settings=settings), budget),
        budget=budget,
        max_new_tokens=options.max_new_tokens,
        seed=options.seed,
        cancel=interrupt.cancel,
        name=options.place.relative_to(root).as_posix() if options.place.is_relative_to(root) else "",
    )
    with interrupt.cancelling():
        completions = alternatives(request, engine, options.count)
    if interrupt.cancel.cancelled:
        _say("interrupted")
        return INTERRUPTED
    for number, completion in enumerate(completions, start=1):
        _report(completion, document, options, number=number, of=len(completions))
        for line in stats.lines(completion.usage) if options.stats and choice.is_ours else ():
            _say(line)
    return 0


def _document(options: _Options, settings: Settings) -> Document:
    """The text, its path absolute."""
    if options.path == STDIN:
        if options.stdin_filename:
            refuse_secret(options.stdin_filename, options.place, project_root(options.place), settings.secret_patterns)
        return Document.from_bytes(sys.stdin.buffer.read(), options.place)
    snapshot = read_file(
        options.path,
        allow_ignored=settings.allow_ignored,
        secret_patterns=settings.secret_patterns,
        max_file_bytes=settings.max_file_bytes,
    )
    return Document.from_bytes(snapshot.data, options.place)


def _offset(document: Document, options: _Options) -> int:
    """Where the place is in the text.

    Raises:
        UsageError: it is not in the text.
    """
    (line, column), name = options.at, options.path
    lines = split_lines(document.text)
    if not lines or lines[-1].endswith(("\n", "\r")):
        lines.append("")
    if not 1 <= line <= len(lines):
        has = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
        raise UsageError(f"{name} has {has}: there is no line {line}. Give --at LINE:COL, both counted from 1.")
    text = lines[line - 1].rstrip("\r\n")
    if not 1 <= column <= len(text) + 1:
        raise UsageError(
            f"line {line} of {name} ends at column {len(text) + 1}: there is no column {column}. "
            "Give --at LINE:COL, both counted from 1, the column in characters."
        )
    return sum(map(len, lines[: line - 1])) + column - 1


def _report(completion: Completion, document: Document, options: _Options, *, number: int, of: int) -> None:
    if options.as_json:
        click.echo(_to_json(completion, document, options))
    elif completion.status != "found":
        _say(completion.reason)
    else:
        if of > 1:
            click.echo(f"--- {number} of {of}")
        text = completion.text
        click.echo(harmless(text) if sys.stdout.isatty() else text.encode("utf-8", "surrogateescape"))


def _to_json(completion: Completion, document: Document, options: _Options) -> str:
    """One JSON object, on one line; places as in --at."""
    return json.dumps(
        {
            "path": str(options.stdin_filename or options.path),
            "status": completion.status,
            "reason": completion.reason or None,
            "start": _place(document, completion.span.start),
            "end": _place(document, completion.span.end),
            "text": completion.text,
            "stats": stats.as_json(completion.usage),
        }
    )


def _place(document: Document, offset: int) -> dict[str, int]:
    line = document.line_number(offset)
    start = sum(span.end - span.start for span in document.line_spans[: line - 1])
    return {"line": line, "column": offset - start + 1}


def _ask(question: str) -> bool:
    return click.confirm(question, err=True)


def _say(message: str) -> None:
    click.echo(harmless(f"specedit: {message}"), err=True)
