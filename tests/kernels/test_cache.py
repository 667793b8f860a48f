"""The disk cache: odd directories and damaged entries cost speed or a warning, never a wrong answer."""

import hashlib
import os
import stat
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import linkwright
from linkwright.errors import KernelError, LinkwrightError, LinkwrightWarning
from linkwright.kernels.back_ends import compiled
from linkwright.kernels.kernel import Kernel
from linkwright.kernels.llvm import compiler as cache
from linkwright.kernels.llvm.compiler import cpu, lanes, load, object_code
from linkwright.tape.build import record

ROOT_USER = hasattr(os, "getuid") and os.getuid() == 0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache directory of the test's own."""
    path = tmp_path / "cache"
    monkeypatch.setenv("LINKWRIGHT_CACHE", str(path))
    return path


@pytest.fixture
def inside(folder):
    """Where its entries are."""
    found = cache.directory()
    assert found is not None
    assert found.parent == folder
    return found


def program():
    return record(lambda x: np.sin(x) * 2.0 + x[0], 3, name="wave")


def wave(x):
    return np.sin(x) * 2.0 + x[0]


X = np.array([0.1, -0.7, 2.0])


def answer():
    """A fresh kernel's answer, and whether it had to be compiled."""
    compiled_now = []
    made = cache.object_code

    def watched(text, **options):
        compiled_now.append(text)
        return made(text, **options)

    cache.object_code = watched
    try:
        result = compiled(program())(X)
    finally:
        cache.object_code = made
    np.testing.assert_allclose(result, wave(X), rtol=1e-15)
    return bool(compiled_now)


def entries(folder):
    return sorted(p for p in folder.rglob("*") if p.is_file())


def file_of(inside, name):
    """The file of an entry."""
    return inside / f"{name}.lwk"


def test_code_is_compiled_once_and_then_found(folder):
    assert answer()
    assert not answer()
    assert entries(folder)


def test_the_directory_is_made_for_its_owner_alone(folder):
    answer()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for entry in entries(folder):
        assert not entry.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def test_an_empty_name_means_no_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LINKWRIGHT_CACHE", "")
    monkeypatch.chdir(tmp_path)
    assert cache.directory() is None
    assert answer()
    assert answer()
    assert not list(tmp_path.iterdir())


def test_without_a_name_the_users_cache_directory_is_taken(tmp_path, monkeypatch):
    monkeypatch.delenv("LINKWRIGHT_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    found = cache.directory()
    assert found is not None
    assert found.parent.name == "linkwright"


def test_a_directory_that_cannot_be_made_is_no_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("LINKWRIGHT_CACHE", str(tmp_path / "file" / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answer()


def test_a_file_in_the_place_of_the_directory_is_no_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("LINKWRIGHT_CACHE", str(tmp_path / "file"))
    assert answer()
    assert (tmp_path / "file").read_text() == "not a directory"


def test_a_read_only_directory_is_read_and_not_written(folder, monkeypatch):
    assert answer()
    kept = entries(folder)

    def refused(*_, **__):
        raise LinkwrightError("read-only")

    monkeypatch.setattr(cache, "atomic_file", refused)  # root may write anywhere
    folder.chmod(0o500)
    try:
        assert not answer()
        kept[0].chmod(0o600)
        for entry in kept:
            entry.write_bytes(b"")
        assert answer()  # damaged and not to be mended
        assert answer()
        assert entries(folder) == kept
    finally:
        folder.chmod(0o700)


@pytest.mark.skipif(ROOT_USER, reason="root may write read-only directories")
def test_a_directory_without_permission_to_write_gives_answers(folder):
    folder.mkdir()
    folder.chmod(0o500)
    try:
        assert answer()
        assert not entries(folder)
    finally:
        folder.chmod(0o700)


def test_a_directory_that_others_can_write_is_warned_about_once_and_not_used(folder):
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.warns(LinkwrightWarning, match=f"{folder} can be written by others.*chmod go-w") as caught:
        assert answer()
    assert len(caught) == 1
    assert Path(caught[0].filename) == Path(__file__)  # the caller's line, not ours
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answer()
    assert not entries(folder)


def test_a_directory_of_another_user_is_warned_about_and_not_used(folder, monkeypatch):
    folder.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.warns(LinkwrightWarning, match="belongs to another user.*LINKWRIGHT_CACHE"):
        assert answer()
    assert not entries(folder)


def rewritten(entry, change):
    raw = bytearray(entry.read_bytes())
    entry.write_bytes(bytes(change(raw)))


def flip(at):
    def change(raw):
        raw[at] ^= 0x10
        return raw

    return change


DAMAGE = {
    "nothing left": lambda raw: b"",
    "cut in the magic": lambda raw: raw[:7],
    "cut in the hash": lambda raw: raw[:30],
    "cut after the hash": lambda raw: raw[: len(cache._MAGIC) + 32],
    "cut by one byte": lambda raw: raw[:-1],
    "one byte more": lambda raw: raw + b"\0",
    "a flipped bit at the end": flip(-1),
    "a flipped bit in the middle": flip(len(cache._MAGIC) + 40),
    "a flipped bit in the hash": flip(len(cache._MAGIC) + 3),
    "another magic": lambda raw: b"linkwright-cache-0\n" + raw[len(cache._MAGIC) :],
    "zeros": lambda raw: bytes(len(raw)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_entry_is_made_anew(folder, damage):
    assert answer()
    whole = {entry: entry.read_bytes() for entry in entries(folder)}
    for entry in whole:
        rewritten(entry, DAMAGE[damage])
    assert answer()
    assert {entry: entry.read_bytes() for entry in entries(folder)} == whole
    assert not answer()


def test_an_entry_under_anothers_name_is_damaged(inside):
    cache.write("a", b"first")
    cache.write("b", b"second")
    os.replace(file_of(inside, "a"), file_of(inside, "b"))
    assert cache.read("b") is None


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_an_entry_that_others_can_write_is_not_used_and_made_anew(inside):
    cache.write("a", b"content")
    assert cache.read("a") == b"content"
    file_of(inside, "a").chmod(0o666)
    assert cache.read("a") is None
    cache.write("a", b"content")
    assert cache.read("a") == b"content"


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_link_in_the_place_of_an_entry_is_neither_followed_nor_replaced(inside):
    cache.write("a", b"content")
    os.rename(file_of(inside, "a"), inside / "elsewhere")
    file_of(inside, "a").symlink_to(inside / "elsewhere")
    before = (inside / "elsewhere").read_bytes()
    assert cache.read("a") is None
    cache.write("a", b"other")
    assert file_of(inside, "a").is_symlink()
    assert (inside / "elsewhere").read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_link_in_the_place_of_the_folder_of_entries_is_no_cache(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.mkdir(mode=0o700)
    (folder / cache.FOLDER).symlink_to(tmp_path / "elsewhere")
    assert answer()
    assert answer()
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_a_pipe_in_the_place_of_an_entry_does_not_hold_up_reading(inside):
    os.mkfifo(file_of(inside, "a"))
    assert cache.read("a") is None
    cache.write("a", b"content")
    assert file_of(inside, "a").is_fifo()


def test_a_directory_in_the_place_of_an_entry_costs_the_entry(inside):
    file_of(inside, "a").mkdir()
    cache.write("a", b"content")
    assert cache.read("a") is None
    assert [p.name for p in inside.iterdir()] == ["a.lwk"]  # and nothing half-written is left


def put(name, content):
    """An entry with a right hash and this content."""
    cache.write(name, content)
    assert cache.read(name) == content


@pytest.mark.parametrize("content", [b"", b"no object code", b"\x7fELF" + bytes(60)])
def test_an_entry_that_is_no_object_code_is_compiled_anew(folder, content):
    kernel = compiled(program())
    name = cache.key(kernel.identity, "1", *cpu())
    put(name, content)
    np.testing.assert_allclose(kernel(X), wave(X), rtol=1e-15)
    assert cache.read(name) != content
    assert not answer()


def test_object_code_of_another_function_is_compiled_anew(folder):
    kernel = compiled(program())
    name = cache.key(kernel.identity, "1", *cpu())
    put(name, object_code("define void @other() {\n  ret void\n}\n"))
    np.testing.assert_allclose(kernel(X), wave(X), rtol=1e-15)


def test_broken_code_that_is_not_from_the_cache_is_an_error(folder):
    with pytest.raises(KernelError, match="object code"):
        load(b"nothing", "kernel")
    with pytest.raises(KernelError, match="no function 'kernel'"):
        load(object_code("define void @other() {\n  ret void\n}\n"), "kernel")


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"name": "wave"}', b'{"inputs": 3}', b"null", b"\xff\xfe"])
def test_a_signature_that_makes_no_sense_is_made_anew(folder, text):
    identity = program().digest
    put(cache.key(identity, "signature", str(lanes())), text)
    kernel = Kernel(identity, program)
    assert [port.name for port in kernel.signature.inputs] == ["x"]
    np.testing.assert_allclose(kernel(X), wave(X), rtol=1e-15)


def test_a_cached_kernel_runs_without_its_program(folder):
    def never():
        raise AssertionError("the program was asked for")

    identity = "wave of the test"
    Kernel(identity, program)(X)
    kernel = Kernel(identity, never)
    np.testing.assert_allclose(kernel(X), wave(X), rtol=1e-15)
    batch = np.tile(X, (20, 1))
    with pytest.raises(AssertionError, match="asked for"):
        kernel(batch)  # lanes were never compiled


def test_other_versions_and_other_sources_have_other_names(folder, monkeypatch):
    before = cache.key("a")
    assert cache.key("a") == before
    assert cache.key("a", "b") != cache.key("ab")
    monkeypatch.setattr(cache, "stamp", lambda: "another version")
    assert cache.key("a") != before


def test_the_stamp_changes_with_the_packages_files(tmp_path, monkeypatch):
    root = Path(linkwright.__file__).parent
    place = tmp_path / "linkwright" / Path(cache.__file__).relative_to(root)
    source = tmp_path / "linkwright" / "dynamics" / "recorders.py"  # what is recorded depends on every room
    for file in (place, source):
        file.parent.mkdir(parents=True)
        file.write_text("one")
    monkeypatch.setattr(cache, "__file__", str(place))
    fresh = cache.stamp.__wrapped__
    first = fresh()
    assert fresh() == first
    source.write_text("other")
    assert fresh() != first
    source.write_text("one")  # at another time
    assert fresh() == first


def test_a_second_process_reads_no_file_of_the_package_for_its_stamp(tmp_path, monkeypatch):
    monkeypatch.setenv("LINKWRIGHT_CACHE", str(tmp_path))
    first = cache.stamp.__wrapped__()
    monkeypatch.setattr(cache, "open", None, raising=False)  # of source files; entries are opened otherwise
    assert cache.stamp.__wrapped__() == first


def test_a_stale_entry_is_not_used(folder, monkeypatch):
    assert answer()
    monkeypatch.setattr(cache, "stamp", lambda: "another version")
    assert answer()
    assert not answer()


def filled(inside, count=5):
    """Entries with dates, more than a limit of 1000 bytes allows."""
    for k in range(count):
        cache.write(f"entry{k}", bytes(250))
        os.utime(file_of(inside, f"entry{k}"), (k, k))


def test_the_oldest_entries_go_when_the_directory_is_full(inside, monkeypatch):
    monkeypatch.setattr(cache, "_TOTAL_LIMIT", 1000)
    filled(inside)
    cache.write("last", bytes(250))
    assert cache.read("entry0") is None
    assert cache.read("last") == bytes(250)
    assert sum(p.stat().st_size for p in inside.iterdir()) <= 1000


def test_what_is_no_entry_is_never_removed_or_counted(folder, inside, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "_TOTAL_LIMIT", 1000)
    outside = tmp_path / "victim"
    outside.write_bytes(b"precious")
    content = cache._MAGIC + b"a copy of an entry"
    foreign = {
        folder / "thesis.docx": b"precious" * 1000,
        folder / "entry9.lwk": content,
        inside / "thesis.docx": b"precious" * 1000,
        inside / "notes": content,
        inside / "thesis.lwk": b"precious" * 100,  # ours by name alone
        inside / ".draft.part": content,
        inside / ".thesis.lwk.01234567.part": b"precious",
    }
    for path, text in foreign.items():
        path.write_bytes(text)
        os.utime(path, (0, 0))
    (inside / "linked.lwk").symlink_to(outside)
    (inside / "folder.lwk").mkdir()
    filled(inside)
    cache.write("last", bytes(250))
    assert cache.read("entry0") is None
    assert cache.read("last") == bytes(250)
    assert {path: path.read_bytes() for path in foreign} == foreign
    assert outside.read_bytes() == b"precious"
    assert (inside / "linked.lwk").is_symlink()
    assert (inside / "folder.lwk").is_dir()


def test_what_a_killed_process_left_of_an_entry_goes_and_what_is_being_written_stays(inside, monkeypatch):
    monkeypatch.setattr(cache, "_TOTAL_LIMIT", 64)
    old, new = inside / ".a.lwk.01234567.part", inside / ".b.lwk.01234567.part"
    for path in (old, new):
        path.write_bytes(cache._MAGIC[:5])
    os.utime(old, (0, 0))
    cache.write("last", bytes(10))
    assert not old.exists()
    assert new.exists()


def test_a_directory_is_added_up_at_the_first_write_and_again_only_after_much_is_written(folder, monkeypatch):
    monkeypatch.setattr(cache, "_TOTAL_LIMIT", 64 * 1000)
    looks = []
    monkeypatch.setattr(cache, "_trim", looks.append)
    for k in range(6):
        cache.write(f"entry{k}", bytes(400))
    assert looks == [cache.directory()] * 2


def test_an_entry_that_is_too_large_is_not_kept(folder, monkeypatch):
    monkeypatch.setattr(cache, "_ENTRY_LIMIT", 100)
    cache.write("large", bytes(200))
    assert cache.read("large") is None


def test_writers_at_the_same_time_leave_whole_entries(folder):
    """Threads write two versions of the same entries and read them all the while: never a mixture."""
    versions = [bytes([k]) * 40_000 for k in (1, 2)]
    wrong, stop = [], threading.Event()

    def write(content):
        for _ in range(60):
            for name in ("a", "b", "c"):
                cache.write(name, content)

    def read():
        while not stop.is_set():
            for name in ("a", "b", "c"):
                found = cache.read(name)
                if found is not None and found not in versions:
                    wrong.append(name)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(content,)) for content in versions]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert not wrong
    assert all(cache.read(name) in versions for name in ("a", "b", "c"))
    assert len(entries(folder)) == 3


CHILD = """
import sys, hashlib
import numpy as np
import linkwright as lw
from linkwright.kernels.back_ends import compiled
from linkwright.kernels.llvm import compiler
made = []
inner = compiler.object_code
compiler.object_code = lambda text, **k: made.append(text) or inner(text, **k)
kernel = compiled(lw.record(lambda x: np.sin(x) * 2.0 + np.exp(x[0]) + np.tan(x), 3, name="wave"))
x = np.linspace(-1.0, 1.0, 60).reshape(20, 3)
y = kernel(x)
arm = lw.chain(3)
a = arm.forward_dynamics(*np.full((3, 3), 0.3))
a = arm.forward_dynamics(*np.full((3, 3), 0.3))
assert type(arm.forward_dynamics).__name__ == "builtin_function_or_method"
codes = [kernel.object_code(w) for w in (1, compiler.lanes())]
print(len(made), *(hashlib.sha256(c).hexdigest() for c in codes), hashlib.sha256(y.tobytes() + a.tobytes()).hexdigest())
"""


def child(folder):
    environment = {**os.environ, "LINKWRIGHT_CACHE": str(folder)}
    done = subprocess.run([sys.executable, "-c", CHILD], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    compilations, *rest = done.stdout.split()
    return int(compilations), rest


def test_code_holds_no_address_of_its_process(tmp_path):
    """Two processes without a common cache make the same bytes; a third runs those of the first, and agrees."""
    first, second = child(tmp_path / "one"), child(tmp_path / "two")
    assert first == second
    assert first[0] > 0
    third = child(tmp_path / "one")
    assert third[0] == 0
    assert third[1] == first[1]


def test_processes_that_start_together_share_a_cache(tmp_path):
    environment = {**os.environ, "LINKWRIGHT_CACHE": str(tmp_path / "cache")}
    jobs = [
        subprocess.Popen([sys.executable, "-c", CHILD], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    told = {tuple(job.communicate()[0].split()[1:]) for job in jobs}
    assert all(job.returncode == 0 for job in jobs)
    assert len(told) == 1
    assert not [p for p in entries(tmp_path / "cache") if p.suffix == ".part"]
    for entry in entries(tmp_path / "cache"):
        raw = entry.read_bytes()
        content = raw[len(cache._MAGIC) + 32 :]
        assert hashlib.sha256(entry.stem.encode() + b"\0" + content).digest() == raw[len(cache._MAGIC) :][:32]
