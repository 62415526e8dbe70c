"""How servers are spoken to: what of OpenAI's API each kind has, what it has beside, and how a request is put to it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from specedit.engine.api import Fim, FimMarkers, GenerateRequest, Sampling
from specedit.engine.gap import closed, opened_files
from specedit.engine.wire import OWNER, Extension

ServerKind = Literal["specedit", "vllm", "llamacpp", "sglang", "other"]
"""What runs at the other end."""

FimWay = Literal["suffix", "infill", "markers"]
"""How a server fills in the middle: OpenAI's `suffix`, llama-server's /infill, or the model's markers in a prompt."""

#: How each kind of server is called where people read it.
TITLES: dict[ServerKind, str] = {
    "specedit": "specedit serve",
    "vllm": "vLLM",
    "llamacpp": "llama-server",
    "sglang": "SGLang",
    "other": "an OpenAI-compatible server",
}

#: What switches the settings off that a server or a model's own files would else add: vLLM and SGLang take defaults
#: from the model, llama-server has its own.
_NEUTRAL: dict[ServerKind, dict[str, Any]] = {
    "vllm": {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0},
    "sglang": {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
    "llamacpp": {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0},
}
_NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}
_ANSWER_SPARE_TOKENS = 256


def kind_of(owned_by: str) -> ServerKind:
    """The kind of a server by what its `/v1/models` says under `owned_by`."""
    match owned_by.lower():
        case owner if owner == OWNER:
            return "specedit"
        case "vllm" | "sglang" | "llamacpp" as kind:
            return kind
        case _:
            return "other"


def fim_ways(kind: ServerKind, markers: FimMarkers | None) -> tuple[FimWay, ...]:
    """The ways of filling in the middle that a server may know, the best first.

    llama-server takes a `suffix` and does nothing with it, so it is never asked that way.
    """
    first: FimWay = "infill" if kind == "llamacpp" else "suffix"
    return (first,) if kind == "specedit" or markers is None else (first, "markers")


def marked(fim: Fim, markers: FimMarkers) -> str:
    """The prompt that asks for a gap: `<prefix>before<suffix>after<middle>`, what is typed counted to what is before.

    Other files go first, each behind the marker for a file; where that is not known they are left out.
    """
    files = "".join(f"{markers.file}{text}" for text in opened_files(fim)) if markers.file else ""
    return f"{files}{markers.prefix}{fim.prefix}{fim.typed}{markers.suffix}{fim.suffix}{markers.middle}"


def chat_body(
    request: GenerateRequest, model: str, kind: ServerKind, *, send_prediction: bool = False, plain: bool = False
) -> dict[str, Any]:
    """The body for `/v1/chat/completions`; `plain` decodes without drafts, which only specedit's server can."""
    body = _common(request, model, kind, plain=plain)
    body["messages"] = [{"role": message.role, "content": message.content} for message in request.messages]
    body["max_tokens"] = answer_limit(request, kind)
    if body["max_tokens"] is None:
        del body["max_tokens"]
    if request.prediction and kind != "specedit" and send_prediction:
        content = f"{request.hints.opening}{request.prediction}{request.hints.closing}"
        body["prediction"] = {"type": "content", "content": content}
    if request.logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": request.logprobs}
    return body if kind in ("specedit", "other") else body | _NO_THINKING


def completion_body(
    request: GenerateRequest,
    model: str,
    kind: ServerKind,
    *,
    prompt: str,
    suffix: str | None = None,
    plain: bool = False,
) -> dict[str, Any]:
    """The body for `/v1/completions`."""
    body = _common(request, model, kind, plain=plain) | {"prompt": prompt}
    limit = answer_limit(request, kind)
    if limit is not None or kind != "specedit":
        # Left out, it would be 16 there.
        body["max_tokens"] = limit
    if suffix is not None:
        body["suffix"] = suffix
    if request.logprobs is not None:
        body["logprobs"] = request.logprobs
    return body


def infill_body(request: GenerateRequest, fim: Fim) -> dict[str, Any]:
    """The body for llama-server's `/infill`."""
    limit = answer_limit(request, "llamacpp")
    body = _sampling(request, "llamacpp") | {
        "input_prefix": fim.prefix + fim.typed,
        "input_suffix": fim.suffix,
        "n_predict": -1 if limit is None else limit,
        "stream": True,
    }
    if fim.files:
        body["input_extra"] = [{"filename": file.name, "text": closed(file)} for file in fim.files]
    return body


def answer_limit(request: GenerateRequest, kind: ServerKind) -> int | None:
    """The most tokens of an answer, as a server has to be told; None tells it nothing.

    Without the model's tokenizer the tokens of a prediction can only be guessed, and are guessed high: two bytes each.
    """
    if request.max_new_tokens == "context":
        return None
    if request.max_new_tokens is not None:
        return request.max_new_tokens
    if kind == "specedit":
        return None
    return len(request.prediction.encode("utf-8", "replace")) * 3 // 4 + _ANSWER_SPARE_TOKENS


def _common(request: GenerateRequest, model: str, kind: ServerKind, *, plain: bool) -> dict[str, Any]:
    body = _sampling(request, kind) | {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if kind == "specedit":
        fim = request.fim or Fim("", "")
        extension = Extension(
            hints=request.hints,
            priority=request.priority,
            limit=_limit(request),
            plain=plain,
            trace=request.trace,
            typed=fim.typed,
            files=fim.files,
            name=fim.name,
        )
        body["specedit"] = msgspec.to_builtins(extension)
        if request.fim is not None:
            # Whoever asks to fill a gap mostly stops before the end, which would tell what it took.
            body["stream_options"]["continuous_usage_stats"] = True
        if request.prediction:
            body["prediction"] = {"type": "content", "content": request.prediction}
    return body


def _limit(request: GenerateRequest) -> Literal["context", "prediction"] | None:
    if request.max_new_tokens is None:
        return "prediction"
    return "context" if request.max_new_tokens == "context" else None


def _sampling(request: GenerateRequest, kind: ServerKind) -> dict[str, Any]:
    """Everything that decides which token is drawn, so that no default of a server does."""
    sampling = request.sampling
    body: dict[str, Any] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "seed": request.seed,
    }
    body |= _NEUTRAL.get(kind, {})
    default = Sampling()
    repetition = "repeat_penalty" if kind == "llamacpp" else "repetition_penalty"
    for name, key in (("top_k", "top_k"), ("min_p", "min_p"), ("repetition_penalty", repetition)):
        if getattr(sampling, name) != getattr(default, name):
            body[key] = getattr(sampling, name)
    if sampling.logit_bias:
        body["logit_bias"] = {str(token): bias for token, bias in sampling.logit_bias.items()}
    if request.stop:
        body["stop"] = list(request.stop)
    return body
