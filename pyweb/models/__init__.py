"""Model families: one spec file each, by the architecture name that the model file carries."""

from pyweb.errors import UnknownModelError
from pyweb.models.decoder import Decoder, Matrix, Vector
from pyweb.models.llama import llama
from pyweb.models.qwen2 import qwen2
from pyweb.weights.gguf import GGUF

__all__ = ["ARCHITECTURES", "Decoder", "Matrix", "Vector", "decoder_of"]

ARCHITECTURES = {"llama": llama, "qwen2": qwen2}


def decoder_of(gguf: GGUF) -> Decoder:
    """The decoder that a model file describes.

    Raises:
        UnknownModelError: no spec file knows the architecture.
        ModelFileError: a size is missing or makes no sense.
    """
    name = gguf.metadata.get("general.architecture")
    if not isinstance(name, str) or name not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        raise UnknownModelError(
            f"The model's architecture is {repr(name)[:80]}, pyweb runs: {known}.", "Choose another model."
        )
    return ARCHITECTURES[name](gguf)
