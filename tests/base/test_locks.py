"""A forked process finds every lock free, and a fork waits for what would be unusable half changed."""

import ast
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import linkwright as lw
from linkwright.base import locks
from linkwright.base.locks import Lock, cached_property

PACKAGE = Path(lw.__file__).parent

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
GUARD = 300  # seconds after which something is taken to hang


def in_child(check) -> int:
    """What a forked process makes of a check: 0 if it holds. A child that hangs is killed, by its own alarm."""
    pid = os.fork()
    if pid == 0:
        import signal

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        os._exit(0 if check() else 1)
    return os.waitpid(pid, 0)[1]


class Holder:
    """Another thread that holds a lock until it is let go."""

    def __init__(self, lock: Lock) -> None:
        self.go, holds = threading.Event(), threading.Event()

        def hold() -> None:
            with lock:
                holds.set()
                self.go.wait()

        self.thread = threading.Thread(target=hold)
        self.thread.start()
        holds.wait()

    def end(self) -> None:
        self.go.set()
        self.thread.join()


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_lock_that_another_thread_holds_is_free_in_a_child(reentrant: bool) -> None:
    lock = Lock(reentrant=reentrant)
    holder = Holder(lock)
    try:
        assert in_child(lambda: lock.acquire()) == 0
        assert not lock.acquire(blocking=False)
    finally:
        holder.end()


def test_a_fork_waits_for_a_lock_that_asks_for_it() -> None:
    lock, done = Lock(fork_waits=True), []
    holder = Holder(lock)
    timer = threading.Timer(0.2, lambda: (done.append(True), holder.end()))
    timer.start()
    assert in_child(lambda: bool(done) and lock.acquire()) == 0
    timer.join()
    assert lock.acquire(blocking=False)
    lock.release()  # else a fork in another thread waits for as long as the lock lives


def test_threads_that_fork_at_once_wait_for_each_other() -> None:
    locks = [Lock(fork_waits=True) for _ in range(3)]
    outcomes: list[int] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(in_child(lambda: all(x.acquire() for x in locks))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GUARD)
    assert outcomes == [0] * 8


def test_a_fork_waits_while_other_threads_make_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", failures.append)  # an error before a fork is not raised
    many, end = [Lock() for _ in range(300)], threading.Event()

    def make() -> None:
        while not end.is_set():
            many[:100] = [Lock() for _ in range(100)]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=make) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        for _ in range(100):
            assert in_child(lambda: all(lock.acquire() for lock in many)) == 0
    finally:
        end.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert not failures


def test_a_cached_property_that_another_thread_computes_can_be_computed_in_a_child() -> None:
    begun, go = threading.Event(), threading.Event()

    class Slow:
        @cached_property
        def value(self) -> int:
            if threading.current_thread() is not threading.main_thread():
                begun.set()
                go.wait()
            return 42

    slow = Slow()
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    begun.wait()
    try:
        assert in_child(lambda: slow.value == Slow().value == 42) == 0
    finally:
        go.set()
        thread.join()


@pytest.fixture
def slow_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module whose import ends when the file "go" is in the test's folder."""
    (tmp_path / "slow_module.py").write_text(
        f"import os, time\nwhile not os.path.exists({str(tmp_path / 'go')!r}):\n    time.sleep(0.01)\nVALUE = 42\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "slow_module", raising=False)
    return "slow_module"


def test_a_fork_waits_for_what_the_package_imports_in_other_threads(
    slow_module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_PACKAGE", __file__)  # this file is the package whose imports are waited for
    thread = threading.Thread(target=lambda: __import__(slow_module))
    thread.start()
    while slow_module not in sys.modules:
        time.sleep(0.001)
    timer = threading.Timer(0.2, (tmp_path / "go").touch)
    timer.start()
    assert in_child(lambda: __import__(slow_module).VALUE == 42) == 0
    timer.join()
    thread.join()


def test_a_fork_does_not_wait_for_what_others_import(slow_module: str, tmp_path: Path) -> None:
    thread = threading.Thread(target=lambda: __import__(slow_module))
    thread.start()
    while slow_module not in sys.modules:
        time.sleep(0.001)
    try:
        assert in_child(lambda: not hasattr(sys.modules[slow_module], "VALUE")) == 0  # a main program may be one
    finally:
        (tmp_path / "go").touch()
        thread.join()


def test_no_other_lock_is_used_in_the_package() -> None:
    plain = {"Lock", "RLock", "Condition", "cached_property"}
    for file in PACKAGE.rglob("*.py"):
        if file == PACKAGE / "base" / "locks.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in ("threading", "functools", "multiprocessing"):
                assert not plain & {alias.name for alias in node.names}, f"{file}: take it from linkwright.base.locks"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert node.value.id not in ("threading", "functools") or node.attr not in plain, file


FORKING = Path(__file__).with_name("forking.py")


def test_a_child_compiles_and_reads_models_though_other_threads_did_when_it_was_forked() -> None:
    outcome = subprocess.run([sys.executable, FORKING], capture_output=True, text=True, timeout=GUARD, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split() == ["0"] * 5
