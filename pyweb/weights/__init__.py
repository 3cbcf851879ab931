"""Model files and the layouts that the kernels read."""

from pyweb.weights.gguf import GGUF, TensorInfo, parse_gguf, read_gguf
from pyweb.weights.layout import LAYOUT_OF, Layout, common_layout, layout_of

__all__ = ["GGUF", "LAYOUT_OF", "Layout", "TensorInfo", "common_layout", "layout_of", "parse_gguf", "read_gguf"]
