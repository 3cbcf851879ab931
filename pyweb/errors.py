"""Typed errors: one class per thing that can go wrong, each with a sentence and a remedy.

The class name is the name a page sees in JavaScript (`error.name`) and the
command line prints (`ErrorName: sentence remedy`).
"""

__all__ = [
    "BrowserError",
    "DeviceLostError",
    "EmptyPageError",
    "GPUOutOfMemoryError",
    "IntegrityError",
    "LimitError",
    "ModelFileError",
    "NetworkError",
    "NoAdapterError",
    "NoWebGPUError",
    "PromptTooLongError",
    "PywebError",
    "QuotaExceededError",
    "SetupError",
    "ShaderError",
    "StoppedError",
    "TemplateError",
    "UnknownModelError",
    "UsageError",
]


class PywebError(Exception):
    """Base of all errors that pyweb raises on purpose.

    Args:
        sentence: what is wrong, one sentence with its full stop.
        remedy: what the person can do; the class's own remedy where omitted.
    """

    remedy = ""

    def __init__(self, sentence: str, remedy: str | None = None):
        super().__init__(sentence)
        self.sentence = sentence
        if remedy is not None:
            self.remedy = remedy

    @property
    def name(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        return f"{self.sentence} {self.remedy}".strip()


class NoWebGPUError(PywebError):
    """The browser or the context has no `navigator.gpu`."""

    remedy = "Use a current Chrome, Edge, Firefox or Safari, and open the page over https or on localhost."


class NoAdapterError(PywebError):
    """WebGPU is there, but no adapter answered."""

    remedy = "Turn on hardware acceleration in the browser's settings and update the graphics driver."


class LimitError(PywebError):
    """A kernel or buffer needs more than the device grants."""

    remedy = "Choose a smaller model or a shorter context."


class ShaderError(PywebError):
    """A kernel could not be composed or compiled."""

    remedy = "Report this with the adapter's name; another browser version may work."


class GPUOutOfMemoryError(PywebError):
    """The GPU has no room for the weights or the cache."""

    remedy = "Close other tabs, choose a smaller model or a shorter context."


class DeviceLostError(PywebError):
    """The GPU device went away."""

    remedy = "Load the model again; reload the page if that fails."


class QuotaExceededError(PywebError):
    """The origin's storage quota is used up."""

    remedy = "Free disk space or clear this site's data; the model still runs without being kept."


class ModelFileError(PywebError):
    """The bytes are not a model file we can run."""

    remedy = "Fetch the file again, or choose another model."


class UnknownModelError(PywebError):
    """A model name, architecture or weight type we don't know."""

    remedy = "Run `pyweb models` for the names that are known."


class IntegrityError(PywebError):
    """Bytes do not have the SHA-256 they should have."""

    remedy = "Fetch the file again."


class NetworkError(PywebError):
    """A download failed or broke off."""

    remedy = (
        "Check the address and the connection, and that the server allows this site to read the file (CORS). "
        "What was received is kept."
    )


class TemplateError(PywebError):
    """The model's chat template failed or is not valid."""

    remedy = "Choose another file of this model."


class PromptTooLongError(PywebError):
    """The prompt does not fit in the context."""

    remedy = "Ask a shorter question, lower the page budget or load the model with a longer context."


class EmptyPageError(PywebError):
    """The page has no text to answer from."""

    remedy = "Wait until the page has loaded, or open a page that has text."


class StoppedError(PywebError):
    """The work was stopped on request."""

    remedy = "Ask or load again."


class SetupError(PywebError):
    """A part of the installation is missing."""

    remedy = "Run `make setup`."


class BrowserError(PywebError):
    """The browser could not be started, or ended."""

    remedy = "Install Chrome or Chromium, or name one with the environment variable CHROME."


class UsageError(PywebError):
    """An argument that makes no sense."""

    remedy = "Correct the argument and try again."
