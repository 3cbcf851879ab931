"""The pyweb wheel as the browser gets it: pre-compiled where node is at hand."""

from pathlib import Path

from pyweb.cli import fetching, runtime
from pyweb.errors import SetupError
from pyweb.kernels.compose import TEMPLATES, compiled_templates
from pyweb.storage.files import partial_folder
from pyweb.storage.wheel import make_wheel

__all__ = ["browser_wheel"]


def browser_wheel() -> Path:
    """Path of the wheel of the package as it is now.

    Set-up compiles it, so that a machine without node starts as fast; a checkout that changed
    is compiled again where node is found, and served as source elsewhere.
    """
    plain = make_wheel({f"{TEMPLATES}/{name}": code.encode() for name, code in compiled_templates().items()})
    compiled = plain.parent / runtime.folder().name / plain.name
    if compiled.is_file():
        return compiled
    if not fetching.installed("node"):
        return plain
    try:
        with partial_folder(compiled.parent) as folder:
            job = {"source": str(plain), "target": str(folder / plain.name), "root": runtime.SITE_PACKAGES}
            # Assertions stay: they are ours.
            runtime.compile_archives(runtime.runtime_folder(), [job | {"optimize": 0}])
    except SetupError:
        return plain
    return compiled
