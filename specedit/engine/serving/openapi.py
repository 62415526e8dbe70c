"""The OpenAPI document of the server, made from the types that read requests and write answers."""

from __future__ import annotations

from typing import Any

import msgspec

from specedit import __version__
from specedit.engine.serving.openai_answer import (
    ChatCompletion,
    ChatCompletionChunk,
    Completion,
    Health,
    ModelCard,
    ModelList,
)
from specedit.engine.serving.openai_api import MODEL_ALIAS, ChatRequest, CompletionRequest, ErrorBody

_REQUESTS = (ChatRequest, CompletionRequest)
_ANSWERS = (ChatCompletion, ChatCompletionChunk, Completion, ModelCard, ModelList, Health, ErrorBody)

_REFUSALS = {
    "400": "The request is wrong, asks for what is not supported, or doesn't fit the model's context.",
    "401": "The token is missing or wrong.",
    "403": "A web page asks.",
    "404": "There is no such model.",
    "408": "The body did not arrive in time.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "421": "The server doesn't go by the name that was asked for.",
    "429": "Too many requests wait.",
    "500": "The server failed.",
    "503": "The server is shutting down, or the device has no memory left for this request.",
}
_TO_READ = ("401", "403", "421")


def openapi_document(model: str) -> dict[str, Any]:
    """The document, OpenAPI 3.2, of a server of this model; see `/openapi.json`."""
    _, schemas = msgspec.json.schema_components((*_REQUESTS, *_ANSWERS), ref_template="#/components/schemas/{name}")
    for request in _REQUESTS:
        schemas[request.__name__]["properties"]["model"] = {"enum": [model, MODEL_ALIAS]}
        schemas[request.__name__]["allOf"] = _rules(request)
    return {
        "openapi": "3.2.0",
        "info": {"title": "specedit", "version": __version__},
        "security": [{"token": []}],
        "paths": {
            "/v1/chat/completions": {"post": _generation(ChatRequest, ChatCompletion, ChatCompletionChunk)},
            "/v1/completions": {"post": _generation(CompletionRequest, Completion, Completion)},
            "/v1/models": {"get": _reading("The models that are served.", _schema(ModelList))},
            "/v1/models/{name}": {
                "get": {
                    **_reading("One model.", _schema(ModelCard), refusals=("404", *_TO_READ)),
                    "parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}],
                }
            },
            "/health": {"get": _health()},
            "/metrics": {"get": _reading("Counters for Prometheus.", {"type": "string"}, media_type="text/plain")},
            "/openapi.json": {"get": _reading("This document.", {"type": "object"})},
        },
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _rules(request: type[msgspec.Struct]) -> list[dict[str, Any]]:
    """What a field needs of another one."""
    needs = {"stream_options": ("object", "stream")}
    if request is ChatRequest:
        needs["top_logprobs"] = ("integer", "logprobs")
    return [
        {
            "if": {"properties": {field: {"type": kind}}, "required": [field]},
            "then": {"properties": {needed: {"const": True}}, "required": [needed]},
        }
        for field, (kind, needed) in needs.items()
    ] + [{"if": _OF_A_GAP, "then": {"not": {}} if request is ChatRequest else _WITH_SUFFIX}]


#: What in the extension is about a gap to fill.
_OF_A_GAP = {
    "properties": {
        "specedit": {
            "type": "object",
            "anyOf": [
                {"properties": {"files": {"minItems": 1}}, "required": ["files"]},
                {"properties": {"typed": {"minLength": 1}}, "required": ["typed"]},
                {"properties": {"name": {"minLength": 1}}, "required": ["name"]},
            ],
        }
    },
    "required": ["specedit"],
}
_WITH_SUFFIX = {"properties": {"suffix": {"type": "string"}}, "required": ["suffix"]}


def _generation(
    request: type[msgspec.Struct], answer: type[msgspec.Struct], event: type[msgspec.Struct]
) -> dict[str, Any]:
    answers = {
        "application/json": {"schema": _schema(answer)},
        "text/event-stream": {"itemSchema": _event(event)},
    }
    return {
        "summary": (request.__doc__ or "").partition("\n")[0],
        "requestBody": {"required": True, "content": {"application/json": {"schema": _schema(request)}}},
        "responses": {"200": {"description": "The answer.", "content": answers}, **_refusals(*_REFUSALS)},
    }


def _event(kind: type[msgspec.Struct]) -> dict[str, Any]:
    payload = {"anyOf": [_schema(kind), _schema(ErrorBody)]}
    told = {"type": "string", "contentMediaType": "application/json", "contentSchema": payload}
    return {
        "type": "object",
        "properties": {"data": {"if": {"const": "[DONE]"}, "else": told}},
        "required": ["data"],
    }


def _reading(
    what: str, schema: dict[str, Any], *, media_type: str = "application/json", refusals: tuple[str, ...] = _TO_READ
) -> dict[str, Any]:
    answer = {"description": what, "content": {media_type: {"schema": schema}}}
    return {"summary": what, "responses": {"200": answer, **_refusals(*refusals)}}


def _health() -> dict[str, Any]:
    health = _reading("Whether requests are taken.", _schema(Health), refusals=("403", "421"))
    closing = {"description": "The server is shutting down.", "content": health["responses"]["200"]["content"]}
    return {**health, "security": [], "responses": {**health["responses"], "503": closing}}


def _refusals(*statuses: str) -> dict[str, Any]:
    content = {"application/json": {"schema": _schema(ErrorBody)}}
    return {status: {"description": _REFUSALS[status], "content": content} for status in statuses}


def _schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
