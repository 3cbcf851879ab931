"""Files beside their brotli twins (`NAME.br`), which web servers can send as they are."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from pyweb.cli import fetching
from pyweb.errors import SetupError

__all__ = ["SUFFIXES", "compressed_sizes", "write_compressed"]

# Archives are compressed already, and many servers would refuse to compress them again.
SUFFIXES = (".js", ".mjs", ".wasm")

# 9 takes four seconds for the whole runtime; 11 would take a minute and save 0.5 MB of 4.7.
_QUALITY = 9

_SCRIPT = """
const { readFileSync, writeFileSync } = require("node:fs");
const { brotliCompressSync, constants } = require("node:zlib");
const { paths, quality, write } = JSON.parse(readFileSync(0, "utf8"));
const sizes = paths.map((path) => {
  const data = readFileSync(path);
  const params = { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_SIZE_HINT]: data.length };
  const packed = brotliCompressSync(data, { params });
  if (write) writeFileSync(`${path}.br`, packed);
  return packed.length;
});
console.log(JSON.stringify(sizes));
"""


def _run(paths: Iterable[Path], write: bool) -> list[int]:
    """Node's own brotli, since Python has none."""
    job = {"paths": list(map(str, paths)), "quality": _QUALITY, "write": write}
    command = [fetching.tool("node"), "-e", _SCRIPT]
    result = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True)
    if result.returncode:
        raise SetupError("Node could not compress the runtime.", "Node 20 or newer is needed.")
    return json.loads(result.stdout)


def write_compressed(paths: Iterable[Path]) -> None:
    """Writes the brotli twin of each file beside it.

    Raises:
        SetupError: node failed.
    """
    _run(paths, write=True)


def compressed_sizes(paths: Iterable[Path]) -> list[int]:
    """Bytes of each file as a web server would send it with brotli.

    Raises:
        SetupError: node failed.
    """
    return _run(paths, write=False)
