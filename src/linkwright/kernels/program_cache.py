"""The cache of programs: what is asked of which content, recorded at most once and, in the next process, not at all.

A program is named by its content (the digest of what it is about) and the request (what is asked of it). Kernels are
shared by all who ask for the same; the last ones stay loaded though nobody holds them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from weakref import WeakValueDictionary

from linkwright.base.locks import Lock
from linkwright.kernels.kernel import Kernel
from linkwright.tape.program import Program

#: Kernels that stay loaded though nobody holds them, where the one who asks wants that.
RECENT = 64

_lock = Lock()
_kernels: WeakValueDictionary[str, Kernel] = WeakValueDictionary()
_recent: OrderedDict[str, Kernel] = OrderedDict()


def kernel(
    content: str,
    request: object,
    record: Callable[[], Program],
    *,
    seldom: bool = False,
    plain: Callable[[], Program] | None = None,
    recent: bool = False,
) -> Kernel:
    """The kernel of a request about some content; `record` makes its program where no cache has its code.

    The request's `repr` tells it from others. `seldom` and `plain` are those of `Kernel`. With `recent` the kernel is
    among those that stay loaded: for small programs that serve one caller after another.
    """
    identity = f"{content} {request!r}"
    with _lock:
        shared = _kernels.get(identity)
        if shared is None:
            shared = _kernels[identity] = Kernel(identity, record, seldom=seldom, plain=plain)
        if recent:
            _recent[identity] = shared
            _recent.move_to_end(identity)
            if len(_recent) > RECENT:
                _recent.popitem(last=False)
    return shared
