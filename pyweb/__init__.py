"""pyweb: a language model on the visitor's own GPU, orchestrated from Python in the page."""

__version__ = "0.1.0"
