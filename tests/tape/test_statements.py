"""Statements: what they read and write, how they are visited and moved into another program."""

from __future__ import annotations

import dataclasses

import pytest
import tape_programs as programs

from linkwright.tape import statements as S
from linkwright.tape.statements import Case, Copy, Each, Loop, Mapping, Operand, Solve, Walk, Zero, nested, written

A, B, C, D = (Operand(k, 2) for k in range(4))
CARRY = Operand(-1, 2)
CASE = Case(0, (A, B), (C, dataclasses.replace(D, add=True)))
STATEMENTS = {
    "each": (Each(3, (CASE,)), [A, B], [C, dataclasses.replace(D, add=True)]),
    "walk": (Walk(3, 0, (Case(0, (A,), (C, CARRY)),), (Case(1, (CARRY, B), (D, CARRY)),)), [A, B], [C, D]),
    "loop": (Loop(2, (Copy(A, B),), ((C, D),), A), [D, A], [C]),
    "solve": (Solve("lu", A, B, C, 1, 1, 1), [A, B], [C]),
    "zero": (Zero(A), [], [A]),
    "copy": (Copy(A, B), [A], [B]),
}


class Names:
    """Gives the name of the method that was called."""

    def __getattr__(self, name):
        return lambda statement: name


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_statement_says_what_it_reads_and_writes(kind):
    statement, reads, writes = STATEMENTS[kind]
    assert (statement.reads(), statement.writes()) == (reads, writes)


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_visitor_is_called_by_the_kind_of_the_statement(kind):
    assert STATEMENTS[kind][0].accept(Names()) == kind


def test_every_kind_of_statement_has_a_method_of_visitors():
    visits = {name for name in vars(S.StatementVisitor) if not name.startswith("_")}
    assert visits == set(STATEMENTS) == {kind.__name__.lower() for kind in S.Statement.__args__}


def test_statements_inside_loops_are_found():
    inner = Zero(A)
    loop = Loop(2, (Loop(3, (inner,), ()),), ((B, C),))
    assert list(nested([loop, Zero(D)])) == [loop, loop.body[0], inner, Zero(D)]
    assert written([loop]) == {0, 1}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_statement_is_moved_operand_by_operand(kind):
    statement, reads, writes = STATEMENTS[kind]
    by = Mapping(
        lambda o: o if o.buffer < 0 else dataclasses.replace(o, buffer=o.buffer + 10),
        lambda c: c + 20,
        lambda b: b + 30,
    )
    moved = statement.mapped(by)
    assert [o.buffer for o in moved.reads()] == [o.buffer + 10 for o in reads]
    assert [o.buffer for o in moved.writes()] == [o.buffer + 10 for o in writes]
    assert [case.block for case in moved.cases] == [case.block + 30 for case in statement.cases]
    assert type(moved) is type(statement)


def test_columns_of_statements_are_moved_too():
    by = Mapping(lambda o: o, lambda c: c + 20, lambda b: b)
    assert Each(3, (CASE,), "outward", 1, 2).mapped(by) == Each(3, (CASE,), "outward", 21, 22)
    assert Walk(3, 0, (CASE,), (CASE,), 1).mapped(by) == Walk(3, 20, (CASE,), (CASE,), 21)
    assert Solve("ltl", A, B, C, 1, 1, 1, 4).mapped(by).parent == 24


def test_an_operand_begins_by_item_and_ancestor():
    columns = [[5, 7, 9], [1, 0, 2]]
    operand = Operand(0, 2, base=100, steps=((10, 0), (1, S.ITEM)), far=((3, 1),))
    assert operand.start(lambda column, item: columns[column][item], 2, 0) == 100 + 10 * 9 + 2 + 3 * 1


def test_a_program_knows_the_inputs_that_it_writes():
    assert programs.outward().written_inputs == frozenset()
    moved = dataclasses.replace(programs.outward(), statements=(Zero(Operand(0, 1)),))
    assert moved.written_inputs == {0}


def test_operands_meet_where_they_share_a_number_or_move_differently():
    here = S.Operand(0, 3, base=2, steps=((10, S.ITEM),))
    assert here.meets(S.Operand(0, 2, base=4, steps=((10, S.ITEM),)))
    assert not here.meets(S.Operand(0, 2, base=5, steps=((10, S.ITEM),)))
    assert here.meets(S.Operand(0, 2, base=5, steps=((10, 0),)))
    assert not here.meets(S.Operand(1, 3, base=2, steps=((10, S.ITEM),)))
    assert not here.meets(S.Operand(0, 0, base=3, steps=((10, S.ITEM),)))


def test_a_case_overlaps_where_an_output_lies_on_an_input_or_on_another_output():
    left, right, both = S.Operand(0, 2), S.Operand(0, 2, base=2), S.Operand(0, 4)
    assert not S.Case(0, (left,), (right,)).overlaps()
    assert S.Case(0, (left,), (both,)).overlaps()
    assert S.Case(0, (), (right, both)).overlaps()
    assert not S.Case(0, (left, both), ()).overlaps()
