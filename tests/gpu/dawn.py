"""The device of the kernel tests: the project's own bridge under Dawn, in one persistent node process."""

import base64
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pyweb import errors
from pyweb.errors import PywebError

__all__ = ["DawnDevice", "FileSource", "dawn_package", "lost"]

ANSWER = 180.0  # seconds for one call; the slowest take some ten

# Why Dawn processes ended that should not have: the software adapter crashed or stopped.
lost: list[str] = []

_SWIFTSHADER = (
    "/usr/lib/chromium/vk_swiftshader_icd.json",
    "/usr/lib64/chromium-browser/vk_swiftshader_icd.json",
)
_ROOT = Path(__file__).resolve().parents[2]


def dawn_package() -> Path:
    """index.js of npm's `webgpu`, installed by `make test`."""
    modules = Path(os.environ.get("PYWEB_NODE_MODULES", _ROOT / "node_modules"))
    return modules / "webgpu" / "index.js"


def _environment() -> dict[str, str]:
    """SwiftShader and the Vulkan loader as Chromium carries them."""
    icd = next((Path(path) for path in _SWIFTSHADER if Path(path).exists()), None)
    if icd is None:
        return dict(os.environ)
    libraries = ":".join(filter(None, [os.environ.get("LD_LIBRARY_PATH"), str(icd.parent)]))
    return os.environ | {"VK_ICD_FILENAMES": str(icd), "LD_LIBRARY_PATH": libraries}


class FileSource:
    """A model file on disk."""

    def __init__(self, device: "DawnDevice", path: Path | str):
        self._device, self.path = device, str(path)
        self.size = device.call("size", self.path)

    async def read(self, offset: int, length: int) -> bytes:
        return base64.b64decode(self._device.call("read", self.path, offset, length))

    def close(self) -> None:
        """Nothing is held open."""


class DawnDevice:
    """`pyweb.device.base.Device` over a pipe; every call waits for its answer."""

    def __init__(self):
        node = os.environ.get("PYWEB_NODE") or shutil.which("node")
        self._process = subprocess.Popen(
            [node, str(Path(__file__).with_name("dawn_worker.mjs")), str(dawn_package())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        described = self.call("describe")
        self.info, self.limits = described["info"], described["limits"]
        self.features = frozenset(described["features"])

    def call(self, method: str, *args: object):
        """Raises what the bridge raises, or RuntimeError where the process ended or had to be ended for its silence."""
        silence = threading.Timer(ANSWER, self._process.kill)
        silence.start()
        try:
            self._process.stdin.write(json.dumps({"method": method, "args": args}) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._answer())
        except (OSError, EOFError, ValueError) as error:  # also an answer that ends in the middle
            self._process.kill()
            lost.append(f"The Dawn process ended in `{method}` with {self._process.wait(10)}.")
            raise RuntimeError(lost[-1]) from error
        finally:
            silence.cancel()
        if "error" in answer:
            known = getattr(errors, answer["error"], PywebError)
            raise known(answer["message"])
        return answer["result"]

    def _answer(self) -> str:
        """The next line of JSON; Dawn prints its own warnings between."""
        for line in self._process.stdout:
            if line.startswith("{"):
                return line
            print(line, end="", file=sys.stderr)
        raise EOFError

    async def buffer(self, size: int, label: str = "") -> int:
        return self.call("buffer", size, label)

    def write(self, buffer: int, offset: int, data: bytes) -> None:
        self.call("write", buffer, offset, base64.b64encode(bytes(data)).decode())

    def destroy(self, buffer: int) -> None:
        self.call("destroy", buffer)

    async def compile(self, shaders: Sequence[tuple[str, str]]) -> list[int]:
        return self.call("compile", shaders)

    def bind(self, pipeline: int, bindings: Sequence[int]) -> int:
        return self.call("bind", pipeline, list(bindings))

    def program(self, commands: Sequence[int]) -> int:
        return self.call("program", list(commands))

    def submit(self, program: int, repeats: int = 1, readbacks: Sequence[int] = ()) -> int:
        return self.call("submit", program, repeats, list(readbacks))

    async def collect(self, ticket: int) -> bytes:
        return base64.b64decode(self.call("collect", ticket))

    async def time(self, program: int, repeats: int = 1) -> float:
        return self.call("time", program, repeats)

    async def load(
        self,
        source: FileSource,
        steps: Sequence[int],
        on_progress: Callable[[int, int], None],
        signal: object = None,
    ) -> None:
        self.call("load", source.path, list(steps))
        on_progress(source.size, source.size)

    def counters(self) -> dict[str, float]:
        return self.call("counters")

    def close(self) -> None:
        with suppress(BrokenPipeError):  # of a process that ended before
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
