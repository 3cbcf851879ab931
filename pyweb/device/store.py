"""What is kept between visits, through `js_bridge/store.js`."""

from pyodide.ffi import JsException

from pyweb.device.browser import typed

__all__ = ["BrowserStore"]


class BrowserStore:
    """Text by key; a browser that keeps nothing (a private window) gives nothing back."""

    def __init__(self, js):
        self._js = js

    async def get(self, key: str) -> str | None:
        try:
            return await self._js.get(key)
        except JsException:
            return None

    async def put(self, key: str, text: str) -> None:
        try:
            await self._js.put(key, text)
        except JsException as error:
            print(f"Nothing is kept for the next visit ({error.name}).")

    async def remove(self, prefix: str) -> None:
        try:
            await self._js.remove(prefix)
        except JsException as error:
            raise typed(error) from None
