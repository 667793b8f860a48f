"""Who touches which numbers when, and what must start at zero: against a search number by number."""

from __future__ import annotations

import numpy as np
import pytest
import tape_programs as programs

import linkwright as lw
from linkwright.tape import dataflow
from linkwright.tape.build import ProgramBuilder, Ref, trace
from linkwright.tape.dataflow import accesses, related, starts
from linkwright.tape.program import ITEM, Copy, Each, Loop, Operand, Zero

SAMPLES = {
    "outward": programs.outward,
    "inward": programs.inward,
    "shared": programs.shared_operands,
    "parts": programs.overlapping_parts,
    "legs": programs.legs,
    "walk": programs.walk,
    "elimination": programs.elimination,
    "loop": programs.kepler,
    "solve": lambda: programs.solve("ltl"),
    "chain": lambda: lw.chain(70).program("forward_dynamics"),
    "tree": lambda: lw.random_tree(70, seed=3).program("inverse_dynamics"),
}


def plainly_unset(program):
    """{(buffer, number)} that is read, added to (and read some time) or shown before it is set, one by one."""
    every = [a for a in accesses(program) if program.buffers[a.buffer].role in ("temporary", "output")]
    runs = [
        (int(t), a.kind == "set", a.kind, (a.buffer, k))
        for a in every
        for first, t in zip(a.starts.tolist(), a.times.tolist(), strict=True)
        for k in range(first, first + a.size)
    ]
    outputs = {(k, n) for k, b in enumerate(program.buffers) if b.role == "output" for n in range(b.size)}
    needed = outputs | {place for _, _, kind, place in runs if kind == "read"}
    known, bare = set(), set()
    for _, _, kind, place in sorted(runs, key=lambda run: run[:2]):  # at one time, reads come first
        if kind == "set":
            known.add(place)
        elif place not in known and place in needed:
            bare.add(place)
    return bare | (outputs - known)


def numbers(program):
    return {
        (k, n)
        for k, unset in program.unset.items()
        for first, end in zip(unset.first.tolist(), unset.end.tolist(), strict=True)
        for n in range(first, end)
    }


@pytest.mark.parametrize("name", SAMPLES)
def test_what_must_start_at_zero_is_found_to_the_number(name):
    program = SAMPLES[name]()
    assert numbers(program) == plainly_unset(program)


@pytest.mark.parametrize("seed", range(12))
def test_what_must_start_at_zero_is_found_in_programs_of_any_strides(seed):
    rng = np.random.default_rng(seed)
    b = ProgramBuilder("any")
    q, y = b.input("q", (30,)), b.output("y", (23,))
    t = b.temporary("t", (41,))
    for _ in range(6):
        read, write = Ref(t.operand, (41,)), (t, y)[rng.integers(2)]
        size, items = int(rng.integers(1, 4)), int(rng.integers(1, 5))
        order = ("outward", "inward")[rng.integers(2)]
        block, _, _ = trace(lambda q, x: q * x.sum() + x, [(size,), (size,)])

        def moving(ref, length, size=size, items=items):
            room = length - size
            column = b.column(rng.integers(0, room // 2 + 1, items) // 2)
            return ref.part(int(rng.integers(0, room // 3 + 1)), (size,)).at((int(rng.integers(1, 3)), column))

        target = moving(write, write.operand.size)
        target = target.at(add=True) if rng.random() < 0.4 else target
        case = b.case(block, [q.part(0, (size,)).at((1, ITEM)), moving(read, 41)], [target])
        b.add(Each(items, (case,), order))
        if rng.random() < 0.3:
            first = int(rng.integers(0, 30))
            b.add(Zero(t.part(first, (int(rng.integers(1, 9)),)).operand))
    program = b.build()
    assert numbers(program) == plainly_unset(program)


def test_runs_of_unset_numbers_are_told_apart_and_by_rows():
    b = ProgramBuilder("rows")
    n = 5
    t, y = b.temporary("t", (n, 4)), b.output("y", (n,))
    block, _, _ = trace(lambda x: x + 1.0, [()])
    b.add(Each(n, (b.case(block, [t.part(2, ()).at((4, ITEM))], [y.part(0, ()).at((1, ITEM))]),)))
    unset = b.build().unset
    assert set(unset) == {0}
    assert unset[0].first.tolist() == [2, 6, 10, 14, 18]
    assert unset[0].whole == (2, 17)
    assert unset[0].within_rows(4) == [(2, 1)]


def test_what_is_added_to_and_never_read_need_not_be_cleared():
    b = ProgramBuilder("sums")
    q, t, y = b.input("q", ()), b.temporary("t", (2,)), b.output("y", ())
    block, _, _ = trace(lambda q: (q, q), [()])
    b.add(Each(1, (b.case(block, [q], [t.part(0, ()).at(add=True), y]),)))
    assert b.build().unset == {}


def test_a_body_that_reads_what_only_its_end_sets_starts_at_zero():
    b = ProgramBuilder("rounds")
    q, t, u, y = b.input("q", ()), b.temporary("t", ()), b.temporary("u", ()), b.output("y", ())
    block, _, _ = trace(lambda q, t: q + t, [(), ()])
    b.add(Loop(3, (Each(1, (b.case(block, [q, t], [u]),)),), ((t.operand, u.operand),)))
    b.add(Copy(t.operand, y.operand))
    assert set(b.build().unset) == {t.operand.buffer}
    b.statements[0] = Loop(0, b.statements[0].body, b.statements[0].carry)
    assert set(b.build().unset) == {t.operand.buffer}


@pytest.mark.parametrize("name", ["walk", "elimination"])
def test_walks_with_too_many_pairs_to_follow_clear_what_they_may_read(name, monkeypatch):
    exact = numbers(SAMPLES[name]())
    monkeypatch.setattr(dataflow, "_PAIRS", 0)
    assert exact <= numbers(SAMPLES[name]())


def test_every_item_is_related_to_its_ancestors():
    i, j = np.concatenate(list(related(np.array([-1, 0, 1, 0]), 4)), axis=1)
    assert sorted(zip(i.tolist(), j.tolist(), strict=True)) == [(1, 0), (2, 0), (2, 1), (3, 0)]


def test_places_beyond_32_bits_are_not_cut_off():
    columns = [np.array([2**30, 2**31 - 1], dtype=np.int32)]
    operand = Operand(0, 1, 5, ((8, 0),))
    assert starts(columns, operand, np.arange(2)).tolist() == [5 + 2**33, 5 + 8 * (2**31 - 1)]


def test_a_walk_reads_before_it_writes_and_an_item_before_the_next():
    scans = [a for a in accesses(programs.outward()) if len(a.times) > 1]
    assert scans
    assert all(np.all(np.diff(a.times) > 0) for a in scans)
    walk = programs.walk()
    step = [a for a in accesses(walk) if len(a.times) > 1]
    assert max(a.times.max() for a in step if a.kind == "read") <= min(a.times.min() for a in step if a.kind == "set")
