"""Requests made up from the server's own OpenAPI document: those it allows, and those it forbids."""

from __future__ import annotations

import os

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.config import SchemathesisConfig

from specedit.engine.server import ServedModel, create_app
from tests.unit.engine.scripted_answers import ScriptedAnswers
from tests.unit.engine.serving.loopback import HEADERS, TOKEN

MODEL = ServedModel(name="org/tiny", context_tokens=2048, created=1_700_000_000)

#: More find more; `make test` has to end.
EXAMPLES = int(os.environ.get("SPECEDIT_TEST_EXAMPLES", "60"))

CONFIG = {"generation": {"mode": "all"}, "headers": HEADERS}


APP = create_app(ScriptedAnswers(), model=MODEL, token=TOKEN, allowed_hosts=("testserver",))
DOCUMENT = schemathesis.openapi.from_asgi(
    "/openapi.json", APP, config=SchemathesisConfig.from_dict(CONFIG), headers=HEADERS
)


@DOCUMENT.hook
def map_body(context, body):
    """Whole numbers without a fraction: `1.0` is an integer for JSON Schema, and none for OpenAI."""
    return _whole(body)


def _whole(value):
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_whole(item) for item in value]
        case dict():
            return {key: _whole(item) for key, item in value.items()}
        case _:
            return value


@DOCUMENT.parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_made_up_requests(case):
    """No fault of the server, every answer as documented, what is allowed is taken, what is forbidden is refused."""
    case.call_and_validate()
