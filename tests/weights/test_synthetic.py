"""Random weights of real models' shapes: the file is a right GGUF, and the same from Python and from JavaScript."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import gguf as reference
import numpy as np
import pytest

from pyweb.errors import UsageError
from pyweb.models import decoder_of
from pyweb.weights import parse_gguf
from pyweb.weights.shapes import SHAPES, Shape
from pyweb.weights.synthetic import ALIGNMENT, header, random_file, write

# Of the models' cards and their `model.safetensors.index.json`.
PARAMETERS = {
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "llama-3.2-1b": 1_235_814_400,
    "qwen2.5-3b": 3_085_938_688,
    "llama-3.2-3b": 3_212_749_824,
    "qwen2.5-7b": 7_615_616_512,
    "llama-3.1-8b": 8_030_261_248,
}

# Larger than a part of 16 MiB, and than the pattern, which repeats inside of a matrix.
WIDE = Shape("llama", 1, 1024, 8, 4, 128, 512, 40_000, True, 4096, 1e4, 1e-5)


@pytest.fixture
def shapes(monkeypatch):
    monkeypatch.setitem(SHAPES, "wide", WIDE)


@pytest.fixture
def written(shapes, tmp_path):
    """Writes a shape's file: its path."""

    def make(name):
        path = tmp_path / f"{name}.gguf"
        write(name, path)
        return path

    return make


def test_parameters_are_those_of_the_published_models():
    assert {name: shape.parameters for name, shape in SHAPES.items() if name != "tiny"} == PARAMETERS


@pytest.mark.parametrize("name", SHAPES)
def test_a_header_describes_its_shape(name):
    made, shape = random_file(name), SHAPES[name]
    gguf = parse_gguf(made.header, made.size)
    decoder = decoder_of(gguf)
    sizes = ("layers", "hidden", "heads", "kv_heads", "head_size", "feed_forward", "vocabulary", "context")
    for field in (*sizes, "rope_base"):
        assert getattr(decoder, field) == getattr(shape, field)
    assert decoder.norm_eps == pytest.approx(shape.norm_eps)
    assert (decoder.head.sources == decoder.embedding.sources) == shape.tied
    assert ("qkv_bias" in decoder.vectors[0]) == (decoder.architecture == "qwen2")
    assert len(set(gguf.metadata["tokenizer.ggml.tokens"])) == shape.vocabulary
    assert header(name) == made.header and len(made.header) % ALIGNMENT == 0
    tensors = sorted(gguf.tensors.values(), key=lambda tensor: tensor.offset)
    filled = [(t.offset + t.nbytes, t.kind) for t in tensors if "bias" not in t.name]
    kinds = {"blocks": "Q4_0", "ones": "F32"}
    assert [(fill.offset + fill.length, kinds[fill.pattern]) for fill in made.fills] == filled
    whole = {fill.length for fill in made.fills[:-1]}
    assert whole == {t.nbytes for t in tensors if t.name != "output.weight" and "bias" not in t.name}


def test_the_reference_reader_takes_a_whole_model(tmp_path):
    """Without its data: the file has a hole."""
    name = "llama-3.1-8b"
    made, path = random_file(name), tmp_path / "model.gguf"
    with path.open("wb") as file:
        file.write(made.header)
        file.truncate(made.size)
    reader = reference.GGUFReader(path)
    shapes = {tensor.name: tuple(tensor.shape.tolist()[::-1]) for tensor in reader.tensors}
    assert shapes == dict(SHAPES[name].tensors())
    last = reader.tensors[-1]
    assert last.data_offset + int(last.n_bytes) <= made.size < last.data_offset + int(last.n_bytes) + ALIGNMENT


@pytest.mark.parametrize("name", ["tiny", "wide"])
def test_values(name, written):
    reader = reference.GGUFReader(written(name))
    assert reader.fields["general.architecture"].contents() == SHAPES[name].family
    for tensor in reader.tensors:
        values = reference.quants.dequantize(tensor.data, tensor.tensor_type)
        if tensor.name.endswith("norm.weight"):
            assert (values == 1).all()
        elif tensor.name.endswith("bias"):
            assert (values == 0).all()
        else:
            assert tensor.tensor_type == reference.GGMLQuantizationType.Q4_0
            if tensor.name == "output.weight":  # bytes and special tokens are never the likeliest
                assert (values[:260] == 0).all()
                values, tensor = values[260:], tensor._replace(data=tensor.data[260:])
            assert abs(values.mean()) < 0.06 * values.std() and 0.015 < values.std() < 0.02
            assert len({row.tobytes() for row in tensor.data}) == len(values)


def test_tensors_differ(written):
    """They begin at other places of the pattern."""
    tensors = reference.GGUFReader(written("tiny")).tensors
    starts = [tensor.data.tobytes()[:144] for tensor in tensors if tensor.name.endswith(("_q.weight", "gate.weight"))]
    assert len(set(starts)) == len(starts) == 2 * SHAPES["tiny"].layers


def test_an_unknown_shape():
    with pytest.raises(UsageError, match="qwen3") as caught:
        header("qwen3")
    assert "qwen2.5-0.5b, " in caught.value.remedy
    with pytest.raises(UsageError):
        header(["tiny"])


def test_nothing_is_left_where_writing_breaks_off(tmp_path, monkeypatch):
    monkeypatch.setattr("pyweb.weights.synthetic._blocks", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write("tiny", tmp_path / "model.gguf")
    assert not list(tmp_path.iterdir())


RANDOM = Path(__file__).parents[2] / "js_bridge" / "random.js"

SCRIPT = """
import { readFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
const [module, folder] = process.argv.slice(1);
const { randomSource, randomBlob } = await import(module);
const recipe = JSON.parse(readFileSync(`${folder}/recipe.json`, 'utf8'));
recipe.header = new Uint8Array(readFileSync(`${folder}/header`));
const sha256 = (pieces) => {
  const hash = createHash('sha256');
  for (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
};
const seen = [];
const source = randomSource(recipe, { onProgress: (done) => seen.push(done) });
const parts = [];
for (let index = 0; index < source.parts; index++) parts.push(await source.part(index));
const odd = [];
for (let at = 0, length = 1; at < source.size; at += length, length = (length * 7 + 1) % 4000001) {
  odd.push(await source.read(at, length));
}
const blob = new Uint8Array(await randomBlob(recipe).arrayBuffer());
const stopped = randomSource(recipe, { signal: AbortSignal.abort() }).part(0).catch((error) => error.name);
process.stdout.write(JSON.stringify({
  hashes: [sha256(parts), sha256(odd), sha256([blob])],
  ranges: odd.length,
  state: [source.fetched, source.notKept, source.size, seen.at(-1)],
  beyond: (await source.read(source.size - 3, 100)).length,
  stopped: await stopped,
}));
"""


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
@pytest.mark.parametrize("name", ["tiny", "wide"])
def test_javascript_gives_the_same_file_by_any_ranges(name, written, tmp_path):
    made = random_file(name)
    (tmp_path / "recipe.json").write_text(json.dumps(made.recipe()))
    (tmp_path / "header").write_bytes(made.header)
    command = ["node", "--input-type=module", "-e", SCRIPT, RANDOM.as_uri(), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    content = written(name).read_bytes()
    assert result["hashes"] == [hashlib.sha256(content).hexdigest()] * 3
    assert result["state"] == [0, "", len(content), len(content)]
    assert result["ranges"] > 5 and result["beyond"] == 3 and result["stopped"] == "StoppedError"


def test_the_pattern_repeats_where_it_should(written):
    """Seen from outside: block n of the pattern is block n + 152,077 of a large matrix, and no earlier one."""
    tensor = reference.GGUFReader(written("wide")).tensors[0]
    blocks = np.frombuffer(tensor.data.tobytes(), np.uint8).reshape(-1, 18)
    assert len(blocks) > 2 * 152_077
    assert (blocks[:1000] == blocks[152_077:153_077]).all()
    assert len(np.unique(blocks[:152_077], axis=0)) == 152_077
