"""An engine behind HTTP: `specedit serve`, vLLM, llama-server, SGLang or another OpenAI-compatible server.

What the text half asks goes out as OpenAI's API has it; hints, priority, prediction and trace only to specedit's own
server. Nothing is guessed about a stream: an answer counts as whole only when the server has said how it ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import msgspec

from specedit.engine.api import FimMarkers, FinishReason, GenerateRequest, TextChunk
from specedit.engine.client import dialect
from specedit.engine.client.dialect import FimWay, ServerKind
from specedit.engine.client.markers import markers_of, refuse_markers, without_markers
from specedit.engine.client.refusal import Asked, explained, in_stream, listed, refused_path
from specedit.engine.client.replies import Meter, Piece, ServedModel, models_of, piece_of
from specedit.engine.client.transport import RefusedError, Timeouts, Transport, is_loopback
from specedit.errors import ContextOverflowError, EngineError, FimUnsupportedError, UnreachableError, UsageError

_MODELS = "/v1/models"
_CHAT = "/v1/chat/completions"
_COMPLETIONS = "/v1/completions"
_INFILL = "/infill"
#: How a server says that it doesn't fill in the middle that way.
_UNSUPPORTED = frozenset({400, 404, 405, 422, 501})
_FINISH_REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length"}


@dataclass(frozen=True, slots=True)
class _Ask:
    """One attempt: where to, with what."""

    path: str
    body: dict[str, object]


class RemoteEngine:
    """Answers requests by the model of a server; one connection each, from any thread.

    Attributes:
        url: the server's address, without `/v1`.
        warnings: plain lines that a user should see once.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        send_prediction: bool = False,
        fim_markers: Callable[[str], FimMarkers | None] = lambda _: None,
        timeouts: Timeouts | None = None,
    ) -> None:
        """Make an engine; the server is not asked yet.

        Args:
            url: where the server is, with or without `/v1`.
            model: which of its models; None takes the only one.
            api_key: sent as a bearer token.
            send_prediction: send the expected answer as `prediction` to other servers than specedit's too.
            fim_markers: gives a model's markers for filling in the middle, by the name that the server has for it; for
                servers that know no other way.
            timeouts: how long to wait.

        Raises:
            ConfigError: the URL is none, or the environment names a proxy that can't be used.
        """
        self._transport = Transport(url, api_key, timeouts or Timeouts())
        self.url = self._transport.url
        self.warnings: list[str] = []
        if api_key and self.url.startswith("http:") and not is_loopback(self.url):
            self.warnings.append(
                f"the key and all text go to {self.url} unencrypted: use https://, or an SSH tunnel to a port here"
            )
        self._wanted_model = model
        self._has_key = bool(api_key)
        self._send_prediction = send_prediction
        self._fim_markers_of = fim_markers
        self._lock = threading.Lock()
        self._served: ServedModel | None = None
        self._fim_way: FimWay | None = None

    # --- the server

    @property
    def model_name(self) -> str:
        """What the server calls the model, or what it was called by whoever named one and has not asked the server yet.

        Without a name the server is asked at first use, see `connect`.
        """
        if self._served is None and self._wanted_model is not None:
            return self._wanted_model
        return self.connect().id

    @property
    def kind(self) -> ServerKind:
        """What runs there; asks the server at first use, see `connect`."""
        return self.connect().kind

    @property
    def context_tokens(self) -> int | None:
        """Of prompt and answer together, where the server says it; asks the server at first use, see `connect`."""
        return self.connect().context_tokens

    @property
    def device(self) -> str | None:
        """What the model runs on, where the server says it; asks the server at first use, see `connect`."""
        return self.connect().device

    @property
    def fim_way(self) -> FimWay | None:
        """How the server fills in the middle; None before that has worked once."""
        return self._fim_way

    def connect(self) -> ServedModel:
        """Ask the server which models it has, unless that is known, and give the one that answers.

        Raises:
            EngineError: it can't be reached, is no such server, wants a key, or has no such model.
        """
        with self._lock:
            if self._served is None:
                self._served = self._chosen(self._listed())
            return self._served

    def _listed(self) -> tuple[ServedModel, ...]:
        try:
            return models_of(self._transport.get(_MODELS))
        except RefusedError as refused:
            raise explained(refused, self._asked(), _MODELS) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise EngineError(
                f"{self.url}{_MODELS} sent JSON that lists no models ({error}): it is no OpenAI-compatible server, or "
                "not at this address"
            ) from error

    def _chosen(self, models: tuple[ServedModel, ...]) -> ServedModel:
        names = [model.id for model in models]
        if self._wanted_model is None:
            if len(models) == 1:
                return models[0]
            raise EngineError(f"{self.url} has {len(models)} models. {listed(names)}")
        for model in models:
            if self._wanted_model in (model.id, *model.aliases):
                return model
        raise EngineError(f"{self.url} has no model {self._wanted_model!r}. {listed(names)}")

    def _asked(self) -> Asked:
        served = self._served
        if served is None:
            return Asked(self.url, has_key=self._has_key)
        return Asked(self.url, served.kind, served.id, (served.id,), self._has_key)

    def close(self) -> None:
        """Stop what is under way and drop the connections; idempotent."""
        self._transport.close()

    # --- answers

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        """Stream the answer; see `Engine.generate`.

        Until the server tells its counters, mostly at the end, `usage` holds wall clock and at least one output token a
        chunk. Only specedit's server gives steps for a trace.

        Raises:
            ContextOverflowError: the server finds prompt and answer too long.
            MarkerTextError: the text holds markers of the model, and the server would take them for its own.
            UnreachableError: the server is not there, sends nothing for too long, or is gone in mid-answer.
            OverloadedError: it has too much to do.
            EngineError: it refuses or fails, or what it sends can't be understood.
            UsageError: the request itself is wrong.
        """
        return self._answer(request, plain=False)

    def generate_plain(self, request: GenerateRequest) -> Iterator[TextChunk]:
        """Stream the answer by plain decoding: the same text, one token a forward, to compare with.

        Raises:
            UsageError: the server is not specedit's; others can't be asked for that.
            EngineError: as `generate`.
        """
        if self.kind != "specedit":
            raise UsageError(
                f"{dialect.TITLES[self.kind]} at {self.url} can't be asked for plain decoding: that takes "
                "`specedit serve`, or --engine local"
            )
        return self._answer(request, plain=True)

    def _answer(self, request: GenerateRequest, *, plain: bool) -> Iterator[TextChunk]:
        request.check()
        served = None if request.cancel.cancelled else self.connect()
        meter = Meter()
        finish_reason: str | None = None
        if served is not None:
            try:
                with closing(self._pieces(request, served, plain=plain)) as pieces:
                    for piece in pieces:
                        meter.count(piece)
                        finish_reason = piece.finish_reason or finish_reason
                        if piece.text or piece.step or piece.tokens:
                            yield TextChunk(piece.text, meter.usage(), step=piece.step, tokens=piece.tokens)
            except UnreachableError:
                # Once the server has said how the answer ended, only counters can be missing.
                if finish_reason is None:
                    raise
        if finish_reason is None and request.cancel.cancelled:
            yield TextChunk("", meter.usage(), "cancelled")
            return
        yield TextChunk("", meter.usage(), self._known(finish_reason))

    def _known(self, finish_reason: str | None) -> FinishReason:
        if finish_reason is None:
            raise UnreachableError(
                f"the answer of {self.url} broke off: see whether the server still runs, and ask again"
            )
        if finish_reason not in _FINISH_REASONS:
            raise EngineError(
                f"{self.url} ended the answer for a reason of its own ({finish_reason}): ask again, or see its log"
            )
        return _FINISH_REASONS[finish_reason]

    def _pieces(self, request: GenerateRequest, served: ServedModel, *, plain: bool) -> Generator[Piece, None, None]:
        """The pieces of the first attempt that the server takes up."""
        if request.fim is not None:
            return self._filled(request, served, plain=plain)
        return self._asked_once(request, self._ask(request, served, plain=plain))

    def _ask(self, request: GenerateRequest, served: ServedModel, *, plain: bool) -> _Ask:
        texts = [(message.content, _first_line(message.content, request)) for message in request.messages]
        if request.prompt is not None:
            texts.append((request.prompt, 1))
        self._refuse_markers(texts, served)
        if request.prompt is not None:
            body = dialect.completion_body(request, served.id, served.kind, prompt=request.prompt, plain=plain)
            return _Ask(_COMPLETIONS, body)
        body = dialect.chat_body(request, served.id, served.kind, send_prediction=self._send_prediction, plain=plain)
        return _Ask(_CHAT, body)

    def _asked_once(self, request: GenerateRequest, ask: _Ask) -> Generator[Piece, None, None]:
        try:
            yield from self._streamed(ask, request)
        except RefusedError as refused:
            error = explained(refused, self._asked(), ask.path)
            is_guess = request.max_new_tokens is None and ask.path == _CHAT and "max_tokens" in ask.body
            if not isinstance(error, ContextOverflowError) or not is_guess:
                raise error from None
        else:
            return
        # The limit was our own guess, and a high one: the answer may fit all the same.
        unlimited = {key: value for key, value in ask.body.items() if key != "max_tokens"}
        try:
            yield from self._streamed(_Ask(ask.path, unlimited), request)
        except RefusedError as refused:
            raise explained(refused, self._asked(), ask.path) from None

    def _filled(self, request: GenerateRequest, served: ServedModel, *, plain: bool) -> Generator[Piece, None, None]:
        """The pieces by the first way of filling in the middle that the server knows; it is remembered."""
        assert request.fim is not None
        # Other servers go on from what is typed, so it is put out for them.
        begun = "" if served.kind == "specedit" else request.fim.typed
        said = ""
        ways = dialect.fim_ways(served.kind, self._fim_markers_of(served.id))
        for way in (self._fim_way,) if self._fim_way else ways:
            ask = self._fim_ask(request, served, way, plain=plain)
            try:
                for piece in self._streamed(ask, request):
                    self._fim_way = way
                    yield replace(piece, text=begun + piece.text) if begun else piece
                    begun = ""
            except RefusedError as refused:
                error = explained(refused, self._asked(), ask.path)
                if refused.status not in _UNSUPPORTED or isinstance(error, ContextOverflowError | UsageError):
                    raise error from None
                said = refused_path(refused, self._asked(), ask.path)
            else:
                return
        markers = "" if self._fim_markers_of(served.id) else ", or name a model whose markers specedit knows"
        raise FimUnsupportedError(
            f"inline completion is off: {said}. Serve a model that can fill in the middle with `specedit serve` or "
            f"llama-server{markers}"
        )

    def _fim_ask(self, request: GenerateRequest, served: ServedModel, way: FimWay, *, plain: bool) -> _Ask:
        fim, markers = request.fim, self._fim_markers_of(served.id)
        assert fim is not None
        if way == "infill":
            # llama-server encodes all these texts plainly, so no marker can come from them.
            return _Ask(_INFILL, dialect.infill_body(request, fim))
        before = fim.prefix if served.kind == "specedit" else fim.prefix + fim.typed
        self._refuse_markers([(before, 1), (fim.suffix, before.count("\n") + 1)], served)
        if way == "suffix":
            body = dialect.completion_body(
                request, served.id, served.kind, prompt=before, suffix=fim.suffix, plain=plain
            )
        else:
            assert markers is not None
            clean = replace(fim, files=without_markers(fim.files, markers_of(served.id, markers)))
            body = dialect.completion_body(request, served.id, served.kind, prompt=dialect.marked(clean, markers))
        return _Ask(_COMPLETIONS, body)

    def _refuse_markers(self, texts: list[tuple[str, int]], served: ServedModel) -> None:
        if served.kind != "specedit":
            refuse_markers(texts, markers_of(served.id, self._fim_markers_of(served.id)))

    def _streamed(self, ask: _Ask, request: GenerateRequest) -> Generator[Piece, None, None]:
        """The pieces of one answer, up to its end.

        Raises:
            RefusedError: there is none.
            EngineError: as `generate`.
        """
        with closing(self._transport.events(ask.path, msgspec.json.encode(ask.body), request.cancel)) as events:
            for event in events:
                piece = piece_of(event, self.url)
                if piece.problem is not None:
                    raise in_stream(piece.problem, self._asked())
                yield replace(piece, step=piece.step if request.trace else None)
                if piece.is_end:
                    return


def _first_line(content: str, request: GenerateRequest) -> int:
    """How to number a message's lines: one that begins as a code block does by the lines of the code in it."""
    opening = request.hints.opening
    return 1 - opening.count("\n") if opening and content.startswith(opening) else 1
