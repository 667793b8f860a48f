"""What makes a C export an Arduino library: its properties, and a sketch that tests it on the board."""

from __future__ import annotations

from linkwright.exports.subject import Subject, plain
from linkwright.kernels.c.package import PackageText

_SKETCH = """// Runs {name} on its test vector: prints the worst error and the time of a call.
#include <{name}.h>

#include "vectors.h"

void setup() {{
  Serial.begin(115200);
}}

void loop() {{
  const unsigned long start = micros();
  const double worst = {name}_worst();
  const unsigned long spent = micros() - start;
  Serial.print("{name}: worst error ");
  Serial.print(worst * 1e6);
  Serial.print("e-6, allowed ");
  Serial.print(VECTORS_TOLERANCE * 1e6);
  Serial.print(worst <= VECTORS_TOLERANCE ? "e-6: good, " : "e-6: BAD, ");
  Serial.print(spent / VECTORS_CASES);
  Serial.println(" us a call");
  delay(1000);
}}
"""

_PROPERTIES = """name={name}
version=1.0.0
author=Linkwright
maintainer=Linkwright
sentence={title}.
paragraph=Generated C without heap and state; see README.md.
category=Data Processing
url=https://www.arduino.cc/
architectures=*
includes={name}.h
"""


def arduino_files(subject: Subject, text: PackageText, vectors: str) -> dict[str, str]:
    """The files besides src/ and extras/."""
    name = text.name
    title = plain(subject.title).encode("ascii", "replace").decode()
    return {
        "library.properties": _PROPERTIES.format(name=name, title=title),
        f"examples/{name}/{name}.ino": _SKETCH.format(name=name),
        f"examples/{name}/vectors.h": vectors,
    }
