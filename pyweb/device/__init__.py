"""The seam between Python and a GPU."""

from pyweb.device.base import Device, Source

__all__ = ["Device", "Source"]
