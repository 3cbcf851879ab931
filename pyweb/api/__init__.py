"""What pages and programs use. `pyweb.api.service`, the worker's side, exists in a browser only."""

from pyweb.api.assistant import Answer, Assistant

__all__ = ["Answer", "Assistant"]
