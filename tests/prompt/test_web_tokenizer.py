"""The tokenizer of the browser, run by node, against the native one."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pyweb.prompt import tokenizer_json

ROOT = Path(__file__).parents[2]
PACKAGE = Path(os.environ.get("PYWEB_NODE_MODULES", ROOT / "node_modules")) / "@mlc-ai/web-tokenizers"

SCRIPT = """
import { readFileSync } from 'node:fs';
const [bridge, library, ...files] = process.argv.slice(1);
const { openTokenizer } = await import(bridge);
const texts = JSON.parse(readFileSync(0, 'utf8'));
const results = [];
for (const file of files) {
  const tokenizer = await openTokenizer(library, readFileSync(file, 'utf8'));
  results.push(texts.map((text) => {
    const ids = tokenizer.encode(text);
    return [[...ids], tokenizer.decode(ids)];
  }));
  tokenizer.close();
}
process.stdout.write(JSON.stringify(results), () => process.exit(0));
"""


@pytest.mark.skipif(not PACKAGE.exists() or not shutil.which("node"), reason="needs node and web-tokenizers")
def test_ids_and_text_equal_the_native_ones(tmp_path, metadata, native, texts):
    texts = [*texts, "<|im_start|>user\nHi<|im_end|>", "a\0b"]
    kinds = [tokenizer_json(metadata, specials) for specials in (True, False)]
    kinds.append(tokenizer_json({**metadata, "tokenizer.ggml.pre": "qwen2"}))
    files = []
    for number, content in enumerate(kinds):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps(content))
    command = ["node", "--input-type=module", "-e", SCRIPT]
    command += [(ROOT / "js_bridge/tokenizer.js").as_uri(), (PACKAGE / "lib/index.js").as_uri(), *files]
    ran = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    for content, results in zip(kinds, json.loads(ran.stdout), strict=True):
        backend = native(content)
        for text, (ids, decoded) in zip(texts, results, strict=True):
            assert ids == backend.encode(text)
            assert decoded == backend.decode(ids)
