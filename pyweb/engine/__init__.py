"""A model that is loaded and generates."""

from pyweb.engine.engine import DEFAULT_CONTEXT, DEFAULT_WINDOW, MODES, Engine, Generation

__all__ = ["DEFAULT_CONTEXT", "DEFAULT_WINDOW", "MODES", "Engine", "Generation"]
