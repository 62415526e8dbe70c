"""Text to token ids and back, exactly: plain text, chat and FIM prompts, and streams of tokens."""

from __future__ import annotations

import codecs
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jinja2.exceptions import TemplateError
from tokenizers import Tokenizer as BackendTokenizer
from transformers import AutoTokenizer

from specedit.engine.api import Fim, FimMarkers, Message
from specedit.engine.gap import begun_at, opened_files
from specedit.engine.healing import SpelledTokens
from specedit.engine.token_cache import TokenCache, TokenIds
from specedit.errors import ModelError, UnsupportedModelError, UsageError

#: Texts that a tokenizer must give back exactly, or it is refused at load.
_HARD_TEXTS = (
    "if x != y : a , b ; f ( ) ; \"it 's\" n't",
    "    indented\n\tby a tab\n\n\n  \t mixed   \n",
    " one leading blank",
    "a\r\nb\rc\x0cd\x0be\x85f\u2028g",
    "caf\u00e9 cafe\u0301 \ufb01 \u212b \U0001f600 \u4e16\u754c \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "<|im_end|> <s> </s> <tool_call> <|fim_prefix|> [INST] <eos>",
    "#!/bin/sh\n# -*- coding: utf-8 -*-\nx=1;;y\\n\0z\ufeff",
    "\u2581a \u2581\u2581 b",
)

#: How sentencepiece vocabularies spell a blank; in a text it stands for itself.
_BLANK_SIGN = "\u2581"

#: Markers of model families, tried in order where the registry names none.
_KNOWN_FIM_MARKERS = (
    FimMarkers("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>"),
    FimMarkers("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    FimMarkers("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    FimMarkers("<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>", "<\uff5cfim\u2581end\uff5c>"),
    FimMarkers("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, and what the text that the model goes on with is to begin with.

    Attributes:
        token_ids: [tokens].
        begun: the beginning, in whichever tokens the model spells it.
        hidden_chars: how much of it is not part of the answer.
    """

    token_ids: TokenIds
    begun: str = ""
    hidden_chars: int = 0


class Tokenizer:
    """A model's tokenizer. Source text is encoded plainly: no special token can come from it.

    Attributes:
        special_ids: all added tokens but those of blanks, which some vocabularies list among them; none is ever
            drafted or made from plain text.
        eos_ids: the end-of-text token that the tokenizer itself names.
        fim_markers: how a FIM prompt is put together, or None where the model has no markers.
    """

    def __init__(self, tokenizer: Any, fim_markers: FimMarkers | None = None) -> None:
        """Wrap a fast tokenizer of transformers.

        Raises:
            UnsupportedModelError: it does not give hard texts back exactly.
        """
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise UnsupportedModelError(
                f"{type(tokenizer).__name__} has no tokenizer.json: specedit needs a fast tokenizer"
            )
        description = json.loads(backend.to_str())
        self._tokenizer = tokenizer
        self._plain = BackendTokenizer.from_str(json.dumps(_plain_description(description)))
        self._added = {token["content"]: int(token["id"]) for token in description["added_tokens"]}
        vocabulary = backend.get_vocab(with_added_tokens=True)
        self._bytes = _token_bytes(vocabulary, self._added, description)
        spelling = (f"<0x{byte:02X}>" for byte in _BLANK_SIGN.encode())
        self._blank_sign_ids = [vocabulary[piece] for piece in spelling if piece in vocabulary]
        self.special_ids = frozenset(token_id for text, token_id in self._added.items() if text.strip())
        self.eos_ids = frozenset(() if tokenizer.eos_token_id is None else (tokenizer.eos_token_id,))
        given = (fim_markers,) if fim_markers else ()
        usable = (self._usable(markers) for markers in (*given, *_KNOWN_FIM_MARKERS))
        self.fim_markers = next((markers for markers in usable if markers), None)
        self._cache = TokenCache(self._encode_all, self._bytes.values())
        self._check_round_trip()

    @property
    def vocab_size(self) -> int:
        """All token ids are below it."""
        return max(self._bytes) + 1

    @classmethod
    def load(cls, path: Path, fim_markers: FimMarkers | None = None) -> Tokenizer:
        """Load the tokenizer that lies beside a model's weights.

        Raises:
            ModelError: there is none, or it can't be read.
            UnsupportedModelError: it does not give hard texts back exactly.
        """
        try:
            tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(f"can't load the tokenizer in {path}: {error}") from error
        return cls(tokenizer, fim_markers)

    def token_id(self, text: str) -> int | None:
        """The id of an added token such as an end marker, or None."""
        return self._added.get(text)

    def encode(self, text: str) -> list[int]:
        """Encode plain text; marker strings in it become ordinary tokens. Lines of a long text are remembered."""
        ids: list[int] = self.text_ids(text).tolist()
        return ids

    def text_ids(self, text: str) -> TokenIds:
        """[tokens] what `encode` gives, as an array: for a long text that is much less work."""
        if not self._blank_sign_ids or _BLANK_SIGN not in text:
            return self._cache.encode(text)
        first, *others = text.split(_BLANK_SIGN)
        pieces = [self._cache.encode(first)]
        for piece in others:
            # In bytes, as the tokenizer itself would take the sign for a blank.
            pieces += [np.array(self._blank_sign_ids, dtype=np.int32), self._cache.encode(piece)]
        return np.concatenate(pieces)

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Encode a chat; what `chat_ids` gives, as a list."""
        ids: list[int] = self.chat_ids(messages).tolist()
        return ids

    def chat_ids(self, messages: Sequence[Message]) -> TokenIds:
        """Encode a chat by the model's own template, up to where the answer begins; thinking is switched off.

        The template's pieces are encoded with their special tokens, the messages plainly. The ids equal the template's
        own unless a message holds marker strings, begins with a newline, or is trimmed by the template.

        Raises:
            UsageError: no message.
            UnsupportedModelError: the model has no chat template, or one that does not show each message once.
        """
        if not messages:
            raise UsageError("a chat needs at least one message")
        if not self._tokenizer.chat_template:
            raise UnsupportedModelError(
                "this model has no chat template: it can complete, but not follow an instruction. Use an instruct model"
            )
        # The placeholder is unpredictable, so that no message can contain it.
        placeholders = [f"specedit{secrets.token_hex(12)}x{index}x" for index in range(len(messages))]
        rendered = self._render(messages, placeholders)
        pieces: list[TokenIds] = []
        for message, placeholder in zip(messages, placeholders, strict=True):
            piece, found, rendered = rendered.partition(placeholder)
            if not found or placeholder in rendered:
                raise UnsupportedModelError(
                    f"the model's chat template does not show each message once and in order (role {message.role})"
                )
            pieces += [self._encode_template(piece), self.text_ids(message.content)]
        return np.concatenate([*pieces, self._encode_template(rendered)])

    def encode_fim(self, fim: Fim) -> Prompt:
        """Encode a prompt for the text between prefix and suffix.

        The answer is begun with the last lines of the prefix, except for its last token or what is typed: how that is
        spelled is left to the model. Other files go before the prefix, each opened by its name on a line: after the
        model's marker for a file (Qwen2.5-Coder technical report, Hui et al., 2024, section 3.2.2), or within the
        prefix where it has none.

        Raises:
            UnsupportedModelError: the model has no FIM markers.
        """
        markers = self.fim_markers
        if markers is None:
            raise UnsupportedModelError("this model has no FIM markers: it can't fill in the middle. Use a code model")
        files = self._file_ids(fim, markers)
        cut = begun_at(fim.prefix)
        written, begun = self._begun(fim.prefix[cut:], fim.typed)
        ids = [
            *self._begin_ids(),
            *(files if markers.file else ()),
            self._added[markers.prefix],
            *(() if markers.file else files),
            *self.encode(fim.prefix[:cut]),
            self._added[markers.suffix],
            *self.encode(fim.suffix),
            self._added[markers.middle],
            *written,
        ]
        return Prompt(np.array(ids, dtype=np.int32), begun, len(begun) - len(fim.typed))

    def encode_prompt(self, text: str) -> list[int]:
        """Encode plain text to go on from, behind the token that the model begins texts with, where it has one.

        Raises:
            UsageError: there is nothing to go on from.
        """
        ids = [*self._begin_ids(), *self.encode(text)]
        if not ids:
            raise UsageError("the prompt is empty: give some text to go on from")
        return ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """The exact text of tokens, never cleaned up; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self.token_bytes(token_id) for token_id in token_ids).decode("utf-8", errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for; none for an id without a token."""
        return self._bytes.get(token_id, b"")

    @cached_property
    def spelled(self) -> SpelledTokens:
        """The tokens that text can be made of; sorted at first use."""
        return SpelledTokens(found for found in self._bytes.items() if found[0] not in self.special_ids)

    def stream(self) -> StreamDecoder:
        """A decoder for one answer."""
        return StreamDecoder(self)

    def _begin_ids(self) -> list[int]:
        begin = list(self._tokenizer("", add_special_tokens=True)["input_ids"])
        return [token_id for token_id in begin if token_id not in self.eos_ids]

    def _begun(self, before: str, typed: str) -> tuple[list[int], str]:
        """The tokens of an answer that begins with these texts, except for the last ones; the text of those."""
        ids, rest = self.encode(before + typed), b""
        least = len(typed.encode()) or 1
        while ids and (len(rest) < least or _is_inside_character(rest)):
            rest = self.token_bytes(ids.pop()) + rest
        return ids, rest.decode()

    def _file_ids(self, fim: Fim, markers: FimMarkers) -> list[int]:
        opening = [self._added[markers.file]] if markers.file else []
        return [token_id for text in opened_files(fim) for token_id in (*opening, *self.encode(text))]

    def _usable(self, markers: FimMarkers) -> FimMarkers | None:
        if not all(marker in self._added for marker in (markers.prefix, markers.suffix, markers.middle)):
            return None
        return markers if markers.file in self._added else replace(markers, file="")

    def _render(self, messages: Sequence[Message], contents: Sequence[str]) -> str:
        chat = [{"role": message.role, "content": text} for message, text in zip(messages, contents, strict=True)]
        arguments: dict[str, Any] = {
            "tokenize": False,
            "add_generation_prompt": True,
            "enable_thinking": False,
        }
        try:
            return str(self._tokenizer.apply_chat_template(chat, **arguments))
        except TemplateError as error:
            if chat[0]["role"] != "system" or len(chat) < 2:
                raise UnsupportedModelError(f"the model's chat template refuses this chat: {error}") from error
        # Some templates know no system role; there the system text goes before the first message of the user.
        system, first, *rest = chat
        merged = [{"role": first["role"], "content": f"{system['content']}\n\n{first['content']}"}, *rest]
        return str(self._tokenizer.apply_chat_template(merged, **arguments))

    def _encode_all(self, pieces: Sequence[str]) -> list[list[int]]:
        return [found.ids for found in self._plain.encode_batch_fast(list(pieces), add_special_tokens=False)]

    def _encode_template(self, piece: str) -> TokenIds:
        ids = self._tokenizer(piece, add_special_tokens=False)["input_ids"] if piece else []
        return np.array(ids, dtype=np.int32)

    def _check_round_trip(self) -> None:
        for text in _HARD_TEXTS:
            ids = self.encode(text)
            if self.decode(ids) != text or not self.special_ids.isdisjoint(ids):
                raise UnsupportedModelError(
                    f"the model's tokenizer does not give text back exactly: {text!r} became {self.decode(ids)!r}"
                )


class StreamDecoder:
    """Turns tokens into text one at a time; never shows a part of a character."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> str:
        """The text that this token completes; empty while a character is unfinished."""
        return self._decoder.decode(self._tokenizer.token_bytes(token_id))

    def flush(self) -> str:
        """U+FFFD for a character that was left unfinished, else nothing."""
        return self._decoder.decode(b"", final=True)


def _is_inside_character(text: bytes) -> bool:
    return 0x80 <= text[0] < 0xC0


def _plain_description(description: dict[str, Any]) -> dict[str, Any]:
    """The tokenizer without what changes plain text: added tokens, unicode normalization, a blank put in front."""
    plain = dict(description, added_tokens=[], post_processor=None)
    plain["normalizer"] = _without_rewriting(description["normalizer"])
    plain["pre_tokenizer"] = _without_prepending(description["pre_tokenizer"])
    return plain


def _without_rewriting(normalizer: dict[str, Any] | None) -> dict[str, Any] | None:
    if normalizer is None or normalizer["type"] in {"NFC", "NFKC", "NFD", "NFKD", "Prepend"}:
        return None
    if normalizer["type"] == "Sequence":
        kept = [_without_rewriting(part) for part in normalizer["normalizers"]]
        return dict(normalizer, normalizers=[part for part in kept if part is not None])
    return normalizer


def _without_prepending(pre_tokenizer: dict[str, Any] | None) -> dict[str, Any] | None:
    if pre_tokenizer is None:
        return None
    if pre_tokenizer["type"] == "Metaspace":
        return dict(pre_tokenizer, prepend_scheme="never")
    if pre_tokenizer["type"] == "ByteLevel":
        return dict(pre_tokenizer, add_prefix_space=False)
    if pre_tokenizer["type"] == "Sequence":
        parts = [_without_prepending(part) for part in pre_tokenizer["pretokenizers"]]
        return dict(pre_tokenizer, pretokenizers=parts)
    return pre_tokenizer


def _token_bytes(vocabulary: dict[str, int], added: dict[str, int], description: dict[str, Any]) -> dict[int, bytes]:
    """Token id -> its bytes, for byte-level vocabularies and for sentencepiece ones with byte fallback."""
    spelling = json.dumps(description["decoder"])
    if "ByteLevel" in spelling:
        to_byte = _byte_level_alphabet()

        def spell(piece: str) -> bytes:
            if all(character in to_byte for character in piece):
                return bytes(to_byte[character] for character in piece)
            return piece.encode()

    elif "ByteFallback" in spelling:

        def spell(piece: str) -> bytes:
            if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
                return bytes([int(piece[3:5], 16)])
            return piece.replace("\u2581", " ").encode()

    else:
        raise UnsupportedModelError("the model's tokenizer is neither byte-level nor has a byte fallback")
    table = {token_id: spell(piece) for piece, token_id in vocabulary.items() if piece not in added}
    return table | {token_id: content.encode() for content, token_id in added.items()}


def _byte_level_alphabet() -> dict[str, int]:
    """The printable character that stands for each byte in a byte-level vocabulary (GPT-2, Radford et al., 2019)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if byte not in printable]
    return alphabet | {chr(256 + offset): byte for offset, byte in enumerate(others)}
