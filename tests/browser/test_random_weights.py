"""Random weights in the page: they go the road of a model file, without a download and without a trace."""

import base64

import pytest

from pyweb.weights.synthetic import random_file, write
from tests.browser.model_server import sha256

LOAD = """
const { Assistant } = await import(base + 'js_bridge/client.js');
const seen = [];
window.assistant = await Assistant.load({ context: 512, ...args, onProgress: (p) => seen.push(p) });
return { loaded: assistant.loaded, bytes: seen.filter(({ stage }) => stage === 'model').map(({ done }) => done) };
"""

ASK = """
const text = 'The lamp is lit at dusk.';
const ask = (mode) => assistant.ask('When?', { text, maxTokens: 12, mode, reuse: false });
return [await ask('greedy'), await ask('fixed:4')];
"""

KEPT = """
const root = await navigator.storage.getDirectory();
const models = await root.getDirectoryHandle('models', { create: true });
const names = [];
for await (const name of models.keys()) names.push(name);
return names.filter((name) => /tiny|random|shape/.test(name));
"""

MEMORY = """
const { get } = await import(base + 'js_bridge/store.js');
return (await get(`memory\\n${args.model}\\n512`)) ?? '';
"""

BLOB = """
const { randomBlob } = await import(base + 'js_bridge/random.js');
const { sha256 } = await import(base + 'js_bridge/parts.js');
const header = Uint8Array.from(atob(args.header), (letter) => letter.charCodeAt(0));
const blob = randomBlob({ ...args.recipe, header });
return { size: blob.size, hash: await sha256(new Uint8Array(await blob.arrayBuffer())) };
"""


@pytest.fixture(scope="module")
def loaded(call):
    result = call(LOAD, model={"shape": "tiny"}, memory="origin")
    assert "error" not in result, result
    return result


def test_nothing_is_fetched_and_nothing_kept(call, loaded):
    assert (loaded["loaded"]["fetched"], loaded["loaded"]["not_kept"]) == (0, "")
    assert loaded["bytes"][-1] == random_file("tiny").size
    assert call(KEPT) == []


def test_it_answers_alike_in_every_mode(call, loaded):
    replies = call(ASK)
    assert "error" not in replies, replies
    plain, drafted = replies
    assert plain["reply_ids"] == drafted["reply_ids"] and plain["answer"] == drafted["answer"]
    assert len(plain["reply_ids"]) == 12 and all(260 <= token < 512 for token in plain["reply_ids"])
    assert plain["answer"] == "".join(f"[{token}]" for token in plain["reply_ids"])
    assert len(plain["prompt_ids"]) > len("The lamp is lit at dusk. When?")  # a token for each byte


def test_its_memory_is_its_own(call, loaded):
    call(ASK)
    assert call(MEMORY, model="shape:tiny") and not call(MEMORY, model="tiny")


def test_it_can_be_inspected(call, loaded):
    described = call("return assistant.inspect({ shape: 'qwen2.5-0.5b' })")
    assert described["name"] == "qwen2.5-0.5b with random weights"
    assert described["runs"] and described["parameters"] == 494_032_768 and described["vocabulary"] == 151_936


def test_an_unknown_shape_is_refused(call):
    refused = call(LOAD, model={"shape": "qwen3"})
    assert refused["error"] == "UsageError" and "qwen3" in refused["message"] and "llama-3.1-8b" in refused["remedy"]


def test_a_blob_has_the_bytes_of_the_written_file(call, tmp_path):
    made = random_file("tiny")
    write("tiny", tmp_path / "tiny.gguf")
    content = (tmp_path / "tiny.gguf").read_bytes()
    header = base64.b64encode(made.header).decode()
    blob = call(BLOB, recipe=made.recipe(), header=header)
    assert blob == {"size": len(content), "hash": sha256(content)}
