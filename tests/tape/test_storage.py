import io
import json
import os
import stat
import zipfile
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import linkwright.tape.block as F
from linkwright.errors import FormatError, LinkwrightError
from linkwright.kernels.interpret.interpreter import run
from linkwright.tape.build import ProgramBuilder, Ref, record, trace
from linkwright.tape.operations import Table
from linkwright.tape.program import ITEM, Copy, Each, Loop, Operand, Program, Solve, Walk, Zero
from linkwright.tape.program_checks import Invalid, validate
from linkwright.tape.program_files import load, save


def everything() -> Program:
    """Every statement in one program: a scan, a walk, a loop, a solver, a table."""
    n, parent = 5, np.array([-1, 0, 0, 2, 3])
    b = ProgramBuilder("everything τ")
    q, y, x = b.input("q", (n,)), b.output("y", (n, n)), b.output("x", (n, 2))
    rows, done = b.temporary("rows", (n + 1,)), b.temporary("done", ())
    data = b.data("numbers", np.linspace(0.5, 1.5, 2 * n).reshape(n, 2))
    above, kinds, own = b.column(parent + 1), b.column(np.arange(n) % 2), b.column(n * np.arange(n))
    tree = b.column(parent)
    spline = Table.spline([-1.0, 0.0, 2.0], [0.0, 1.0, 0.5])
    b.add(Zero(rows.operand))
    blocks = [
        trace(f, [(), (), ()])[0] for f in (lambda a, p, d: F.table(a, spline) + p * d, lambda a, p, d: a * d - p)
    ]
    inputs = [q.part(0, ()).at((1, ITEM)), rows.part(0, ()).at((1, above)), data.part(1, ()).at((2, ITEM))]
    target = rows.part(1, ()).at((1, ITEM))
    b.add(Each(n, tuple(b.case(k, inputs, [target]) for k in blocks), "outward", kinds))
    carry = Ref(Operand(-1, 1), ())
    start, _, _ = trace(lambda a: (a * a + 4.0, np.sin(a)), [()])
    step, _, _ = trace(lambda c, a: (0.1 * c, c * np.cos(a)), [(), ()])
    first = b.case(start, [target], [y.part(0, ()).at((n + 1, ITEM)), carry])
    entry = y.part(0, ()).at((1, own), far=((1, ITEM),))
    following = b.case(step, [carry, rows.part(1, ()).at(far=((1, ITEM),))], [entry, carry])
    b.add(Walk(n, tree, (first,), (following,)))
    shrink, _, _ = trace(lambda r: (0.5 * r, r[1] < 0.01), [(n + 1,)])
    half = b.temporary("half", (n + 1,))
    body = Each(1, (b.case(shrink, [rows], [half, done]),))
    b.add(Loop(3, (body,), ((rows.operand, half.operand),), done.operand))
    b.add(Solve("ltl", y.operand, data.operand, x.operand, n, n, 2, tree))
    b.add(Copy(rows.part(0, (2,)).operand, x.part(0, (2,)).operand))
    return b.build(single=False)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "program.lwp"
    save(everything(), path)
    return path


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, content, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def edited(path, change):
    """Rewrite the file with its header changed."""
    content = members(path)
    header = json.loads(content["header.json"])
    change(header)
    write(path, {**content, "header.json": json.dumps(header)})


# -- what is good --------------------------------------------------------------------------------------
def test_a_program_comes_back_whole(file):
    program, back = everything(), load(file)
    assert back.digest == program.digest
    assert back.name == program.name
    assert back.single is program.single is False
    assert back.statements == program.statements
    q = np.random.default_rng(0).uniform(-1, 1, (3, 5))
    for a, b in zip(run(program, [q], 3), run(back, [q], 3), strict=True):
        np.testing.assert_array_equal(a, b)


def test_numbers_that_are_not_numbers_come_back_too(tmp_path):
    program = record(lambda: np.array([np.nan, -0.0, np.inf, 5e-324]))
    save(program, tmp_path / "p")
    assert load(tmp_path / "p").blocks[0].constants.tobytes() == program.blocks[0].constants.tobytes()


def test_an_empty_program_comes_back(tmp_path):
    save(ProgramBuilder("nothing").build(), tmp_path / "p")
    assert load(tmp_path / "p").statements == ()


def test_equal_programs_are_equal_files(tmp_path):
    for name in "ab":
        save(everything(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_numpy_opens_the_arrays(file):
    with np.load(file, allow_pickle=False) as arrays:
        assert arrays["operations"].dtype == np.uint8


def test_the_program_saves_itself(tmp_path):
    everything().save(tmp_path / "p")
    assert load(str(tmp_path / "p")).digest == everything().digest


def test_a_walk_may_pack_its_rows_by_ancestors(tmp_path):
    """Each item's ancestors stand at its own start: the last, near the root, would overrun with another's depth."""
    parent = np.array([-1, 0, 1, 0])
    depth, start = np.array([0, 1, 2, 1]), np.array([0, 0, 1, 3])
    b = ProgramBuilder("packed")
    q, y = b.input("q", (4,)), b.output("y", (4,))
    carry = Ref(Operand(-1, 1), ())
    one, _, _ = trace(lambda a: a * 2.0, [()])
    two, _, _ = trace(lambda c: (c, c + 1.0), [()])
    first = b.case(one, [q.part(0, ()).at((1, ITEM))], [carry])
    entry = y.part(0, ()).at((1, b.column(start)), far=((1, b.column(depth)),))
    b.add(Walk(4, b.column(parent), (first,), (b.case(two, [carry], [entry, carry]),)))
    save(b.build(), tmp_path / "p")
    load(tmp_path / "p")


# -- writing whole or not at all ------------------------------------------------------------------------
def test_a_failed_write_leaves_the_old_file_and_nothing_else(file, monkeypatch):
    before = file.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(LinkwrightError, match="disk full"):
        save(record(np.sin, ()), file)
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == [file.name]


@pytest.mark.skipif(os.name == "nt", reason="file modes are not those of POSIX")
def test_the_file_has_the_mode_that_the_umask_gives(tmp_path):
    old = os.umask(0o027)
    try:
        save(record(np.sin, ()), tmp_path / "p")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "p").stat().st_mode) == 0o640


def test_a_file_with_labels_that_mean_nothing_is_read(file):
    edited(file, lambda header: header["labels"].update(method="test", sizes=[1, 2]))
    assert load(file).digest == everything().digest


@pytest.mark.parametrize("single", [None, True, False])
def test_whether_a_call_gives_one_array_comes_back(single, tmp_path):
    program = replace(everything(), single=single)
    save(program, tmp_path / "p")
    assert load(tmp_path / "p").single is single


# -- what is damaged -----------------------------------------------------------------------------------
def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FormatError, match="none: cannot be read: No such file"):
        load(tmp_path / "none")


def test_damage_is_an_error_that_names_the_file(tmp_path):
    (tmp_path / "p.lwp").write_bytes(b"not a zip")
    with pytest.raises(FormatError, match=r"p\.lwp"):
        load(tmp_path / "p.lwp")


def test_a_file_cut_short_anywhere_is_refused(file):
    content = file.read_bytes()
    for length in range(0, len(content), 37):
        file.write_bytes(content[:length])
        with pytest.raises(FormatError):
            load(file)


def test_a_flipped_byte_is_refused_or_harmless(file):
    content, digest = file.read_bytes(), everything().digest
    for place in range(0, len(content), 3):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        with suppress(FormatError):
            assert load(file).digest == digest  # in a date or an attribute of the zip


@pytest.mark.parametrize("seed", range(4))
def test_header_values_changed_at_random_are_refused_or_make_a_program_that_runs(file, seed):
    rng = np.random.default_rng(seed)
    content = members(file)
    text = content["header.json"].decode()
    values = [-1, 0, 1, 3, 2**31 - 1, 2**40, 10**30, None, True, 1.5, "x", [], {}, [[1, 2]], "data", "output", "lu"]

    def change(node, where, into):
        spots = []

        def visit(x):
            pairs = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ()
            for key, child in pairs:
                spots.append((x, key))
                visit(child)

        visit(node)
        parent, key = spots[where % len(spots)]
        parent[key] = into

    for _ in range(400):
        header = json.loads(text)
        change(header, int(rng.integers(1 << 30)), values[int(rng.integers(len(values)))])
        write(file, {**content, "header.json": json.dumps(header)})
        try:
            program = load(file)
        except FormatError:
            continue
        if sum(b.size for b in program.buffers) < 10**6 and sum(program.count().values()) < 10**5:
            run(program, [np.zeros((1, b.size)) for b in program.inputs], 1)


# -- what is malicious -----------------------------------------------------------------------------------
def each(header):
    return header["statements"][1]


def walk(header):
    return header["statements"][2]


CHANGES = {
    "an unknown format": (lambda h: h.update(format="zip"), "header"),
    "a later version": (lambda h: h.update(version=99), "version 99"),
    "no buffers": (lambda h: h.pop("buffers"), "buffers"),
    "a huge buffer": (lambda h: h["buffers"][3].update(shape=[2**30, 2**30]), "too large"),
    "many large buffers": (lambda h: h["buffers"].extend([{**h["buffers"][3], "shape": [2**30]}] * 3), "more than"),
    "a length below zero": (lambda h: h["buffers"][3].update(shape=[-4]), "length of buffer"),
    "a boolean for a length": (lambda h: h["buffers"][3].update(shape=[True]), "length of buffer"),
    "a role that is not": (lambda h: h["buffers"][3].update(role="heap"), "heap"),
    "data that is not there": (lambda h: h["buffers"][3].update(role="data"), "too short"),
    "numbers left over": (lambda h: h["columns"].pop(), "'columns' is too long"),
    "more operations": (lambda h: h["blocks"][0].update(operations=2**31 - 1), "too short"),
    "a block that is not": (lambda h: each(h)["cases"][0].update(block=77), "block 77"),
    "a buffer that is not": (lambda h: each(h)["cases"][0]["inputs"][0].update(buffer=50), "buffer 50"),
    "a carry outside a walk": (lambda h: each(h)["cases"][0]["inputs"][0].update(buffer=-1), "buffer -1"),
    "a column that is not": (lambda h: each(h)["cases"][0]["inputs"][1].update(steps=[[1, 9]]), "column 9"),
    "a column below the item": (lambda h: each(h)["cases"][0]["inputs"][1].update(steps=[[1, -2]]), "column -2"),
    "an address past the end": (lambda h: each(h)["cases"][0]["inputs"][0].update(base=1), "reaches"),
    "an address before the start": (lambda h: each(h)["cases"][0]["inputs"][0].update(base=-1), "reaches"),
    "a stride past the end": (lambda h: each(h)["cases"][1]["outputs"][0].update(steps=[[2, -1]]), "reaches"),
    "a stride that wraps round": (
        lambda h: each(h)["cases"][0]["inputs"][1].update(steps=[[2**61, 0]] * 4),
        "moves by",
    ),
    "an operand too wide": (lambda h: each(h)["cases"][0]["inputs"][0].update(size=2), "numbers that its block has"),
    "more items than a column": (lambda h: each(h).update(items=6), "column"),
    "no way to choose": (lambda h: each(h).update(dispatch=None), "no column to choose"),
    "a choice that is not": (lambda h: each(h)["cases"].pop(), "case that is not there"),
    "an order that is not": (lambda h: each(h).update(order="sideways"), "sideways"),
    "a write to data": (lambda h: h["statements"][0]["target"].update(buffer=5), "writes to the data"),
    "parents by a column that rises": (lambda h: walk(h).update(parent=2), "parent that is not there"),
    "a walk without its carry": (lambda h: walk(h)["step"][0]["inputs"].reverse(), "carry"),
    "a walk in no order": (lambda h: walk(h).update(order="map"), "'order' of a walk is 'map'"),
    "a walk with steps missing": (lambda h: walk(h)["step"].clear(), "0 steps"),
    "a far address past the end": (lambda h: walk(h)["step"][0]["outputs"][0].update(base=9), "reaches"),
    "a matrix too small": (lambda h: h["statements"][4].update(rows=4, columns=4), "operand"),
    "a matrix that is not square": (lambda h: h["statements"][4].update(rows=4), "4 rows"),
    "rows without parents": (lambda h: h["statements"][4].update(parent=None), "no column of parents"),
    "parents that come after": (lambda h: h["statements"][4].update(parent=0), "parent does not come before"),
    "a solver that is not": (lambda h: h["statements"][4].update(method="magic"), "magic"),
    "a copy of unequal parts": (lambda h: h["statements"][5]["source"].update(size=1), "1 numbers, not 2"),
    "a loop's flag of no numbers": (lambda h: h["statements"][3]["done"].update(size=0), "loop's end"),
    "rounds below zero": (lambda h: h["statements"][3].update(count=-1), "count"),
    "a statement that is not": (lambda h: h["statements"][0].update({"is": "Exec"}), "Exec"),
    "labels that are a list": (lambda h: h.update(labels=[]), "labels"),
    "a number for whether a call gives one array": (lambda h: h["labels"].update(single=1), "single"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_header_is_refused_that_has(what, file):
    change, message = CHANGES[what]
    edited(file, change)
    with pytest.raises(FormatError, match=message) as caught:
        load(file)
    assert caught.value.file == str(file)


def test_items_without_end_take_no_memory(tmp_path):
    save(record(lambda x: 2.0 * x, ()), tmp_path / "p")
    edited(tmp_path / "p", lambda h: h["statements"][0].update(items=2**31 - 1))
    assert load(tmp_path / "p").statements[0].items == 2**31 - 1
    edited(tmp_path / "p", lambda h: h["statements"][0]["cases"][0]["inputs"][0].update(steps=[[1, ITEM]]))
    with pytest.raises(FormatError, match="reaches"):
        load(tmp_path / "p")


def test_loops_nested_without_end_are_refused(file):
    def nest(header):
        inner = header["statements"][3]
        for _ in range(100):
            inner = {**header["statements"][3], "body": [inner]}
        header["statements"][3] = inner

    edited(file, nest)
    with pytest.raises(FormatError, match="nested"):
        load(file)


def test_json_nested_without_end_is_refused(file):
    content = members(file)
    write(file, {**content, "header.json": "[" * 200_000})
    with pytest.raises(FormatError):
        load(file)


def test_parents_in_a_circle_are_refused():
    program = everything()
    walk_at = next(k for k, s in enumerate(program.statements) if isinstance(s, Walk))
    column = program.statements[walk_at].parent
    columns = list(program.columns)
    columns[column] = np.array([2, 0, 1, -1, 3], dtype=np.int32)
    with pytest.raises(Invalid, match="circle"):
        validate(replace(program, columns=tuple(columns), statements=program.statements[: walk_at + 1]))


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("op", 200, "operation that does not exist"),
        ("args", 10**6, "not there yet"),
        ("args", -1, "not there yet"),
        ("outputs", 10**6, "output that is no value"),
        ("outputs", -1, "output that is no value"),
    ],
)
def test_a_block_is_refused_whose_numbers_point_nowhere(part, value, message):
    program = everything()
    block = program.blocks[0]
    array = getattr(block, part).copy()
    array[0] = value
    with pytest.raises(Invalid, match=message):
        validate(replace(program, blocks=(replace(block, **{part: array}), *program.blocks[1:])))


def test_an_operation_cannot_read_itself():
    program = record(lambda x: np.sin(x), ())
    block = program.blocks[0]
    args = block.args.copy()
    args[0, 0] = block.first_operation
    with pytest.raises(Invalid, match="not there yet"):
        validate(replace(program, blocks=(replace(block, args=args),)))


@pytest.mark.parametrize("breaks", [(0.0, 0.0), (1.0, 0.0), (0.0, np.nan), (0.0,), (0.0, 1.0, 2.0)])
def test_a_table_is_refused_whose_breaks_do_not_increase(breaks):
    program = record(lambda x: F.table(x, Table((0.0, 1.0), ((1.0, 2.0, 3.0, 4.0),))), ())
    table = Table(breaks, program.blocks[0].tables[0].coefficients)
    with pytest.raises(Invalid, match="table"):
        validate(replace(program, blocks=(replace(program.blocks[0], tables=(table,)),)))


def test_compressed_members_are_refused_since_they_could_unpack_to_anything(file):
    write(file, members(file), zipfile.ZIP_DEFLATED)
    with pytest.raises(FormatError, match="compressed"):
        load(file)


def test_further_members_are_refused(file):
    write(file, {**members(file), "../evil.py": b""})
    with pytest.raises(FormatError, match="members"):
        load(file)


def test_pickled_arrays_are_refused(file):
    content = io.BytesIO()
    np.save(content, np.array([{}], dtype=object), allow_pickle=True)
    write(file, {**members(file), "numbers.npy": content.getvalue()})
    with pytest.raises(FormatError, match="type"):
        load(file)


def test_an_array_that_claims_more_than_it_holds_is_refused(file):
    content = members(file)
    head = content["numbers.npy"].replace(b"'shape': (", b"'shape': (9")
    write(file, {**content, "numbers.npy": head})
    with pytest.raises(FormatError, match="size"):
        load(file)
