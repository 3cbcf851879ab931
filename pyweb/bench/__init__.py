"""Measurements of a loaded model on its device: what `pyweb bench` and the page `bench.html` show."""

from pyweb.bench.measure import PARTS, measure
from pyweb.bench.report import markdown, tables

__all__ = ["PARTS", "markdown", "measure", "tables"]
