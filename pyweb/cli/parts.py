"""The pinned parts of the browser runtime: what is fetched, from where, with which SHA-256."""

import hashlib
import json
from dataclasses import asdict, dataclass

from pyweb.cli import trimming

__all__ = [
    "CARRIER",
    "CARRIER_FOLDER",
    "LOCKED_WHEELS",
    "MICROPIP",
    "NPM_PACKAGES",
    "PYODIDE",
    "PYODIDE_CDN",
    "PYPI_WHEELS",
    "NpmPackage",
    "PyPIWheel",
    "version",
]

PYODIDE = "314.0.3"
PYODIDE_CDN = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE}/full/"

# Raised when the same pins are made into other files, so that nobody keeps the old ones.
LAYOUT = 3


@dataclass(frozen=True)
class NpmPackage:
    """A package of the npm registry; `files` maps members of its tarball to names in the runtime folder."""

    name: str
    version: str
    sha256: str
    files: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PyPIWheel:
    """A wheel of the Python Package Index as it appears in the lock.

    Attributes:
        compiled: download the CPython wheel and keep its Python files only (`trimming`), where no pure wheel exists.
    """

    name: str
    version: str
    sha256: str
    imports: tuple[str, ...]
    depends: tuple[str, ...] = ()
    compiled: bool = False


NPM_PACKAGES = (
    NpmPackage(
        "pyodide",
        PYODIDE,
        "d7f7d24f8db486c7eda7280f3b0f7517524c8e43e8b086c6ee6ae8016658b484",
        tuple(
            (f"package/{name}", name)
            for name in (
                "pyodide.mjs",
                "pyodide.asm.mjs",
                "pyodide.asm.wasm",
                "python_stdlib.zip",
                "pyodide-lock.json",
            )
        ),
    ),
    NpmPackage(
        "@mlc-ai/web-tokenizers",
        "0.1.6",
        "478b9b957c1d4896bee8180ebe8fd79bd3f826c9798551bb453e5a0aae01cea7",
        (("package/lib/index.js", "tokenizers.js"),),
    ),
)

# Compiled to wasm for this Pyodide; the SHA-256 stand in Pyodide's own lock.
LOCKED_WHEELS = ("numpy", "lxml")

# Carries Pyodide's wheels inside, for networks that reach the package registry but not the CDN.
CARRIER = PyPIWheel(
    "open-webui", "0.12.4", "02e9caba96234db3fa17a92e56163b3f7f2b8ca8227fa886b85c178d696483f6", ()
)
CARRIER_FOLDER = "open_webui/frontend/pyodide/"

PYPI_WHEELS = (
    PyPIWheel(
        "jinja2",
        "3.1.6",
        "85ece4451f492d0c13c5dd7c13a64681a86afae63a5f347908daf103ce6d2f67",
        ("jinja2",),
        ("markupsafe",),
    ),
    PyPIWheel(
        "markupsafe",
        "3.0.3",
        "d6dd0be5b5b189d31db7cda48b91d7e0a9795f31430b7f271219ab30f1d3ac9d",
        ("markupsafe",),
        compiled=True,
    ),
    PyPIWheel(
        "trafilatura",
        "2.3.1",
        "f86bad2ee36f82884e14dee84c83aae0f0ac0127da5c65764e82f3846716b822",
        ("trafilatura",),
        ("lxml", "justext", "charset-normalizer"),
    ),
    PyPIWheel(
        "justext",
        "3.0.2",
        "62b1c562b15c3c6265e121cc070874243a443bfd53060e869393f09d6b6cc9a7",
        ("justext",),
        ("lxml",),
    ),
    PyPIWheel(
        "charset-normalizer",
        "3.5.3",
        "96e268b0cbda016ac519513294fcd17032264085b600abaac58b93049477e132",
        ("charset_normalizer",),
    ),
)

# For tests only: it installs pyweb where it isn't in the lock, as somebody else's page does.
MICROPIP = PyPIWheel(
    "micropip", "0.11.1", "768de165adb8e66906039d8fec4127a57f522dfdf8e6fbff877a4616941ecfd3", ("micropip",)
)


def version() -> str:
    """Name of the runtime folder: Pyodide's version and a digest of every pin."""
    pins = {
        "layout": LAYOUT,
        "npm": [asdict(part) for part in NPM_PACKAGES],
        "locked": LOCKED_WHEELS,
        "pypi": [asdict(part) for part in PYPI_WHEELS],
        "left out": [trimming.LEFT_OUT, sorted(trimming.KEPT)],
    }
    digest = hashlib.sha256(json.dumps(pins, sort_keys=True).encode()).hexdigest()
    return f"{PYODIDE}-{digest[:10]}"
