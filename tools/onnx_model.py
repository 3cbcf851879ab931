"""Makes the 4-bit ONNX model that `pyweb bench --peers transformers` compares with, for transformers.js and WebGPU.

    pip install torch transformers onnx onnxruntime onnxruntime-genai
    python tools/onnx_model.py --shape qwen2.5-0.5b OUT      # random weights
    python tools/onnx_model.py --folder CHECKPOINT OUT       # a folder in Hugging Face's format

The conversion is onnxruntime-genai's model builder; what is done to its result here makes transformers.js load it.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

BLOCK = 32  # as Q4_0's
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LARGEST = 2**31  # bytes of one file of tensors that a browser takes


def write_random(name: str, folder: Path) -> None:
    """A checkpoint of one of pyweb's shapes: the same sizes, a tokenizer of bytes, weights as torch draws them."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    from pyweb.weights.shapes import shape_of

    shape = shape_of(name)
    config, model = {"qwen2": (Qwen2Config, Qwen2ForCausalLM), "llama": (LlamaConfig, LlamaForCausalLM)}[shape.family]
    vocabulary = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    bytes_only = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_only.decoder = decoders.ByteLevel()
    bytes_only.add_special_tokens(SPECIALS)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_only, bos_token=SPECIALS[0], eos_token=SPECIALS[2])
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float16)
    made = model(
        config(
            vocab_size=shape.vocabulary,
            hidden_size=shape.hidden,
            intermediate_size=shape.feed_forward,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads,
            head_dim=shape.head_size,
            # The builder writes a table of angles for each place: as many as a benchmark needs, not as the model has.
            max_position_embeddings=min(shape.context, 32_768),
            rms_norm_eps=shape.norm_eps,
            tie_word_embeddings=shape.tied,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )
    made.save_pretrained(folder)


def build(checkpoint: Path, folder: Path, f32: bool) -> None:
    """Runs the model builder: 4 bits in blocks of 32, products with 8-bit activations, f16 elsewhere."""
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(checkpoint), "-o", str(folder)]
    options = [f"int4_block_size={BLOCK}", "int4_accuracy_level=4", *(["use_webgpu_fp32=true"] if f32 else [])]
    with tempfile.TemporaryDirectory() as cache:
        command += ["-p", "int4", "-e", "webgpu", "-c", cache, "--extra_options", *options]
        subprocess.run(command, check=True)


def pack(built: Path, checkpoint: Path, target: Path, dtype: str) -> None:
    """Lays out what transformers.js looks for: configuration, tokenizer, `onnx/model_DTYPE.onnx` and its tensors."""
    config = json.loads((checkpoint / "config.json").read_text())
    head_size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    model = onnx.load(built / "model.onnx")
    # transformers.js reads the cache's shape off the graph, where a name would count as 0.
    for value in (*model.graph.input, *model.graph.output):
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param == "kv_cache_dim":
                size.dim_value = head_size
    # ONNX Runtime Web may know an operator with fewer optional inputs: unused ones at the end go.
    for node in model.graph.node:
        while node.input and not node.input[-1]:
            node.input.pop()
    name = f"model_{dtype}.onnx"
    (target / "onnx").mkdir(parents=True, exist_ok=True)
    (target / "onnx" / f"{name}_data").unlink(missing_ok=True)
    onnx.save(model, target / "onnx" / name, save_as_external_data=True, location=f"{name}_data", size_threshold=1024)
    tensors = target / "onnx" / f"{name}_data"
    tensors.chmod(0o644)  # a web server may run as somebody else
    size = tensors.stat().st_size
    if size >= LARGEST:
        sys.exit(f"The tensors take {size / 1e9:.1f} GB, and a browser takes 2.1 GB at most: choose a smaller model.")
    rope = config.get("rope_parameters") or {}
    config |= {"rope_theta": config.get("rope_theta") or rope.get("rope_theta")}
    config["transformers.js_config"] = {"use_external_data_format": True, "kv_cache_dtype": {"q4f16": "float16"}}
    (target / "config.json").write_text(json.dumps(config, indent=1))
    for file in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        if (checkpoint / file).is_file():
            shutil.copyfile(checkpoint / file, target / file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--shape", help="random weights of this shape")
    source.add_argument("--folder", type=Path, help="a checkpoint in Hugging Face's format")
    parser.add_argument("--f32", action="store_true", help="f32 in place of f16, for devices without shader-f16")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        checkpoint = options.folder or Path(work) / "checkpoint"
        if options.shape:
            write_random(options.shape, checkpoint)
        build(checkpoint, Path(work) / "built", options.f32)
        pack(Path(work) / "built", checkpoint, options.out, "q4" if options.f32 else "q4f16")


if __name__ == "__main__":
    main()
