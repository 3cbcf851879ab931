"""The web page as material for a model: extraction into typed blocks, and their choice for a question."""

from pyweb.page.blocks import Block, Page
from pyweb.page.extraction import extract
from pyweb.page.selection import select

__all__ = ["Block", "Page", "extract", "select"]
