"""Where things are kept: the model registry, and on CPython the caches and the wheel for the browser."""
