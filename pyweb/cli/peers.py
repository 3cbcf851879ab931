"""The other engines' packages: pinned, fetched on demand for a benchmark, never part of a site or a wheel of pyweb."""

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path

from pyweb.cli import fetching
from pyweb.cli.console import Progress
from pyweb.cli.parts import NpmPackage
from pyweb.errors import UsageError
from pyweb.storage import files, paths

__all__ = ["ENGINES", "PACKAGES", "names", "packages"]

# Each is checked by the npm client against the registry's SHA-512, and here against the digest of when it was tried.
PACKAGES = {
    "wllama": (
        NpmPackage(
            "@wllama/wllama",
            "3.13.0",
            "a9eaac205ff9a1d6fdbea395a48652bd5febc56511a7b66b736d862bf726d2d5",
            (
                ("package/esm/index.js", "wllama/index.js"),
                ("package/esm/wasm/wllama.wasm", "wllama/wllama.wasm"),
                ("package/LICENCE", "wllama/LICENCE.txt"),
            ),
        ),
    ),
    "transformers": (
        NpmPackage(
            "@huggingface/transformers",
            "4.3.2",
            "5414fb47b11ae2a8c10a3aac68f833e6fb6e9bde03e9e612ad7da3ea9e9d2663",
            (
                ("package/dist/transformers.min.js", "transformers/transformers.min.js"),
                ("package/LICENSE", "transformers/LICENSE.txt"),
            ),
        ),
        # The ONNX Runtime that this version of transformers.js depends on; the package carries no licence text.
        NpmPackage(
            "onnxruntime-web",
            "1.31.0-dev.20260914-8d85527a0",
            "0de27582f3e3189dec4a2082513a0af1ea79ae7fd3039bbfe634a526e173cbe0",
            tuple(
                (f"package/dist/{name}", f"transformers/{name}")
                for name in ("ort-wasm-simd-threaded.asyncify.mjs", "ort-wasm-simd-threaded.asyncify.wasm")
            ),
        ),
    ),
    "webllm": (
        NpmPackage(
            "@mlc-ai/web-llm",
            "0.2.86",
            "b104049691e1926c689109831887a3e7b2443df48ecb1e0f1a697e53564b5d4e",
            (
                ("package/lib/index.js", "webllm/index.js"),
                ("package/LICENSE", "webllm/LICENSE.txt"),
            ),
        ),
    ),
}

ENGINES = tuple(PACKAGES)


def names(listed: str) -> list[str]:
    """The engines of a comma list.

    Raises:
        UsageError: one of them isn't known.
    """
    found = list(dict.fromkeys(filter(None, map(str.strip, listed.split(",")))))
    for name in found:
        if name not in PACKAGES:
            raise UsageError(f"There is no peer {name!r}.", f"The peers are {', '.join(ENGINES)}.")
    if not found:
        raise UsageError("No peer is named.", f"The peers are {', '.join(ENGINES)}.")
    return found


def packages(engines: list[str], progress: Progress) -> dict[str, Path]:
    """What `Layout` serves so that the page of the peers finds them: a folder `packages`.

    Raises:
        NetworkError, IntegrityError: a package could not be had.
    """
    wanted = [package for engine in engines for package in PACKAGES[engine]]
    pins = json.dumps([asdict(package) for package in wanted], sort_keys=True)
    folder = paths.cache() / "peers" / hashlib.sha256(pins.encode()).hexdigest()[:10]
    if not folder.is_dir():
        with files.partial_folder(folder) as new:
            for package in wanted:
                progress.update("peers", text=f"{package.name} {package.version}")
                shutil.copytree(_kept(package), new, dirs_exist_ok=True)
    return {"packages": folder}


def _kept(package: NpmPackage) -> Path:
    """The package's files as they came, so that another set of engines doesn't fetch them again."""
    kept = paths.downloads() / f"{package.name.replace('/', '-')}-{package.version}"
    if not kept.is_dir():
        with files.partial_folder(kept) as new:
            fetching.npm_members(package, new)
    return kept
