"""`specedit` with a slow model that needs no weights: python -m tests.unit.cli.scripted_specedit SECONDS edit ..."""

import os
import sys
from pathlib import Path

from specedit.cli import engine as engines
from specedit.cli import main
from specedit.models.registry import ModelEntry, ResolvedModel
from tests.fakes import ScriptedEngine, fenced


def _in_capitals(request):
    return fenced(request.prediction.upper())


if __name__ == "__main__":
    engine = ScriptedEngine([_in_capitals], seconds_per_chunk=float(sys.argv.pop(1)), chunk_chars=200)
    engines.find_model = lambda *_, **given: ResolvedModel("scripted", Path(), ModelEntry("scripted", ()))
    engines.load_engine = lambda *_, **given: engine
    os.environ["SPECEDIT_ENGINE"] = "local"
    main()
