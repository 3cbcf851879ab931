"""What the browser's copies of the archives leave out: patterns of members that nothing in the runtime imports.

The patterns name development tools, servers, terminals, C headers and whole subpackages that neither pyweb nor what it
depends on reaches; the browser tests load and use everything that is left. Licence texts always stay.
"""

import zipfile
from fnmatch import fnmatchcase
from pathlib import Path

from pyweb.page.languages import LANGUAGES

__all__ = ["KEPT", "LEFT_OUT", "STDLIB", "trim"]

STDLIB = "python_stdlib"

# Members that stay although a pattern below names them.
KEPT = frozenset(f"justext/stoplists/{language}.txt" for language in LANGUAGES)

# They are for compilers and type checkers; a RECORD no longer fits its archive.
_NOT_FOR_RUNNING = ("*.a", "*.c", "*.cpp", "*.h", "*.pxd", "*.pxi", "*.pyi", "*.pyx", "*/RECORD", "*/py.typed")

# Patterns by the name of the package; `*` reaches into subfolders.
LEFT_OUT: dict[str, tuple[str, ...]] = {
    STDLIB: (
        # development and interactive use
        *("_pyrepl/*", "unittest/*", "__phello__/*", "__hello__.py", "antigravity.py", "this.py"),
        *("bdb.py", "cProfile.py", "cmd.py", "code.py", "compileall.py", "doctest.py", "modulefinder.py", "pdb.py"),
        *("pickletools.py", "profile.py", "pstats.py", "pyclbr.py", "pydoc.py", "rlcompleter.py", "symtable.py"),
        *("tabnanny.py", "timeit.py", "trace.py", "tracemalloc.py", "zipapp.py", "optparse.py", "pyodide/console.py"),
        *("asyncio/tools.py", "*/__main__.py", "*.ini", "json/tool.py", "*.bat", "*/README*"),
        # processes, terminals and other systems
        *("multiprocessing/*", "concurrent/interpreters/*", "concurrent/futures/[ip]*.py", "ctypes/macholib/*"),
        *("asyncio/windows_*.py", "asyncio/proactor_events.py", "ctypes/_aix.py", "ctypes/wintypes.py"),
        *("getpass.py", "nturl2path.py", "pty.py", "tty.py", "webbrowser.py"),
        # network protocols, for which a browser has no sockets
        *("xmlrpc/*", "wsgiref/*", "ftplib.py", "imaplib.py", "mailbox.py", "netrc.py", "poplib.py", "smtplib.py"),
        *("socketserver.py", "http/cookiejar.py", "http/cookies.py", "http/server.py", "urllib/robotparser.py"),
        *("logging/config.py", "logging/handlers.py"),
        *("email/_header_value_parser.py", "email/contentmanager.py", "email/headerregistry.py", "email/policy.py"),
        *("email/mime/*",),
        # file formats, and Python twins of what is compiled in
        *("sqlite3/*", "xml/dom/*", "xml/etree/*", "tomllib/*", "filecmp.py", "fileinput.py", "plistlib.py"),
        *("shelve.py", "wave.py", "_pydatetime.py", "_pyio.py", "_py_abc.py"),
    ),
    "numpy": (
        *_NOT_FOR_RUNNING,
        *("numpy/random/*", "numpy/fft/*", "numpy/ma/*", "numpy/polynomial/*", "numpy/f2py/*", "numpy/testing/*"),
        *("numpy/ctypeslib/*", "numpy/core/*", "numpy/char/*", "numpy/rec/*", "numpy/strings/*", "numpy/typing/*"),
        *("numpy/_pyinstaller/*", "numpy/doc/*", "numpy/conftest.py", "numpy/matlib.py", "numpy/_configtool.py"),
        *("numpy/lib/recfunctions.py", "numpy/linalg/lapack_lite*.so", "*/entry_points.txt"),
    ),
    "lxml": (
        *_NOT_FOR_RUNNING,
        *("lxml/isoschematron/*", "lxml/objectify*", "lxml/html/_diff*", "lxml/html/diff*", "lxml/html/*5*"),
        *("lxml/html/clean.py", "lxml/html/formfill.py", "lxml/html/soupparser.py", "lxml/html/usedoctest.py"),
        *("lxml/cssselect.py", "lxml/doctestcompare.py", "lxml/usedoctest.py", "lxml/ElementInclude.py"),
        # the compiled ones are there
        *("lxml/_elementpath.py", "lxml/builder.py", "lxml/sax.py"),
    ),
    "jinja2": (*_NOT_FOR_RUNNING, "jinja2/meta.py", "jinja2/nativetypes.py"),
    "markupsafe": (*_NOT_FOR_RUNNING, "*.so"),
    "trafilatura": (
        *_NOT_FOR_RUNNING,
        *("trafilatura/cli*.py", "trafilatura/downloads.py", "trafilatura/feeds.py"),
        *("trafilatura/sitemaps.py", "trafilatura/spider.py", "trafilatura/data/*"),
    ),
    "justext": (*_NOT_FOR_RUNNING, "justext/__main__.py", "justext/stoplists/*"),
    "charset-normalizer": (*_NOT_FOR_RUNNING, "charset_normalizer/cli/*", "*/__main__.py"),
}


def _goes(member: str, patterns: tuple[str, ...]) -> bool:
    return member not in KEPT and any(fnmatchcase(member, pattern) for pattern in patterns)


def trim(name: str, source: Path, target: Path) -> Path:
    """Writes an archive without what `LEFT_OUT` names for it, and gives the path of the copy.

    Args:
        name: of the package, a key of `LEFT_OUT`.
    """
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            if not info.is_dir() and not _goes(info.filename, LEFT_OUT[name]):
                new.writestr(info, old.read(info))
    return target
