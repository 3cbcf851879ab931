"""Contrast of the site's colours (WCAG AA), light and dark."""

import re

import pytest

from pyweb.resources import folder

TEXT = [
    *(("text", "back"), ("text", "raised"), ("muted", "back"), ("muted", "raised"), ("accent", "back")),
    *(("on-accent", "accent"), ("bad", "back"), ("bad", "bad-back")),
]
EDGES = [("edge", "back"), ("accent", "back"), ("accent", "raised")]


def colours() -> tuple[dict, dict]:
    light, dark = (folder("site") / "colours.css").read_text().split("@media")
    return tuple(dict(re.findall(r"--([\w-]+): (#\w+);", part)) for part in (light, dark))


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", colours(), ids=["light", "dark"])
def test_contrast(scheme):
    for pairs, least in ((TEXT, 4.5), (EDGES, 3)):
        for pair in pairs:
            darker, lighter = sorted(luminance(scheme[name]) for name in pair)
            assert (lighter + 0.05) / (darker + 0.05) >= least, pair
