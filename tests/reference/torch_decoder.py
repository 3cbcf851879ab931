"""The reference: transformers' Llama or Qwen2 with a GGUF's weights dequantized to float32.

Needs `pip install '.[reference]'`. Weights are read and dequantized by the `gguf` package, not by pyweb.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, Qwen2Config, Qwen2ForCausalLM
from transformers.models.llama import modeling_llama
from transformers.models.qwen2 import modeling_qwen2

__all__ = ["load", "rounded_activations", "rounded_kv"]

_FAMILIES = {"llama": (LlamaConfig, LlamaForCausalLM), "qwen2": (Qwen2Config, Qwen2ForCausalLM)}
_PARTS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
_WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def _name(tensor: str) -> str:
    if not tensor.startswith("blk."):
        return f"{_WHOLE[tensor.removesuffix('.weight')]}.weight"
    _, layer, part, ending = tensor.split(".")
    return f"model.layers.{layer}.{_PARTS[part]}.{ending}"


def _halves(rows: np.ndarray, heads: int) -> np.ndarray:
    """Undoes GGUF's order of a Llama's rows of q and k: RoPE's pairs are adjacent there, and half a head apart here."""
    return rows.reshape(heads, -1, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def load(path: str) -> PreTrainedModel:
    """A GGUF of architecture `llama` or `qwen2` as a float32 torch model, in evaluation mode."""
    reader = gguf.GGUFReader(path)
    family = reader.fields["general.architecture"].contents()
    make_config, make_model = _FAMILIES[family]
    weights = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type) for tensor in reader.tensors}

    def value(key: str, default: object = None):
        field = reader.fields.get(f"{family}.{key}")
        return field.contents() if field else default

    heads, hidden = value("attention.head_count"), value("embedding_length")
    kv_heads = value("attention.head_count_kv", heads)
    config = make_config(
        vocab_size=len(weights["token_embd.weight"]),
        hidden_size=hidden,
        intermediate_size=value("feed_forward_length"),
        num_hidden_layers=value("block_count"),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=value("context_length"),
        rms_norm_eps=value("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": value("rope.freq_base", 10000.0)},
        tie_word_embeddings="output.weight" not in weights,
        attn_implementation="eager",
    )
    config.head_dim = value("attention.key_length", hidden // heads)
    for name, rows in weights.items():
        if family == "llama" and name.endswith(("attn_q.weight", "attn_k.weight")):
            weights[name] = _halves(rows, heads if "attn_q" in name else kv_heads)
    state = {_name(name): torch.from_numpy(np.array(rows, np.float32)) for name, rows in weights.items()}
    model = make_model(config).float().eval()
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state)
    return model


def _rounded(x: torch.Tensor) -> torch.Tensor:
    """8 bits per block of 32: scale = largest magnitude / 127, codes rounded half to even."""
    blocks = x.unflatten(-1, (-1, 32))
    scale = blocks.abs().amax(-1, keepdim=True) / 127
    codes = torch.round(blocks / torch.where(scale == 0, 1.0, scale))
    return (codes * scale).flatten(-2)


@contextmanager
def rounded_activations(model: PreTrainedModel) -> Iterator[None]:
    """Rounds the input of every linear layer, the head's included, as the kernels do."""
    layers = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    hooks = [layer.register_forward_pre_hook(lambda _, inputs: (_rounded(inputs[0]),)) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def rounded_kv() -> Iterator[None]:
    """Rounds keys (after RoPE) and values to f16, as a KV cache of that kind does."""
    modules = (modeling_llama, modeling_qwen2)
    exact = [module.eager_attention_forward for module in modules]

    def attention(module, query, key, value, *args, **options):
        return exact[0](module, query, key.half().float(), value.half().float(), *args, **options)

    for module in modules:
        module.eager_attention_forward = attention
    try:
        yield
    finally:
        for module, function in zip(modules, exact, strict=True):
            module.eager_attention_forward = function
