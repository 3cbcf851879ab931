"""`pyweb models` and `pyweb fetch`: what is known, what is cached, what a file is."""

import asyncio
import json
from argparse import Namespace

from pyweb.cli import model_files
from pyweb.cli.console import Progress, size_text
from pyweb.cli.runner import local_model
from pyweb.errors import UsageError
from pyweb.storage import registry

__all__ = ["fetch", "models"]


def models(options: Namespace) -> None:
    """Lists the known models, or describes one model file."""
    if options.inspect:
        _inspect(options)
        return
    rows = [model.public() | {"cached": _cached_path(model)} for model in registry.MODELS.values()]
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        state = f"cached at {row['cached']}" if row["cached"] else "not cached"
        print(f"{row['name']}  {size_text(row['size'])}  {row['licence']}  {state}\n    {row['source']}")


def _cached_path(model: registry.Model) -> str | None:
    path = model_files.cached(model)
    return str(path) if path else None


def fetch(options: Namespace) -> None:
    """Gets a known model into the cache and prints its path."""
    progress = Progress()
    path = model_files.fetch(registry.find(options.model), progress)
    progress.finish()
    print(path)


def _inspect(options: Namespace) -> None:
    from pyweb.api.inspecting import inspect
    from pyweb.weights.gguf import read_gguf
    from pyweb.weights.inspect import format_description

    progress = Progress()
    path = local_model(options.inspect, progress)
    progress.finish()
    if path is None:
        raise UsageError("`pyweb models --inspect` reads files, not URLs.", "Download the model first.")
    with path.open("rb") as file:

        async def read(offset: int, length: int) -> bytes:
            file.seek(offset)
            return file.read(length)

        gguf = asyncio.run(read_gguf(read, path.stat().st_size))
    description = inspect(gguf, options.context)
    print(json.dumps(description) if options.json else format_description(description))
