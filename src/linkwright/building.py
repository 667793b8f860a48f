"""`lw.Builder`: the description's builder, ending in a `Mechanism`."""

from __future__ import annotations

from linkwright.mechanism import builder
from linkwright.model import Mechanism


class Builder(builder.Builder):
    """A mechanism described call by call; `build()` gives it. Use it in a `with` block."""

    def build(self) -> Mechanism:
        """The mechanism described so far."""
        return Mechanism(self.description())
