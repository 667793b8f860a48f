"""Worker processes of a study: messages through pipes, the process that computes cases, and the one that watches it.

A case that crashes ends its process and no other. A case beyond its limit of CPU time is ended by the system's own
timer (SIGPROF), whatever the process is doing; recording and compiling programs are not charged to a case.
"""

from __future__ import annotations

import json
import os
import pkgutil
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import BufferedReader
from typing import IO, Any, cast

import numpy as np

from linkwright.base.arrays import Floats
from linkwright.base.locks import Lock
from linkwright.errors import LinkwrightError
from linkwright.tape.build import listen

_LENGTH = struct.Struct("=Q")


def send(stream: IO[bytes], header: Mapping[str, Any], arrays: Sequence[Floats] = ()) -> None:
    """Write one message."""
    plain = [np.ascontiguousarray(x, dtype=np.float64) for x in arrays]
    text = json.dumps({"header": dict(header), "shapes": [list(x.shape) for x in plain]}).encode("ascii")
    stream.write(_LENGTH.pack(len(text)) + text)
    for x in plain:
        stream.write(x.reshape(-1).view(np.uint8).data)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], list[Floats]]:
    """Read one message; `EOFError` where the other process has ended."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    message = json.loads(_exactly(stream, length))
    arrays = []
    for shape in message["shapes"]:
        array = np.empty(shape)
        if cast(BufferedReader, stream).readinto(array.reshape(-1).view(np.uint8).data) < array.nbytes:
            raise EOFError("the other process has ended")
        arrays.append(array)
    return message["header"], arrays


def _exactly(stream: IO[bytes], count: int) -> bytes:
    content = stream.read(count)
    if len(content) < count:
        raise EOFError("the other process has ended")
    return content


_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from linkwright.sweeps.worker_process import serve; serve()"
)
#: Arrays of a batch stay in the process for the next batch. By the C library's defaults, and still more by those of
#: Dask's nanny, each would be mapped, zeroed and unmapped anew.
_ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**28)}
_STILL = 20.0  # times its limit of CPU time that a case may stand still by the clock on the wall, …
_LEAST_STILL = 60.0  # … and no less than these seconds: a machine may be busy with other things
_STARTS = 3  # of a process that is killed before it is ready
_HAS_TIMER = hasattr(signal, "setitimer")


class Death(Exception):
    """A worker process that ended on some cases: `beyond` what a case may take, or by a `crash` of its own."""

    def __init__(self, reason: str, *, beyond: bool = False, crash: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.beyond, self.crash = reason, beyond, crash


class Closed(Exception):
    """The worker process was ended by whoever started it."""


class WorkerProcess:
    """One process that computes cases; it starts with the first, and again after a death."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._text: str | None = None
        self._closed = self._stood_still = False
        self._lock = Lock(reentrant=False)
        self._cost: tuple[str, float] = ("", 0.0)

    def cost(self, text: str) -> float:
        """Seconds of CPU time that a case of a task takes here, by the last that were computed; 0 if none was."""
        return self._cost[1] if self._cost[0] == text else 0.0

    def compute(self, function: str, text: str, values: Floats, limit: float | None = None) -> dict[str, Any]:
        """What a function, named as "module:name", makes of a task's text and cases; `Death` if the process ends.

        `limit` is CPU time in seconds for all these cases together.
        """
        process = self._started()
        header = {"function": function, "limit": limit} | ({"text": text} if text != self._text else {})
        assert process.stdin is not None
        assert process.stdout is not None
        guard = self._guard(process, limit)
        try:
            send(process.stdin, header, [values])
            self._text = text
            reply, arrays = receive(process.stdout)
        except (OSError, EOFError, ValueError):
            raise self._death(process, limit) from None
        finally:
            guard()
        if "error" in reply:
            raise LinkwrightError(reply["error"] if reply["ours"] else f"a worker failed: {reply['error']}")
        self._cost = (text, reply.pop("used") / len(values))
        return {**reply, "arrays": dict(zip(reply.pop("names"), arrays, strict=True))}

    def close(self) -> None:
        """End the process, whatever it does."""
        with self._lock:
            self._closed = True
            process = self._process
        if process is not None:
            process.kill()
            _forget(process)

    @property
    def closed(self) -> bool:
        """Whether it was ended for good."""
        return self._closed

    @property
    def pid(self) -> int | None:
        """The number of the process, if it has been started."""
        return None if self._process is None else self._process.pid

    def _started(self) -> subprocess.Popen[bytes]:
        """The process, ready for cases."""
        for _ in range(_STARTS):
            process = self._running()
            if process is not None:
                return process
            process = self._new()
            assert process.stdout is not None
            try:
                receive(process.stdout)  # it says that it is ready
                return process
            except (EOFError, ValueError, OSError):
                code = process.wait()
            if code >= 0:
                break  # of its own will: it would do so again
        if self._closed:
            raise Closed
        text = f"a worker process ({sys.executable}) ended as it began, with exit code {code}"
        raise LinkwrightError(f"{text}; see what it printed, and whether there is memory for it")

    def _running(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._closed:
                raise Closed
            process = self._process
        return process if process is not None and process.poll() is None else None

    def _new(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise Closed
            if self._process is not None:
                _forget(self._process)
            self._text, self._stood_still = None, False
            # In a group of its own: Ctrl-C is for the driver.
            group: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
            paths = json.dumps([path for path in sys.path if isinstance(path, str)])
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _START, paths],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**os.environ, **_ALLOCATOR},
                    **group,
                )
            except OSError as error:
                raise LinkwrightError(f"a worker process cannot be started: {error}") from error
            return self._process

    def _guard(self, process: subprocess.Popen[bytes], limit: float | None) -> Callable[[], None]:
        """End a process that stands still: it uses no CPU time, and would do so for ever."""
        if limit is None:
            return lambda: None
        period = max(_LEAST_STILL, _STILL * limit) if _HAS_TIMER else limit
        ended = threading.Event()

        def watch(before: int) -> None:
            while not ended.wait(period):
                # What is charged to a case on a busy machine, and preparation, may take longer than any period.
                used = _cpu_ticks(process.pid)
                if used <= before:
                    self._stood_still = True
                    process.kill()
                    return
                before = used

        threading.Thread(target=watch, args=(_cpu_ticks(process.pid),), daemon=True).start()
        return ended.set

    def _death(self, process: subprocess.Popen[bytes], limit: float | None) -> Exception:
        try:
            code = process.wait(_LEAST_STILL)
        except subprocess.TimeoutExpired:  # it lives, and what it sent is no message
            process.kill()
            code = process.wait()
        with self._lock:
            if self._closed:
                return Closed()
        if self._stood_still and limit is not None:
            return Death(f"it stood still beyond the limit of {limit:g} s a case", beyond=True)
        if _HAS_TIMER and code == -signal.SIGPROF:
            return Death(f"it took more than the limit of {limit:g} s of CPU time a case", beyond=True)
        if code == -9:
            return Death("it was killed, as systems do where memory is short")
        if code == -signal.SIGTERM:
            return Death("it was asked to end (SIGTERM)")
        if code < 0:
            return Death(f"it crashed: {_signal_name(-code)}", crash=True)
        return Death(f"it ended with exit code {code}", crash=True)


def _cpu_ticks(pid: int) -> int:
    """The CPU time that a process has used, in the system's ticks; always 0 where the system does not show it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()  # a process's name may have anything in it
        return int(fields[11]) + int(fields[12])
    except (OSError, LookupError, ValueError):
        return 0


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _forget(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # what was still to be sent has nobody to read it
                stream.close()


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
