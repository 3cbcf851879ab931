"""`pyweb bench --folder`: the site with all that its benchmark needs, to be carried to a machine without network."""

from argparse import Namespace
from pathlib import Path

from pyweb.cli import peers
from pyweb.cli.bench import PAGE, bench_query, prompts_of
from pyweb.cli.bench_page import Subject, address
from pyweb.cli.bench_peers import PAGE as PEERS_PAGE
from pyweb.cli.bench_peers import carried
from pyweb.cli.console import Progress, note
from pyweb.cli.layout import Layout
from pyweb.cli.serve import check_target

__all__ = ["write"]


def write(options: Namespace, subject: Subject, progress: Progress) -> None:
    """Writes the folder and says which addresses of it run by themselves.

    Raises:
        UsageError: the folder holds something else.
        NetworkError, IntegrityError: a package of a peer could not be had.
    """
    target = Path(options.folder)
    check_target(target, options.force)
    named = peers.names(options.peers) if options.peers else []
    extra = prompts_of(options.prompts)
    if named:
        extra |= carried(named, subject, options.onnx, progress)
    Layout(subject.models, extra).write(target)
    progress.finish()
    note(f"The folder is {target}. Each of these pages measures as it is opened; &report=URL gets the JSON by POST:")
    print(address("", PAGE, bench_query(options, subject)))
    for name in ["pyweb", *named] if named else []:
        print(address("", PEERS_PAGE, {"engine": name} | _model(name, subject)))


def _model(name: str, subject: Subject) -> dict[str, str]:
    """A peer's model in the folder; that of WebLLM is elsewhere."""
    if name == "transformers":
        return {"onnx": "onnx"}
    if name == "webllm":
        return {"lib": "URL", "weights": "URL"}
    return {"shape": subject.name} if subject.random else {"model": subject.url}
