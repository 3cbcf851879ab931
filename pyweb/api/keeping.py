"""What is kept between replies and visits: the drafter's memory and what steps cost."""

import json
from typing import Protocol

from pyweb import __version__
from pyweb.engine import Calibration
from pyweb.errors import UsageError
from pyweb.speculation.costs import costs_key
from pyweb.speculation.memory import Memory

__all__ = ["SCOPES", "Keeping", "Store"]

SCOPES = ("off", "conversation", "origin")


class Store(Protocol):
    """Text by key, kept between visits: `js_bridge/store.js` in a browser."""

    async def get(self, key: str) -> str | None: ...

    async def put(self, key: str, text: str) -> None: ...

    async def remove(self, prefix: str) -> None: ...


class Keeping:
    """Memory and costs of one model on one adapter.

    Args:
        scope: of the memory: "off" nothing, "conversation" earlier replies of this assistant, "origin" also those of
            earlier visits.
        store: where they are kept; None keeps nothing.
        model, vocabulary, adapter: name the entries.
        kernels: what the costs are costs of, beside the version.

    Raises:
        UsageError: there is no such scope.
    """

    def __init__(
        self, scope: str = "off", store: Store | None = None, model="", vocabulary=0, adapter="", kernels=""
    ):
        if scope not in SCOPES:
            raise UsageError(f"The memory's scope is {', '.join(SCOPES)}, not {scope!r}.")
        self._scope, self._store = scope, store
        self._memory = Memory()
        self.memory_key = f"memory\n{model}\n{vocabulary}"
        self.costs_key = costs_key(adapter, model, f"{__version__} {kernels}")

    async def open(self) -> Calibration | None:
        """Reads what earlier visits left: the memory, and the calibration that is returned."""
        if self._store is None:
            return None
        if self._scope == "origin":
            self._memory = Memory.from_text(await self._store.get(self.memory_key) or "")
        try:
            return Calibration.from_dict(json.loads(await self._store.get(self.costs_key) or ""))
        except (ValueError, TypeError, KeyError, AttributeError):
            return None  # nothing or damaged: it is measured again

    @property
    def tokens(self) -> list[int]:
        """What drafts may be copied from."""
        return self._memory.tokens

    async def add(self, reply: list[int]) -> None:
        """Remembers a reply."""
        if self._scope == "off":
            return
        self._memory.add(reply)
        if self._scope == "origin" and self._store is not None:
            await self._store.put(self.memory_key, self._memory.to_text())

    async def keep_costs(self, calibration: Calibration) -> None:
        """Keeps a calibration for the next visit."""
        if self._store is not None:
            await self._store.put(self.costs_key, json.dumps(calibration.to_dict()))

    async def forget(self) -> None:
        """Erases the memory, here and in the store."""
        self._memory.forget()
        if self._store is not None:
            await self._store.remove("memory\n")
