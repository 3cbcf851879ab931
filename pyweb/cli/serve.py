"""`pyweb serve` and `pyweb site`: the same site, from a local server or as a folder."""

from argparse import Namespace
from pathlib import Path

from pyweb.cli.console import Progress, note
from pyweb.cli.layout import Layout
from pyweb.cli.runner import local_model
from pyweb.cli.server import LocalServer
from pyweb.cli.sizes import first_visit, table
from pyweb.errors import UsageError
from pyweb.storage.registry import DEFAULT

__all__ = ["check_target", "serve", "site"]


def _layout(names: list[str]) -> Layout:
    """The site with the local models of these names."""
    progress = Progress()
    found = [local_model(name, progress) for name in names]
    progress.finish()
    return Layout({path.name: path for path in found if path})


def serve(options: Namespace) -> None:
    """Serves the site on this machine until it is interrupted."""
    layout = _layout(options.model or [DEFAULT])
    with LocalServer(layout.resolve, options.port) as server:
        if server.port != options.port:
            note(f"Port {options.port} is taken.")
        note(f"Open {server.url} in a browser with WebGPU; Ctrl-C ends.")
        server.wait()


def _holds_something_else(folder: Path) -> bool:
    """Whether a folder is neither empty nor an earlier site."""
    earlier = (folder / "js_bridge" / "client.js").is_file() and (folder / "runtime").is_dir()
    return folder.is_dir() and not earlier and any(folder.iterdir())


def check_target(folder: Path, force: bool) -> None:
    """Raises UsageError where a site can't be written into a folder, or would mix with files that are none of it."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder.")
    if not force and _holds_something_else(folder):
        raise UsageError(f"The folder {folder} holds other files.", "Choose an empty folder, or add --force.")


def site(options: Namespace) -> None:
    """Writes the site as a folder of static files."""
    target = Path(options.out)
    check_target(target, options.force)
    _layout([] if options.no_model else options.model or [DEFAULT]).write(target)
    print(table(first_visit()))
    note(f"The site is in {target}: any web server can serve it.")
