"""Programs side by side on threads that wait for work in native code: one short call starts them all and returns
when all have ended.

Waiting threads spin, so that a call costs well below a microsecond more than its longest part; each takes a core for as
long as the crew is open. For work of many microseconds and more use a pool of threads instead.

A process that ends lets the threads of open crews end first. A child that is forked has none of them: its copy of a
crew counts as closed and starts threads of its own with its next call, and the parent's go on.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwright.base.arrays import Floats
from linkwright.base.locks import Lock
from linkwright.errors import KernelError
from linkwright.kernels.back_ends import compiled
from linkwright.kernels.bound_kernel import bound, checked
from linkwright.kernels.variant import native
from linkwright.tape.program import Program

Task = tuple[Program, Sequence[Floats], Sequence[Floats]]

_WORDS = 4  # of a job: the kernel's address, and its arguments pointers, strides, scratch
#: Words of the room, a cache line apart: how often work was given out, how many parts have ended, whether to stop, the
#: jobs, how many threads are there.
_GIVEN, _ENDED, _STOP, _JOBS, _HERE = range(0, 40, 8)
_SPINS = 2000  # looks at the room before other threads are let run
_PATIENCE = 5.0  # seconds that threads may take to begin

_LEAD = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_SERVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


class Crew:
    """So many threads, the caller's among them. Close it, or use it as a context, to give the cores back."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise KernelError(f"a crew has at least 1 thread, not {size}")
        self.size = size
        self._at = 0  # the address of the room that the threads of now look at
        self._open = False
        self._lock = Lock()
        self._close: Callable[[], Any] = lambda: None
        _crews.add(self)

    def plan(self, parts: Sequence[Task], before: Task | None = None, after: Task | None = None) -> Callable[[], None]:
        """A function that runs `before`, then as many parts as there are threads side by side, then `after`.

        Arrays are held and must stay as they are (float64, contiguous); parts must not write what another one reads.
        For one caller at a time.
        """
        if len(parts) != self.size:
            raise KernelError(f"a crew of {self.size} takes as many parts; {len(parts)} were given")
        tasks = [before, *parts, after]
        if not native():
            calls = [bound(compiled(p), inputs, outputs) for p, inputs, outputs in filter(None, tasks)]

            def in_turn() -> None:
                for call in calls:
                    call()

            return in_turn
        words: list[int] = []
        lifetime: list[Any] = []
        for task in tasks:
            if task is None:
                words += [0] * _WORDS
                continue
            program, inputs, outputs = task
            kernel = compiled(program)
            arrays, strides = checked(kernel, inputs, outputs)
            job, life = kernel.variant(1).job(arrays, strides)
            words += job
            lifetime += [life, kernel]
        jobs = np.array(words, np.uint64)
        lead, size, there = _lead(), self.size, jobs.ctypes.data

        def run(lifetime: Any = (lifetime, jobs)) -> None:
            if not self._open:
                self._begin()
            lead(self._at, there, size)

        return run

    def _begin(self) -> None:
        """Start the threads and wait until they are in native code: the call that waits for them holds Python."""
        with self._lock:
            if self._open:
                return
            # A room of their own for these threads: those of a crew that was closed may still be looking at the last.
            room = np.zeros(48, np.int64)
            serve = _serve()
            for rank in range(1, self.size):
                # A thread keeps the room alive, and not the crew: a crew that nobody has any more is closed.
                threading.Thread(target=_served, args=(serve, room, rank), daemon=True, name="linkwright crew").start()
            until = time.monotonic() + _PATIENCE
            while room[_HERE] < self.size - 1:
                if time.monotonic() > until:
                    room[_STOP] = 1
                    raise KernelError(f"of a crew of {self.size} threads only {int(room[_HERE]) + 1} began in time")
                time.sleep(1e-4)
            self._close = weakref.finalize(self, _stop, room)
            self._at = room.ctypes.data
            self._open = True

    def close(self) -> None:
        """Let the threads end; the next call starts new ones."""
        with self._lock:
            if self._open:
                self._open = False
                self._close()

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_crews: weakref.WeakSet[Crew] = weakref.WeakSet()


def _served(serve: Any, room: NDArray[np.int64], rank: int) -> None:
    serve(room.ctypes.data, rank)


def _stop(room: NDArray[np.int64]) -> None:
    room[_STOP] = 1


def _forget() -> None:
    """A child has none of its parent's threads."""
    for crew in list(_crews):
        crew._open = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@cache
def _code() -> Any:
    from linkwright.kernels.llvm.compiler import load, object_code  # weight: LLVM

    return load(object_code(crew_text()), "crew")


@cache
def _lead() -> Any:
    return _LEAD(_code().address)


@cache
def _serve() -> Any:
    return _SERVE(_code().team)


def crew_text() -> str:
    """`@crew(room, jobs, size)`: the caller's turn. `@crew_team(room, rank)`: a thread's life."""
    posix = sys.platform != "win32"
    yielding = "  %ignored = call i32 @sched_yield()" if posix else ""

    def word(name: str, place: int) -> str:
        return f"  %{name} = getelementptr i64, ptr %room, i64 {place}"

    return f"""{"declare i32 @sched_yield()" if posix else ""}
define internal void @job(ptr %job) {{
entry:
  %code = load ptr, ptr %job
  %none = icmp eq ptr %code, null
  br i1 %none, label %done, label %some
some:
  %a = getelementptr ptr, ptr %job, i64 1
  %b = getelementptr ptr, ptr %job, i64 2
  %c = getelementptr ptr, ptr %job, i64 3
  %pointers = load ptr, ptr %a
  %strides = load ptr, ptr %b
  %scratch = load ptr, ptr %c
  call void %code(ptr %pointers, ptr %strides, ptr %scratch, i64 1)
  br label %done
done:
  ret void
}}

define internal void @rest(i64 %turn) noinline {{
entry:
  %often = urem i64 %turn, {_SPINS}
  %long = icmp eq i64 %often, {_SPINS - 1}
  br i1 %long, label %give, label %done
give:
{yielding}
  br label %done
done:
  ret void
}}

define void @crew(ptr %room, ptr %jobs, i64 %size) {{
entry:
{word("ended", _ENDED)}
{word("place", _JOBS)}
  call void @job(ptr %jobs)
  store ptr %jobs, ptr %place
  store atomic i64 0, ptr %ended monotonic, align 8
  %times = atomicrmw add ptr %room, i64 1 release
  %own = getelementptr i64, ptr %jobs, i64 {_WORDS}
  call void @job(ptr %own)
  %others = sub i64 %size, 1
  br label %wait
wait:
  %turn = phi i64 [ 0, %entry ], [ %next, %more ]
  %come = load atomic i64, ptr %ended acquire, align 8
  %all = icmp eq i64 %come, %others
  br i1 %all, label %after, label %more
more:
  call void @rest(i64 %turn)
  %next = add i64 %turn, 1
  br label %wait
after:
  %before = add i64 %size, 1
  %far = mul i64 %before, {_WORDS}
  %last = getelementptr i64, ptr %jobs, i64 %far
  call void @job(ptr %last)
  ret void
}}

define void @crew_team(ptr %room, i64 %rank) {{
entry:
{word("ended", _ENDED)}
{word("stop", _STOP)}
{word("place", _JOBS)}
{word("here", _HERE)}
  %first = add i64 %rank, 1
  %far = mul i64 %first, {_WORDS}
  %present = atomicrmw add ptr %here, i64 1 release
  br label %wait
wait:
  %seen = phi i64 [ 0, %entry ], [ %seen, %idle ], [ %given, %work ]
  %turn = phi i64 [ 0, %entry ], [ %next, %idle ], [ 0, %work ]
  %given = load atomic i64, ptr %room acquire, align 8
  %same = icmp eq i64 %given, %seen
  br i1 %same, label %look, label %work
look:
  %over = load atomic i64, ptr %stop acquire, align 8
  %on = icmp eq i64 %over, 0
  br i1 %on, label %idle, label %done
idle:
  call void @rest(i64 %turn)
  %next = add i64 %turn, 1
  br label %wait
work:
  %jobs = load ptr, ptr %place
  %own = getelementptr i64, ptr %jobs, i64 %far
  call void @job(ptr %own)
  %count = atomicrmw add ptr %ended, i64 1 acq_rel
  br label %wait
done:
  ret void
}}
"""
