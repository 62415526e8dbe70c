"""Tiny models with random weights, and a tokenizer of single bytes to go with them."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer as BackendTokenizer
from tokenizers import decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

from specedit.engine.target import Target

SPECIALS = ["<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
)
#: Single bytes, `SPECIALS` and one more added token.
BYTE_VOCAB = 256 + len(SPECIALS) + 1
EOS_ID = 256 + SPECIALS.index("<|im_end|>")

TINY_LLAMA = LlamaConfig(
    vocab_size=BYTE_VOCAB,
    hidden_size=32,
    intermediate_size=48,
    num_attention_heads=4,
    num_key_value_heads=2,
    num_hidden_layers=2,
    max_position_embeddings=2048,
    bos_token_id=None,
    eos_token_id=EOS_ID,
    pad_token_id=None,
)


def byte_level(**changes):
    """A tokenizer of single bytes, as byte-level models spell them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = BackendTokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    for name, value in changes.items():
        setattr(backend, name, value)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", additional_special_tokens=SPECIALS, chat_template=CHATML
    )
    wrapped.add_tokens(["<tool_call>"])
    return wrapped


def random_model(config, *, dtype=torch.float32, device="cpu", attention=None, scale=6.0):
    """A model with random but fixed weights; fresh ones, times `scale`, as they leave all tokens nearly tied."""
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(scale)
    return model


def random_target(config, dtype=torch.float64, attention=None) -> Target:
    """A target with random weights."""
    return Target(random_model(config, dtype=dtype, attention=attention))


def save_tiny_model(path: Path, config=TINY_LLAMA) -> Path:
    """Write a random model and the tokenizer of single bytes to a directory, as a pulled model lies there."""
    random_model(config).save_pretrained(path)
    byte_level().save_pretrained(path)
    return path
