"""Colours of a `.mks` text: by name, as "#rrggbb" or as three numbers."""

from __future__ import annotations

import re

from linkwright.formats.mks.syntax import Fault, Node, Vector, Word, did_you_mean
from linkwright.formats.mks.values import Scope
from linkwright.model.description import colour_text
from linkwright.model.units import NUMBER

COLOURS = {
    "black": "#000000",
    "silver": "#c0c0c0",
    "gray": "#808080",
    "grey": "#808080",
    "white": "#ffffff",
    "maroon": "#800000",
    "red": "#ff0000",
    "purple": "#800080",
    "fuchsia": "#ff00ff",
    "magenta": "#ff00ff",
    "green": "#008000",
    "lime": "#00ff00",
    "olive": "#808000",
    "yellow": "#ffff00",
    "navy": "#000080",
    "blue": "#0000ff",
    "teal": "#008080",
    "aqua": "#00ffff",
    "cyan": "#00ffff",
    "orange": "#ffa500",
    "gold": "#ffd700",
    "brown": "#a52a2a",
    "pink": "#ffc0cb",
    "steelblue": "#4682b4",
    "crimson": "#dc143c",
}


def colour_of(node: Node, scope: Scope) -> str:
    """#rrggbb from a name, a text or three numbers from 0 to 1."""
    if isinstance(node, Vector):
        parts = scope.constants(node, NUMBER, 3)
        if any(not 0.0 <= x <= 1.0 for x in parts):
            raise Fault(node, "red, green and blue are numbers from 0 to 1")
        return colour_text(parts)
    if not isinstance(node, Word):
        raise Fault(node, 'expected a colour: a name, "#rrggbb" or (red, green, blue)')
    text = node.text.lower()
    if node.quoted and re.fullmatch("#[0-9a-f]{6}", text):
        return text
    if text not in COLOURS:
        hint = did_you_mean(text, COLOURS) or '; give a name, "#rrggbb" or (red, green, blue)'
        raise Fault(node, f"there is no colour {node.text!r}{hint}")
    return COLOURS[text]
