"""A model that is loaded and generates."""

from pyweb.engine.calibration import Calibration
from pyweb.engine.decode import Generation
from pyweb.engine.engine import DEFAULT_CONTEXT, Engine
from pyweb.engine.pacing import Pacer
from pyweb.plan.sampling import Sampling

__all__ = ["DEFAULT_CONTEXT", "Calibration", "Engine", "Generation", "Pacer", "Sampling"]
