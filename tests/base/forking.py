"""Forks while other threads import, compile and read models: prints the exit status of each child."""

import os
import signal
import threading
import time

os.environ["LINKWRIGHT_CACHE"] = ""  # everything is compiled

import linkwright as lw
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.mks_writer import write_mks

TEXT = write_mks(lw.chain(20).description)


def work(seed: int) -> None:
    mech = lw.random_tree(3, seed=seed)
    mech.mass_matrix(mech.neutral())
    parse_mks(TEXT)


def work_on(first: int) -> None:
    seed = first
    while True:
        work(seed)
        seed += 1


# Nothing is loaded before: the first forks meet threads that import, too.
for k in range(2):
    threading.Thread(target=work_on, args=(1000 * (k + 1),), daemon=True).start()
for n in range(5):
    time.sleep(0.03 + 0.05 * n)
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        work(n + 1)
        os._exit(0)
    print(os.waitpid(pid, 0)[1], flush=True)
