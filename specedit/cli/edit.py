"""`specedit edit`: change files as an instruction says."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from specedit.cli import stats
from specedit.cli.choice import Choice, ComparableEngine, choose
from specedit.cli.exits import INTERRUPTED, code_of
from specedit.cli.interrupt import Interrupt
from specedit.cli.outcome import NOT_BEGUN, Outcome, exit_code, summary_of
from specedit.cli.terminal import harmless, shown_diff, wants_colour
from specedit.cli.trace import Recorder, TracedEdit, page
from specedit.config import DRAFTERS, Settings, load_settings
from specedit.edit.document import Document
from specedit.edit.files import FileSnapshot, check_writable, project_root, read_file, refuse_secret, write_file
from specedit.edit.region import Region, line_range, symbol, whole_file
from specedit.edit.session import EditRequest, EditResult, generate_request, run_edit
from specedit.engine.api import CancelToken, Priority, Sampling, Usage
from specedit.errors import (
    EngineError,
    FileError,
    RefusedFileError,
    SpecEditError,
    UsageError,
)

STDIN = Path("-")


@dataclass(frozen=True)
class _Options:
    """The command line, as given."""

    paths: tuple[Path, ...]
    instruction: str
    lines: tuple[int, int] | None
    symbol_name: str | None
    write: bool
    check: bool
    patch_file: Path | None
    as_json: bool
    stdin_filename: Path | None
    compare: bool
    stats: bool
    trace_file: Path | None
    engine: str | None
    model: str | None
    no_draft: bool
    drafters: str | None
    seed: int
    temperature: float | None
    top_p: float | None
    max_new_tokens: int | None
    allow_deletions: bool
    allow_syntax_errors: bool
    allow_ignored: bool

    def settings(self) -> Settings:
        """All settings, these flags last; those of a project come from where the first file is."""
        flags = {
            "engine": self.engine,
            "model": self.model,
            "drafters": self.drafters and [name.strip() for name in self.drafters.split(",")],
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_new_tokens": self.max_new_tokens,
            "allow_deletions": self.allow_deletions or None,
            "allow_syntax_errors": self.allow_syntax_errors or None,
            "allow_ignored": self.allow_ignored or None,
        }
        return load_settings(project_root(self.place(self.paths[0])), flags=flags)

    @property
    def local_flags(self) -> list[str]:
        """Those that only a model in this process can follow."""
        given = {"--no-draft": self.no_draft, "--drafters": self.drafters}
        return [flag for flag, value in given.items() if value]

    def place(self, path: Path) -> Path:
        """The file that `path` stands for."""
        return (self.stdin_filename or Path("stdin")) if path == STDIN else path


def _parsed_range(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """`10:40`, or `10` for one line; whether the file has such lines is found out later."""
    if value is None:
        return None
    first, _, last = value.partition(":")
    if not (first.isdecimal() and (last or first).isdecimal()):
        raise click.BadParameter(f"{value!r} is not a range of lines, such as 10:40.")
    return int(first), int(last or first)


@click.command(name="edit", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH...",
    type=click.Path(exists=True, dir_okay=False, readable=False, allow_dash=True, path_type=Path),
)
@click.option("-m", "--instruction", required=True, help="What to change.")
@click.option(
    "--range", "lines", metavar="FIRST:LAST", callback=_parsed_range, help="Change only these lines, such as 10:40."
)
@click.option("--symbol", "symbol_name", metavar="NAME", help="Change only this function, class or type.")
@click.option("--write", is_flag=True, help="Write the changes; without it they are only shown.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if there would be changes.")
@click.option(
    "--patch",
    "patch_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save the changes as a patch for git apply.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a file, no diff.")
@click.option(
    "--stdin-filename",
    metavar="NAME",
    type=click.Path(path_type=Path),
    help="With - as PATH: the name of the text on stdin. With --write the new text goes to stdout.",
)
@click.option("--compare", is_flag=True, help="Run the request by plain decoding too, and compare.")
@click.option("--stats", is_flag=True, help="Say which drafts were accepted and where the time went.")
@click.option(
    "--trace",
    "trace_file",
    metavar="FILE.html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save a page that shows what was drafted and accepted in each step.",
)
@click.option(
    "--engine",
    metavar="URL",
    help="An OpenAI-compatible server to ask; or local (this process), or shared (a server that is started once).",
)
@click.option("--model", metavar="NAME", help="Name, hub id or path of the model; or what the server calls it.")
@click.option("--no-draft", is_flag=True, help="Decode one token a step.")
@click.option("--drafters", metavar="NAME,...", help=f"Draft only from these: {', '.join(DRAFTERS)}.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For sampling.")
@click.option("--temperature", type=click.FloatRange(0, 100), help="0 is greedy decoding.")
@click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), help="Sample from this much of it.")
@click.option("--max-new-tokens", type=click.IntRange(min=1), help="The most tokens of an answer.")
@click.option("--allow-deletions", is_flag=True, help="Take answers that make much vanish.")
@click.option("--allow-syntax-errors", is_flag=True, help="Take answers that no longer parse.")
@click.option("--allow-ignored", is_flag=True, help="Read files that git ignores.")
def command(**given: Any) -> None:
    """Change files as an instruction says, and show the changes as a diff.

    Exit code, the first that applies: 130 interrupted, 2 wrong usage or settings, 4 no model, 3 some file was
    refused or failed, 1 there are changes (with --check), 0.
    """
    options = _Options(**given)
    _check_usage(options)
    interrupt = Interrupt()
    try:
        with interrupt.caught():
            code = _edit_all(options, interrupt)
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted; nothing more was written")
        code = INTERRUPTED
    except SpecEditError as error:
        _say(str(error))
        code = code_of(error)
    sys.exit(code)


def _check_usage(options: _Options) -> None:
    if len(options.paths) > 1 and (options.lines or options.symbol_name):
        raise click.UsageError("--range and --symbol are for one PATH.")
    if options.lines and options.symbol_name:
        raise click.UsageError("Give --range or --symbol, not both.")
    if options.write and options.check:
        raise click.UsageError("Give --write or --check, not both.")
    if STDIN in options.paths and len(options.paths) > 1:
        raise click.UsageError("- can't stand beside other PATHs.")
    if STDIN in options.paths and options.write and options.as_json:
        raise click.UsageError("With - as PATH, --write and --json both want stdout. Give one of them.")
    if options.stdin_filename and STDIN not in options.paths:
        raise click.UsageError("--stdin-filename needs - as PATH.")
    if not options.instruction.strip():
        raise click.UsageError("The instruction is empty. Say what to change with -m.")
    if options.no_draft and options.drafters:
        raise click.UsageError("Give --no-draft or --drafters, not both.")
    for option, file in (("--patch", options.patch_file), ("--trace", options.trace_file)):
        if file and any(file.resolve() == path.resolve() for path in options.paths):
            raise click.UsageError(f"{option} names a file that is to be edited.")
        if file and not file.resolve().parent.is_dir():
            raise click.UsageError(f"There is no directory {file.parent} for {option}.")
    if options.patch_file and options.trace_file and options.patch_file.resolve() == options.trace_file.resolve():
        raise click.UsageError("--patch and --trace name the same file.")
    roots = {project_root(Path(os.path.realpath(path))) for path in options.paths}
    if options.patch_file and len(roots) > 1 and any((root / ".git").exists() for root in roots):
        raise click.UsageError("--patch is for the files of one repository.")


def _edit_all(options: _Options, interrupt: Interrupt) -> int:
    """Edit one file after another, report each, and return the exit code."""
    settings = options.settings()
    may_ask = sys.stdin.isatty() and sys.stderr.isatty()
    # What takes long is done before signals only cancel: reading what is typed, and loading the model.
    stdin = sys.stdin.buffer.read() if STDIN in options.paths else b""
    wanted = any([_can_begin(path, stdin, options, settings) for path in options.paths])  # noqa: C419 (all are checked)
    choice = choose(
        settings,
        local_flags=options.local_flags,
        draft=not options.no_draft,
        ask=_ask if may_ask else None,
        say=_say,
    )
    _say_choice(choice, options)
    editor = _Editor(options, settings, choice, interrupt.cancel)
    if wanted:
        for warning in editor.engine.warnings:
            _say(warning)
    outcomes: list[Outcome] = []
    try:
        with interrupt.cancelling():
            for path in options.paths:
                outcomes.append(editor.edit(path, stdin))
                _report(outcomes[-1], options)
    except KeyboardInterrupt:
        outcomes += [Outcome(path, "cancelled", NOT_BEGUN) for path in options.paths[len(outcomes) :]]
    if options.patch_file:
        _save_patch(options.patch_file, outcomes)
    if options.trace_file and choice.is_ours:
        _save(options.trace_file, page(editor.traced).encode("utf-8"))
    was_interrupted = interrupt.cancel.cancelled
    if summary := summary_of(outcomes, was_interrupted=was_interrupted):
        _say(summary)
    return INTERRUPTED if was_interrupted else exit_code(outcomes, check=options.check)


# --- one file


@dataclass(frozen=True)
class _Editor:
    options: _Options
    settings: Settings
    choice: Choice
    cancel: CancelToken
    traced: list[TracedEdit] = field(default_factory=list)

    @cached_property
    def engine(self) -> ComparableEngine:
        """The model; one in this process is loaded when it is first needed."""
        if self.choice.place is not None:
            return self.choice.make()
        with _status(f"loading {self.choice.name}"):
            return self.choice.make()

    def edit(self, path: Path, stdin: bytes) -> Outcome:
        """Read, ask the model and, where that is wanted, write; a file's failure is its outcome."""
        place = self.options.place(path)
        if self.cancel.cancelled:
            return Outcome(place, "cancelled", NOT_BEGUN)
        try:
            if path == STDIN:
                _refuse_secret_stdin(self.options, self.settings)
                return self._edited(place, stdin)
            snapshot = _read(path, self.options, self.settings)
            return self._written(self._edited(place, snapshot.data), snapshot)
        except FileError as error:
            return _without_edit(place, error)

    def _edited(self, path: Path, data: bytes) -> Outcome:
        document = Document.from_bytes(data, path)
        request = EditRequest(
            document,
            _region(document, self.options),
            self.options.instruction,
            sampling=Sampling(temperature=self.settings.temperature, top_p=self.settings.top_p),
            seed=self.options.seed,
            max_new_tokens=self.settings.max_new_tokens,
            allow_deletions=self.settings.allow_deletions,
            allow_syntax_errors=self.settings.allow_syntax_errors,
            priority=self._priority,
            cancel=self.cancel,
        )
        recorder = Recorder(self.engine)
        with _progress(path) as on_text:
            result = run_edit(request, recorder if self.options.trace_file else self.engine, on_text)
        if self.options.trace_file:
            self.traced.append(TracedEdit(str(path), result.status, tuple(recorder.steps), result.usage))
        _say_cost(path, result, with_stats=self.options.stats and self.choice.is_ours)
        if self.options.compare and result.usage.output_tokens and not self.cancel.cancelled:
            try:
                self._compare(path, request, result)
            except EngineError as error:
                _say(f"plain decoding failed: {error}", path)
        reason = "; ".join(filter(None, (result.reason, result.fix)))
        new = result.document.to_bytes()
        return Outcome(path, result.status, reason, result.hunks, result.usage, data, new)

    def _written(self, outcome: Outcome, snapshot: FileSnapshot) -> Outcome:
        if not self.options.write or outcome.status != "changed":
            return outcome
        try:
            write_file(snapshot, outcome.new)
        except FileError as error:
            # Nothing was changed, but what the answer cost is still told.
            return replace(_without_edit(outcome.path, error), usage=outcome.usage)
        return outcome

    def _compare(self, path: Path, request: EditRequest, result: EditResult) -> None:
        """Say what the same request takes when it is decoded one token a step, and whether its answer is the same."""
        answer, usage = "", Usage()
        with _progress(path) as on_text:
            for chunk in self.engine.generate_plain(generate_request(request)):
                answer += chunk.text
                usage = chunk.usage
                on_text(chunk.text)
        if self.cancel.cancelled:
            return
        same = "the same answer" if answer == result.answer else "another answer"
        ratio = usage.seconds / result.usage.seconds if result.usage.seconds else 0.0
        _say(f"plain decoding: {usage.seconds:.2f} s, {ratio:.2f} times as long; {same}", path)

    @property
    def _priority(self) -> Priority:
        return "batch" if len(self.options.paths) > 1 else "rewrite"


def _can_begin(path: Path, stdin: bytes, options: _Options, settings: Settings) -> bool:
    """Whether the file may be read and has the region, so that there is something to ask a model.

    Raises:
        UsageError: it has no such region.
    """
    try:
        data = stdin if path == STDIN else _read(path, options, settings).data
        _region(Document.from_bytes(data, options.place(path)), options)
    except FileError:
        return False
    return True


def _read(path: Path, options: _Options, settings: Settings) -> FileSnapshot:
    snapshot = read_file(
        path,
        allow_ignored=settings.allow_ignored,
        secret_patterns=settings.secret_patterns,
        max_file_bytes=settings.max_file_bytes,
    )
    if options.write:
        check_writable(snapshot)
    return snapshot


def _refuse_secret_stdin(options: _Options, settings: Settings) -> None:
    """What has the name of a secret stays one, whichever way it comes."""
    if options.stdin_filename:
        absolute = Path.cwd() / options.stdin_filename
        refuse_secret(options.stdin_filename, absolute, project_root(absolute), settings.secret_patterns)


def _without_edit(path: Path, error: FileError) -> Outcome:
    return Outcome(path, "refused" if isinstance(error, RefusedFileError) else "failed", str(error))


def _region(document: Document, options: _Options) -> Region:
    if options.lines:
        return line_range(document, *options.lines)
    if options.symbol_name:
        return symbol(document, options.symbol_name)
    return whole_file(document)


# --- what is said: results on stdout, everything else on stderr


def _ask(question: str) -> bool:
    return click.confirm(question, err=True)


def _say(message: str, path: Path | None = None) -> None:
    click.echo(harmless(f"{path or 'specedit'}: {message}"), err=True)


def _say_choice(choice: Choice, options: _Options) -> None:
    """Say which server answers, and what of the flags it can't follow.

    Raises:
        UsageError: a comparison is wanted with an engine that has nothing to compare with.
    """
    if choice.place is not None:
        _say(f"the engine is {choice.name} at {choice.place}")
    if choice.is_ours:
        return
    if options.compare:
        raise UsageError(
            f"--compare needs an engine of specedit's: {choice.place} can't be asked to decode without drafts. "
            "Leave it out, or use `specedit serve` or --engine local."
        )
    if options.stats or options.trace_file:
        _say(f"{choice.place} tells no steps, no drafters and no times, so there are no --stats and no --trace of them")


def _say_cost(path: Path, result: EditResult, *, with_stats: bool) -> None:
    usage = result.usage
    if usage.output_tokens:
        forwards = f"{usage.forwards} target forwards, {usage.tokens_per_forward:.1f} tokens per forward, "
        _say(f"{usage.output_tokens} output tokens, {forwards if usage.forwards else ''}{usage.seconds:.2f} s", path)
        for line in stats.lines(usage) if with_stats else ():
            _say(line, path)


@contextmanager
def _progress(path: Path) -> Iterator[Callable[[str], None]]:
    """On a terminal, how many lines of the answer there are so far; elsewhere nothing."""
    lines = 0
    with _status(f"{path}: the model reads") as update:

        def on_text(text: str) -> None:
            nonlocal lines
            lines += text.count("\n")
            update(f"{path}: the model writes line {lines + 1}")

        yield on_text


@contextmanager
def _status(doing: str) -> Iterator[Callable[[str], None]]:
    """On a terminal, what is being done meanwhile, and a function that says it anew; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(harmless(doing))) as status:
        yield lambda text: status.update(Text(harmless(text)))


def _report(outcome: Outcome, options: _Options) -> None:
    if outcome.status != "changed":
        prefix = f"{outcome.status}: " if outcome.status in ("refused", "failed") else ""
        _say(prefix + outcome.reason, outcome.path)
    if options.as_json:
        click.echo(outcome.to_json())
    elif options.write and options.paths == (STDIN,):
        if outcome.is_done:
            click.echo(outcome.new, nl=False)
    elif outcome.status == "changed":
        _show_diff(outcome)


def _show_diff(outcome: Outcome) -> None:
    """A pipe gets the bytes of the patch, a terminal its text, made harmless."""
    if not sys.stdout.isatty():
        click.echo(outcome.patch, nl=False)
        return
    colour = wants_colour(sys.stdout)
    click.echo(shown_diff(outcome.readable_patch, colour=colour), nl=False, color=colour)


def _save_patch(file: Path, outcomes: list[Outcome]) -> None:
    """Write the patch; without changes the file stays as it is."""
    patch = b"".join(outcome.patch for outcome in outcomes)
    if patch:
        _save(file, patch)
    else:
        _say(f"there is nothing to save in {file}")


def _save(file: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    try:
        if file.exists() and not file.is_file():
            file.write_bytes(data)  # a pipe or a device
            return
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as temporary:
            temporary.write(data)
        Path(temporary.name).chmod(0o644)
        Path(temporary.name).replace(file)
    except OSError as error:
        raise UsageError(f"{file} can't be written: {error.strerror}. Name another place.") from error
