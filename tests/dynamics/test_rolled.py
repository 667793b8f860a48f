"""Recursions rolled into loops: the same answers as unrolled, plain or packed, and what may be packed."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from test_identities import numbers, states

import linkwright as lw
from linkwright.dynamics.functions import Request
from linkwright.dynamics.methods.by_name import METHODS
from linkwright.dynamics.programs import ProgramFactory
from linkwright.dynamics.traversals.buffers import Field, layout, slots
from linkwright.kernels.interpret.interpreter import run
from linkwright.kernels.variant import _idle
from linkwright.model.topology import span
from robots import relative

QUESTIONS = {
    "forward_dynamics": "q v tau",
    "inverse_dynamics": "q v tau",
    "bias_forces": "q v",
    "gravity_forces": "q",
    "mass_matrix": "q",
    "kinetic_energy": "q v",
    "potential_energy": "q",
    "center_of_mass": "q",
    "momentum": "q v",
    "integrate": "q v",
    "rate": "q v",
    "pose": "q",
    "twist": "q v",
}
MADE = {
    "chain": lambda: lw.chain(9),
    "screws": lambda: lw.chain(9, joint="screw"),
    "tree": lambda: lw.tree(13, 3),
    "mixed": lambda: lw.random_tree(14, 1, floating=True),
    "star": lambda: lw.random_tree(12, 2, branching=50),
    "mixed chain": lambda: lw.random_tree(12, 3, branching=1),
}


@pytest.mark.parametrize("made", MADE)
def test_packed_programs_give_what_unrolled_ones_give(made: str) -> None:
    mech = MADE[made]()
    q, v, tau = states(mech, 0)
    arrays = {"q": q, "v": v, "tau": tau}
    for function, names in QUESTIONS.items():
        options = {"frame": mech.bodies[mech.nb - 1].name} if function in ("pose", "twist") else {}
        options |= {"reference": "world"} if function == "twist" else {}
        options |= {"method": "articulated-body"} if function == "forward_dynamics" else {}
        request = Request(function, form="rolled", **options)
        program = ProgramFactory(mech.description).program(request, packed=True)
        given = [arrays[n] for n in names.split()]
        (found, *_) = run(program, given, len(q))
        wanted = numbers(mech, function, *given, form="unrolled", **options)
        assert relative(found.reshape(wanted.shape), wanted) < 1e-11, function
        if function in ("forward_dynamics", "mass_matrix", "pose"):
            answer = program(*given)  # in lanes, by LLVM
            assert relative(answer, wanted) < 1e-11, function


@pytest.mark.parametrize("method", METHODS)  # the assembly has no packed form of its own
def test_every_method_packed_under_wrenches(method: str) -> None:
    mech = lw.random_tree(11, 4)
    q, v, tau = states(mech, 1)
    wrenches = np.random.default_rng(2).standard_normal((3, mech.nb, 6))
    request = Request("forward_dynamics", method, wrenches=True, form="rolled")
    found = ProgramFactory(mech.description).program(request, packed=True)(q, v, tau, wrenches)
    wanted = numbers(mech, "forward_dynamics", q, v, tau, wrenches, wrenches=True, form="unrolled")
    assert relative(found, wanted) < 1e-11


@pytest.mark.compiled
def test_a_long_mixed_mechanism_moves_as_newton_and_euler_say() -> None:
    """The kernel's answer, one state and a batch, against another recursion, also rolled."""
    mech = lw.random_tree(300, 4)
    assert mech.programs.rolls(Request("forward_dynamics", "articulated-body"))
    q, v, tau = states(mech, 3, batch=9)
    a = mech.forward_dynamics(q, v, tau)
    assert relative(mech.inverse_dynamics(q, v, a), tau) < 1e-8
    assert relative(mech.forward_dynamics(q[0], v[0], tau[0]), a[0]) < 1e-10


def test_a_programs_derivatives_are_those_of_the_plain_form() -> None:
    """What `program` gives is not packed: every number has its own place, which reverse accumulation needs."""
    mech = lw.chain(70)
    program = mech.program("forward_dynamics")
    assert mech.program("forward_dynamics") is program
    q, v, tau = (x[0] for x in states(mech, 0, batch=1))
    a = mech.forward_dynamics(q, v, tau)
    seed = np.random.default_rng(0).standard_normal(70)
    _, _, _, bar_tau = program.reverse()(q, v, tau, seed)
    _, moved = program.forward()(q, v, tau, np.zeros(70), np.zeros(70), bar_tau)
    assert relative(program(q, v, tau), a) < 1e-12
    assert moved @ seed == pytest.approx(bar_tau @ bar_tau, rel=1e-9)  # (M⁻¹ x)·s = x·x for x = M⁻ᵀ s


# -- layout ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("made", MADE)
def test_no_two_links_have_one_slot_at_the_same_time(made: str) -> None:
    parent = span(MADE[made]().description).parent
    found, count = slots(parent)
    last = [max([i, *np.flatnonzero(parent == i)]) for i in range(len(parent))]
    for i, end in enumerate(last):
        assert not np.any(found[i + 1 : end + 1] == found[i])
    assert found.min() >= 1
    assert found.max() < count


def test_a_chain_needs_two_slots_and_a_random_one_few() -> None:
    assert slots(np.arange(-1, 999, dtype=np.int32))[1] == 3
    assert slots(span(lw.random_tree(5000, 0, branching=1).description).parent)[1] == 3


def test_a_place_is_used_again_after_its_last_reader() -> None:
    fields = {
        "terms": Field({0: 2, 1: 3}, {0}, here={1, 2}),
        "force": Field({0: 6, 1: 6}, {0}, here={1}),
        "us": Field({0: 8}, {1}, here={2}),
        "w": Field({0: 6, 1: 6}, {0}, up={0}),
        "below": Field({0: 5, 1: 5}, summed={1}, here={1}),
        "unread": Field({0: 9, 1: 9}, {0}),
    }
    packed, plain = layout(fields, 2, packed=True), layout(fields, 2, packed=False)
    assert packed.rows == [({"terms": 0, "force": 2, "us": 2}, 10), ({"terms": 0, "force": 3}, 9)]
    assert (packed.stride["carried"], packed.stride["sums"]) == (6, 5)
    assert "unread" not in packed.home
    assert plain.stride == {"rows": 28}
    assert plain.rows == [({"terms": 0, "force": 3, "us": 9, "w": 17, "below": 23}, 28)] * 2


def test_a_large_mechanism_keeps_its_memory_and_gives_it_back() -> None:
    mech = lw.chain(20_000)
    gc.collect()
    before = list(_idle)
    q, v, tau = 0.1 * np.random.default_rng(0).standard_normal((3, 20_000))
    first = mech.forward_dynamics(q, v, tau)
    kept = [piece for piece in _idle if piece not in before]
    assert len(kept) == 1
    assert np.array_equal(mech.forward_dynamics(q, v, tau), first)
    assert [piece for piece in _idle if piece not in before] == kept
    del mech
    assert [piece for piece in _idle if piece not in before] == []
