"""What a server says instead of an answer, as an error that tells the user what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from specedit.config import user_config_file
from specedit.engine.client.dialect import TITLES, ServerKind
from specedit.engine.client.transport import RefusedError
from specedit.errors import (
    ContextOverflowError,
    EngineError,
    OutOfMemoryError,
    OverloadedError,
    ShuttingDownError,
    SpecEditError,
    UsageError,
)

# vLLM, SGLang and llama-server say it in words of their own.
_OVERFLOW = re.compile(
    r"(context|model) (length|size|window)|maximum (model|context) length|max_model_len|context_length_exceeded"
    r"|exceed_context_size",
    re.IGNORECASE,
)
_SHOWN_CHARS = 400


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom a request went to.

    Attributes:
        url: the server's address.
        kind: what runs there.
        model: what it was asked for; None where that is not yet known.
        models: all that it has.
        has_key: whether a key went along.
    """

    url: str
    kind: ServerKind = "other"
    model: str | None = None
    models: Sequence[str] = ()
    has_key: bool = False


def explained(refused: RefusedError, asked: Asked, path: str) -> SpecEditError:
    """The error that an HTTP answer stands for."""
    problem = _Problem.of(refused.body)
    url, status, said = asked.url, refused.status, problem.message
    if problem.is_known(refused.status):
        return raised(problem, asked)
    match status:
        case 200 | 406:
            return EngineError(f"{url}{path} sent {_form(refused)} where an answer was due: {_not_openai(asked)}")
        case _ if 300 <= status < 400:
            target = refused.headers.get("location", "another address")
            return EngineError(
                f"{url} redirects to {target}, which is not followed, as your text and key would go there. Give that "
                "address if it is the right one"
            )
        case 401 | 403:
            told = f". The server says: {said}" if said else ""
            return EngineError(f"{url} {_wants_key(asked)}{told}")
        case 404 if asked.model is not None and "model" in said.lower():
            return EngineError(f"{url} has no model {asked.model!r}{_quoted(said)}. {listed(asked.models)}")
        case 404 | 405:
            return EngineError(f"{url} has no {path} ({status}): {_not_openai(asked)}")
        case 413:
            return EngineError(f"the request is too large for {url}{_quoted(said)}: edit a smaller part")
        case 429:
            after = refused.headers.get("retry-after", "")
            when = f"in {after} s" if after.isdecimal() else "later"
            return OverloadedError(f"{url} has too much to do (429){_quoted(said)}: ask again {when}")
        case 503:
            return OverloadedError(f"{url} is not ready (503){_quoted(said)}: wait until it is, and ask again")
        case _ if status >= 500:
            shown = _quoted(said) or f" with {_form(refused)}"
            return EngineError(f"{url} failed ({status}){shown}: see what the server's own log says, and ask again")
        case 400 | 422 if asked.kind == "specedit":
            return UsageError(f"{url} refused the request: {said}")
        case _:
            return EngineError(f"{url} refused the request ({status}){_quoted(said) or f' with {_form(refused)}'}")


def in_stream(data: bytes, asked: Asked) -> SpecEditError:
    """The error that an event of a stream stands for."""
    problem = _Problem.of(data)
    if problem.is_known(400):
        return raised(problem, asked)
    return EngineError(f"{asked.url} failed in mid-answer{_quoted(problem.message)}: ask again")


def refused_path(refused: RefusedError, asked: Asked, path: str) -> str:
    """That a server takes no requests there, and what it says."""
    return f"{asked.url}{path} answers {refused.status}{_quoted(_Problem.of(refused.body).message)}"


def listed(models: Sequence[str]) -> str:
    """What to say where a model has to be named."""
    if not models:
        return "It has none: see what the server's own log says"
    return f"Name one that it has with --model or SPECEDIT_MODEL: {', '.join(models)}"


def raised(problem: _Problem, asked: Asked) -> SpecEditError:
    """The error for a problem that has a class of its own."""
    if problem.is_overflow(400):
        return ContextOverflowError(
            f"prompt and answer do not fit the model's context ({asked.url} says: {problem.message}): edit a smaller "
            "range, or lower --max-new-tokens"
        )
    kind = _KNOWN_CODES[problem.code]
    return kind(f"{asked.url} says: {problem.message}")


#: specedit's server says what happened and what to do itself; these are the codes that have errors of their own.
_KNOWN_CODES: dict[str, type[SpecEditError]] = {
    "overloaded": OverloadedError,
    "shutting_down": ShuttingDownError,
    "out_of_memory": OutOfMemoryError,
    "unsupported_by_model": EngineError,
}


@dataclass(frozen=True, slots=True)
class _Problem:
    """What the JSON of an error says, whichever of the usual forms it has."""

    message: str = ""
    code: str = ""
    kind: str = ""

    @classmethod
    def of(cls, body: bytes) -> _Problem:
        try:
            told: Any = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return cls()
        error = told.get("error", told) if isinstance(told, dict) else told
        if not isinstance(error, dict):
            return cls(_shown(error))
        message = error.get("message") or error.get("detail") or ""
        return cls(_shown(message), str(error.get("code") or ""), str(error.get("type") or ""))

    def is_overflow(self, status: int) -> bool:
        if status not in (400, 413, 422, 500):
            return False
        return bool(_OVERFLOW.search(f"{self.code} {self.kind}") or (status != 500 and _OVERFLOW.search(self.message)))

    def is_known(self, status: int) -> bool:
        return self.code in _KNOWN_CODES or self.is_overflow(status)


def _shown(message: object) -> str:
    text = message if isinstance(message, str) else msgspec.json.encode(message).decode()
    text = " ".join(text.split()).rstrip(". ")
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def _quoted(said: str) -> str:
    return f" and says: {said}" if said else ""


def _form(refused: RefusedError) -> str:
    if refused.content_type == "text/html":
        return "a web page"
    return refused.content_type or "something without a content type"


def _not_openai(asked: Asked) -> str:
    if asked.kind != "other":
        return f"it is {TITLES[asked.kind]}, perhaps a version that is too old or was started without it"
    return (
        "it is no OpenAI-compatible server, or not at this address. Give what stands before /v1, such as "
        "http://127.0.0.1:8080"
    )


def _wants_key(asked: Asked) -> str:
    where = f"SPECEDIT_API_KEY or api_key in {user_config_file()}"
    return f"does not accept your key: correct {where}" if asked.has_key else f"wants a key: set {where}"
