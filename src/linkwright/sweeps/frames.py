"""Messages between a process and the one that it started: a JSON text and arrays of numbers, through pipes."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np

from linkwright.base.arrays import Floats

_LENGTH = struct.Struct("=Q")


def send(stream: IO[bytes], header: Mapping[str, Any], arrays: Sequence[Floats] = ()) -> None:
    """Write one message."""
    plain = [np.ascontiguousarray(x, dtype=np.float64) for x in arrays]
    text = json.dumps({"header": dict(header), "shapes": [list(x.shape) for x in plain]}).encode("ascii")
    stream.write(_LENGTH.pack(len(text)) + text)
    for x in plain:
        stream.write(x.tobytes())
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], list[Floats]]:
    """Read one message; `EOFError` where the other process has ended."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    message = json.loads(_exactly(stream, length))
    arrays = []
    for shape in message["shapes"]:
        content = _exactly(stream, 8 * int(np.prod(shape, dtype=np.int64)))
        arrays.append(np.frombuffer(content, np.float64).reshape(shape).copy())
    return message["header"], arrays


def _exactly(stream: IO[bytes], count: int) -> bytes:
    content = stream.read(count)
    if len(content) < count:
        raise EOFError("the other process has ended")
    return content
