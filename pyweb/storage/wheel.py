"""The pyweb wheel for the browser, built from a checkout or an installed wheel without any build tool.

It is served to our own worker and can be installed by micropip into any Pyodide.
"""

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pyweb
from pyweb import resources
from pyweb.storage import files, paths

__all__ = ["make_wheel", "wheel_members"]

# The browser has no use for them: they start browsers and servers, or are added from where they are.
LEFT_OUT = ("cli", "_data", "__pycache__")

# Of `resources.FOLDERS`; the site is served beside the wheel.
FOLDERS = {"shaders": "*", "js_bridge": "*.js"}

# Of pyproject.toml those that hold in Pyodide, whose distribution has them; micropip reads this.
REQUIRES = ("jinja2>=3.1.6,<4", "lxml>=5.3,<7", "numpy>=1.26,<3")

_EPOCH = (1980, 1, 1, 0, 0, 0)


def wheel_members() -> dict[str, bytes]:
    """The wheel's files by name, without its metadata: the package's Python files, the shaders and the bridge."""
    package = Path(pyweb.__file__).parent
    members = {}
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if not set(inside.parts) & set(LEFT_OUT) and inside.name != "__main__.py":
            members[f"pyweb/{inside.as_posix()}"] = path.read_bytes()
    for name, pattern in FOLDERS.items():
        folder = resources.folder(name)
        for path in sorted(folder.rglob(pattern)):
            if path.is_file() and not path.name.startswith("."):
                members[f"pyweb/_data/{name}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    return members


def make_wheel(more: Mapping[str, bytes] = MappingProxyType({})) -> Path:
    """Path of the wheel of the package as it is now, with `more` files below `pyweb/_data`; built again when any file
    changed."""
    name = f"pyweb-{pyweb.__version__}"
    added = {f"pyweb/_data/{path}": data for path, data in more.items()}
    content = _zip(_with_metadata(name, wheel_members() | added))
    digest = hashlib.sha256(content).hexdigest()
    target = paths.wheels() / digest[:16] / f"{name}-py3-none-any.whl"
    if not target.is_file():
        with files.whole_file(target) as file:
            file.write(content)
    return target


def _with_metadata(name: str, members: dict[str, bytes]) -> dict[str, bytes]:
    info = f"{name}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: pyweb\nVersion: {pyweb.__version__}\nRequires-Python: >=3.11\n"
    metadata += "".join(f"Requires-Dist: {requirement}\n" for requirement in REQUIRES)
    wheel = "Wheel-Version: 1.0\nGenerator: pyweb\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    members = members | {f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": wheel.encode()}
    rows = [f"{path},sha256={_record_digest(data)},{len(data)}\n" for path, data in members.items()]
    record = f"{info}/RECORD"
    return members | {record: "".join([*rows, f"{record},,\n"]).encode()}


def _record_digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _zip(members: dict[str, bytes]) -> bytes:
    """The same members give the same bytes, so that the digest names the content."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return target.getvalue()
