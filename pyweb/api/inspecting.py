"""What a model file holds and whether this version runs it."""

from pyweb.models import ARCHITECTURES
from pyweb.prompt import SPLITTINGS
from pyweb.weights import GGUF
from pyweb.weights.inspect import describe
from pyweb.weights.layout import LAYOUT_OF

__all__ = ["inspect"]


def inspect(gguf: GGUF, context: int = 4096) -> dict:
    """See `pyweb.weights.inspect.describe`.

    Args:
        context: tokens for which the memory is given.
    """
    return describe(gguf, ARCHITECTURES, {*LAYOUT_OF, "F32"}, context, splittings=SPLITTINGS)
