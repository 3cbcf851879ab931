"""Perplexity of a Llama GGUF in PyTorch: what `pyweb perplexity` is measured against.

    pip install '.[reference,test]'
    python tests/reference/perplexity.py MODEL.gguf TEXT --tokens 256

Weights are dequantized to float32; activations are rounded to 8 bits per block of 32 before every linear layer, head
included, unless `--exact` is given. The file's first N tokens are one sequence, without special tokens; the result is
exp of the mean negative log-likelihood of tokens 2 to N.
"""

import argparse
import json
from contextlib import nullcontext
from pathlib import Path

import tokenizers
import torch
from torch_llama import load, rounded_activations

from pyweb.prompt import tokenizer_json
from pyweb.weights import parse_gguf

_HEADER = 16 * 1024 * 1024  # metadata and tensor table of any model here


def encode(model: Path, text: str) -> list[int]:
    """Token ids by the vocabulary of the model file, with no special tokens."""
    with model.open("rb") as file:
        metadata = parse_gguf(file.read(_HEADER)).metadata
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json(metadata, specials=False)))
    return tokenizer.encode(text, add_special_tokens=False).ids


@torch.inference_mode()
def perplexity(model: Path, ids: list[int], exact: bool) -> float:
    """exp of the mean negative log-likelihood of all ids but the first."""
    network = load(str(model))
    sequence = torch.tensor(ids)
    with nullcontext() if exact else rounded_activations(network):
        logits = network(sequence[None, :-1]).logits[0].double()
    return torch.nn.functional.cross_entropy(logits, sequence[1:]).exp().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--exact", action="store_true", help="leave the activations in float32")
    options = parser.parse_args()
    ids = encode(options.model, options.text.read_text(encoding="utf-8"))[: options.tokens]
    if len(ids) < options.tokens:
        parser.error(f"{options.text} has only {len(ids)} tokens")
    print(f"{perplexity(options.model, ids, options.exact):.4f}")


if __name__ == "__main__":
    main()
