"""What a worker process does: cases come through a pipe, their results go back through another, until it is closed.

A case that crashes ends this process and no other. A case beyond its limit of CPU time is ended by the system's own
timer (SIGPROF), whatever the process is doing; recording and compiling programs are not charged to a case.
"""

from __future__ import annotations

import os
import pkgutil
import queue
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

from linkwright.base.arrays import Floats
from linkwright.errors import LinkwrightError
from linkwright.sweeps.worker_process import receive, send
from linkwright.tape.running import listen

COLD = 2.0  # seconds of CPU time that the first cases of a process may take besides: for imports and reading code


class CpuTimer:
    """Ends this process when it has used so many seconds of CPU time, without what preparation takes."""

    def __init__(self) -> None:
        self._running = False
        self._left = self._begin = self._prepared = 0.0
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
            listen(self._preparing)

    def start(self, seconds: float | None) -> None:
        """Begin to count; None for no limit."""
        self._prepared = -time.process_time()
        if seconds is not None and hasattr(signal, "setitimer"):
            self._running = True
            signal.setitimer(signal.ITIMER_PROF, seconds)

    def stop(self) -> float:
        """End counting; the seconds since the start, without preparation."""
        if self._running:
            self._running = False
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        return time.process_time() + self._prepared

    def _preparing(self, begins: bool) -> None:
        if begins:
            self._begin = time.process_time()
        else:
            self._prepared -= time.process_time() - self._begin
        if not self._running:
            return
        if begins:
            self._left = signal.setitimer(signal.ITIMER_PROF, 0.0)[0]
        else:
            signal.setitimer(signal.ITIMER_PROF, max(self._left, 1e-3))


def serve() -> None:
    """Answer requests until the process that started this one closes the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # interrupts are the driver's to handle
    requests, replies = _pipes()
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def read() -> None:
        try:
            while True:
                messages.put(receive(requests))
        finally:
            os._exit(0)  # also from the middle of a case: nobody waits for it any more

    def reply(header: Mapping[str, Any], arrays: Sequence[Floats] = ()) -> None:
        try:
            send(replies, header, arrays)
        except OSError:
            os._exit(0)  # whoever started this process is gone, and a traceback would be the last that a person reads

    threading.Thread(target=read, daemon=True).start()
    timer = CpuTimer()
    reply({"ready": True})
    text, seen = "", set()
    while True:
        header, (values,) = messages.get()
        text = header.get("text", text)
        function = pkgutil.resolve_name(header["function"])
        limit = header["limit"]
        if limit is not None and text not in seen:
            limit += COLD
        timer.start(limit)
        try:
            answer = function(text, values)
        except Exception as error:
            timer.stop()
            kind = "" if isinstance(error, LinkwrightError) else f"{type(error).__name__}: "
            reply({"error": f"{kind}{error}", "ours": not kind})
            continue
        used = timer.stop()
        seen.add(text)
        arrays = answer.pop("arrays")
        reply({**answer, "names": list(arrays), "used": used}, list(arrays.values()))


def _pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Standard input and output for messages alone: what a library prints goes to the standard error output."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies
