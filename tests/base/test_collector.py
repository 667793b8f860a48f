"""The garbage collector is held back in blocks, and left as it was found."""

import contextlib
import gc
import os
import threading

import pytest

from linkwright.base.collector import without_collection


def test_it_collects_again_after_the_block_also_after_an_error() -> None:
    with contextlib.suppress(KeyboardInterrupt), without_collection():
        assert not gc.isenabled()
        raise KeyboardInterrupt
    assert gc.isenabled()


def test_blocks_are_nested() -> None:
    with without_collection():
        with without_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with without_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_another_thread_in_its_block_holds_it_back_until_its_end() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def work() -> None:
        with without_collection():
            inside.set()
            go_on.wait()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    with without_collection():
        pass
    assert not gc.isenabled()
    go_on.set()
    thread.join()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_collects() -> None:
    with without_collection():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitpid(child, 0)[1] == 0
