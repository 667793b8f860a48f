"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linkwright.errors import LinkwrightError
from linkwright.targets import check_target


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file beside `path` to write to; it takes the place of `path` when the block ends without an error."""
    target = Path(path)
    check_target(target)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        # Made here first, so that it is ours and not a link somebody put there.
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise LinkwrightError(f"cannot write {target}: {reason}; choose a folder that exists and has room") from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
