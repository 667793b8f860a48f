"""Work done by several threads that start together."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Answer = TypeVar("Answer")


def at_once(work: Callable[[int], Answer], count: int) -> list[Answer]:
    """work(k) in `count` threads that start together; errors come out."""
    barrier = threading.Barrier(count)

    def one(k: int) -> Answer:
        barrier.wait()
        return work(k)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))
