"""Marker strings: what a model's template writes between texts, and what no text may hold on its way through one.

A remote template is rendered to one string before it is encoded, so a marker in a file would become the marker itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from specedit.engine.api import ContextFile, FimMarkers
from specedit.errors import MarkerTextError

_CHATML = "<|im_start|> <|im_end|> <|endoftext|>"
_PIPED_FIM = "<|fim_prefix|> <|fim_suffix|> <|fim_middle|> <|fim_pad|> <|repo_name|> <|file_sep|>"
_PLAIN_FIM = "<fim_prefix> <fim_suffix> <fim_middle> <fim_pad> <file_sep> <repo_name> <reponame> <gh_stars>"
_ROLES = "<|system|> <|user|> <|assistant|>"
_BOUNDS = "<s> </s>"
_INST = "[INST] [/INST]"

#: What the names of a family's models hold -> the family's markers, besides those of ChatML.
_FAMILIES = {
    r"deepseek": "<｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <｜User｜> <｜Assistant｜> <|EOT|> "
    "<｜fim▁begin｜> <｜fim▁hole｜> <｜fim▁end｜>",
    r"qwen|qwq": f"{_PIPED_FIM} <tool_call> </tool_call> <|object_ref_start|> <|vision_start|> <|vision_end|>",
    r"smollm": f"{_PLAIN_FIM} <issue_start> <jupyter_start> <empty_output>",
    r"codellama|llama-?2": f"{_BOUNDS} {_INST} <<SYS>> <</SYS>> <PRE> <SUF> <MID> <EOT>",
    r"llama-?[34]": "<|begin_of_text|> <|end_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|> <|eom_id|> "
    "<|python_tag|> <|finetune_right_pad_id|> <|header_start|> <|header_end|> <|eot|> <|eom|>",
    r"mistral|mixtral|codestral|devstral|magistral": f"{_BOUNDS} {_INST} [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [PREFIX] "
    "[SUFFIX] [MIDDLE] [THINK] [/THINK] [TOOL_CALLS] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] "
    "[/TOOL_RESULTS]",
    r"gemma": f"<bos> <eos> <pad> <unk> <start_of_turn> <end_of_turn> <start_of_image> <|file_separator|> {_PIPED_FIM}",
    r"\bphi": f"{_BOUNDS} {_ROLES} <|end|> <|im_sep|> <|fim_prefix|> <|fim_suffix|> <|fim_middle|>",
    r"starcoder|granite": f"<|start_of_role|> <|end_of_role|> <|end_of_text|> {_PLAIN_FIM}",
    r"gpt-oss": "<|start|> <|end|> <|message|> <|channel|> <|constrain|> <|return|> <|call|> <|startoftext|>",
    r"glm": f"[gMASK] <sop> <eop> {_ROLES} <|observation|> <|code_prefix|> <|code_middle|> <|code_suffix|>",
    r"\bcommand|\bc4ai|\baya\b": "<BOS_TOKEN> <EOS_TOKEN> <|START_OF_TURN_TOKEN|> <|END_OF_TURN_TOKEN|> <|USER_TOKEN|> "
    "<|CHATBOT_TOKEN|> <|SYSTEM_TOKEN|>",
}
_SHOWN_CHARS = 60


def markers_of(model_name: str, fim_markers: FimMarkers | None = None) -> tuple[str, ...]:
    """The marker strings of a model: those of the families that its name tells, else those of all known families.

    Those of ChatML are always among them: whoever trains a model further often brings that template along.
    `markers_of("org/Gemma-3-1b")` holds `<start_of_turn>` and `<|im_start|>`, but not `<s>`.

    Args:
        model_name: as the server calls it; only what follows the last `/` counts.
        fim_markers: markers of the model that are known beside.
    """
    name = model_name.lower().rpartition("/")[2]
    families = [markers for pattern, markers in _FAMILIES.items() if re.search(pattern, name)]
    given = (fim_markers.prefix, fim_markers.suffix, fim_markers.middle, fim_markers.file) if fim_markers else ()
    known = (*" ".join([_CHATML, *(families or _FAMILIES.values())]).split(), *filter(None, given))
    return tuple(dict.fromkeys(known))


def refuse_markers(texts: Iterable[tuple[str, int]], markers: Collection[str]) -> None:
    """Make sure that no text holds a marker.

    Args:
        texts: what goes into a prompt, each with how its first line is numbered in the message.
        markers: strings that must not be in them.

    Raises:
        MarkerTextError: one does; names the marker and its line.
    """
    pattern = _any_of(markers)
    for text, first_line in texts:
        if match := pattern.search(text):
            line = text.count("\n", 0, match.start()) + first_line
            raise MarkerTextError(
                f"line {line} ({_around(text, match)}) holds {match[0]}, which the model's own template uses: through "
                "this server it would not stay text. Have `specedit serve` or --engine local run the model, or take "
                "the marker out of the text"
            )


def without_markers(files: Iterable[ContextFile], markers: Collection[str]) -> tuple[ContextFile, ...]:
    """The files that hold no marker, neither in their names nor in their texts."""
    pattern = _any_of(markers)
    return tuple(file for file in files if not pattern.search(file.name) and not pattern.search(file.text))


def _any_of(markers: Collection[str]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(marker) for marker in sorted(markers, key=len, reverse=True)))


def _around(text: str, match: re.Match[str]) -> str:
    start = max(text.rfind("\n", 0, match.start()) + 1, match.start() - _SHOWN_CHARS // 2)
    end = text.find("\n", match.end())
    end = min(len(text) if end < 0 else end, match.end() + _SHOWN_CHARS // 2)
    return repr(text[start:end].strip())
