"""Where the worker's models come from: files, and random weights of a real model's shape. Pyodide only."""

from collections.abc import Awaitable, Callable

from pyodide.ffi import to_js

__all__ = ["model_name", "opener"]


def opener(weights, model: dict, file=None) -> Callable[..., Awaitable]:
    """What opens a model anew each time: `await opened(signal)` gives a source of `weights`.

    Args:
        weights: the module weights.js.
        model: as `openSource` takes it, or `shape` and the name of a shape.
        file: the picked file that came beside the message.

    Raises:
        UsageError: there is no such shape.
    """
    if model.get("shape"):
        from pyweb.weights.synthetic import random_file  # a visit that measures nothing does without

        made = random_file(model["shape"])
        recipe = _object({**made.recipe(), "header": made.header})
        return lambda signal=None: weights.randomSource(recipe, _object({"signal": signal}))
    described = _object({key: value for key, value in model.items() if key != "file"})
    if file is not None:
        described.file = file
    return lambda signal=None: weights.openSource(described, _object({"signal": signal}))


def model_name(model: dict) -> str:
    """Under which memory and costs are kept; a shape's is no file's."""
    return f"shape:{model['shape']}" if model.get("shape") else model["name"]


def _object(values: dict):
    from js import Object

    return to_js(values, dict_converter=Object.fromEntries)
