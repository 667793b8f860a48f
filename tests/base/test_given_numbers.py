"""Every numeric function refuses what is no array of numbers, by a DtypeError or ShapeError and no other."""

import sys
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest

import linkwright as lw
from linkwright.base.arguments import exact_array, real_array, whole_number
from linkwright.errors import DtypeError, LinkwrightError, ModelError, ShapeError

N = 2
ZERO = np.zeros(N)
#: What is no array of N numbers. Each looks like one to some conversion of NumPy's.
BAD = {
    "objects": np.array([1.0, 2.0], dtype=object),
    "None": None,
    "None in a list": [None, 1.0],
    "text": "ab",
    "texts": ["1", "2"],
    "fractions": [Fraction(1, 2), Fraction(1, 3)],
    "complex": np.array([1j, 2.0]),
    "Booleans": [True, False],
    "dates": np.array(["2020-01-01"] * N, dtype="datetime64[D]"),
    "a set": {1, 2},
    "a dictionary": {},
    "ragged": [[1.0], [1.0, 2.0]],
    "masked": np.ma.masked_greater(np.array([0.0, 2.0]), 1.0),
}
NAMES = ("mass_matrix", "gravity_forces", "potential_energy", "center_of_mass")
MECH = lw.chain(N)
TIP = MECH.bodies[-1].name
#: Every public function that takes an array of N numbers.
CALLS = {
    **{name: getattr(MECH, name) for name in NAMES},
    "forward_dynamics q": lambda x: MECH.forward_dynamics(x, ZERO, ZERO),
    "forward_dynamics tau": lambda x: MECH.forward_dynamics(ZERO, ZERO, x),
    "forward_dynamics t": lambda x: MECH.forward_dynamics(ZERO, ZERO, ZERO, t=x),
    "forward_dynamics method": lambda x: MECH.forward_dynamics(x, ZERO, ZERO, method="mass-matrix"),
    "inverse_dynamics": lambda x: MECH.inverse_dynamics(ZERO, x, ZERO),
    "bias_forces": lambda x: MECH.bias_forces(ZERO, x),
    "integrate": lambda x: MECH.integrate(x, ZERO),
    "difference": lambda x: MECH.difference(x, ZERO),
    "pose": lambda x: MECH.pose(x, TIP),
    "jacobian": lambda x: MECH.jacobian(x, TIP),
    "twist": lambda x: MECH.twist(ZERO, x, TIP),
    "kinetic_energy": lambda x: MECH.kinetic_energy(ZERO, x),
    "momentum": lambda x: MECH.momentum(ZERO, x),
    "derivatives": lambda x: MECH.forward_dynamics_derivatives(x, ZERO, ZERO),
    "reactions": lambda x: MECH.reactions(ZERO, x, ZERO),
    "linearise": lambda x: MECH.linearise(x, ZERO, ZERO),
    "project": lambda x: MECH.project(x, ZERO),
    "rollout q0": lambda x: lw.rollout(MECH, x, ZERO, 0.01, 2),
    "rollout v0": lambda x: lw.rollout(MECH, ZERO, x, 0.01, 2),
    "program": lambda x: lw.record(lambda y: 2.0 * y, (N,))(x),
    "bound": lambda x: lw.record(lambda y: 2.0 * y, (N,)).bound([x], [np.zeros(N)]),
}
#: Those for which None means the default.
MAY_BE_NONE = {
    "assemble": MECH.assemble,
    "equilibrium": MECH.equilibrium,
    "simulate q0": lambda x: lw.simulate(MECH, 0.01, q0=x),
    "simulate v0": lambda x: lw.simulate(MECH, 0.01, v0=x),
    "simulate tau": lambda x: lw.simulate(MECH, 0.01, tau=x),
    "simulate times": lambda x: lw.simulate(MECH, 2.0, saving=lw.Saving(times=x)),
    "rollout tau": lambda x: lw.rollout(MECH, ZERO, ZERO, 0.01, 2, tau=x),
    "analyse times": lambda x: lw.analyse(MECH, times=x),
}


@pytest.mark.parametrize("call", [*CALLS, *MAY_BE_NONE])
def test_what_is_no_array_of_numbers_is_refused_by_name(call):
    function = (CALLS | MAY_BE_NONE)[call]
    for what, value in BAD.items():
        if value is None and call in MAY_BE_NONE:
            continue
        with pytest.raises((DtypeError, ShapeError)) as raised:
            function(value)
        assert str(raised.value), what


def test_a_map_over_objects_fails_and_does_not_end_early():
    states = [ZERO, np.array([1.0, 2.0], dtype=object), ZERO]
    with pytest.raises(DtypeError):
        list(map(MECH.mass_matrix, states))


class Ending:
    """What ends an iteration when it is made an array."""

    def __array__(self, *args, **kwargs):
        raise StopIteration


def test_what_cannot_become_an_array_is_named_whatever_it_raises():
    with pytest.raises(DtypeError, match="q cannot be made an array"):
        MECH.mass_matrix(Ending())


def test_whole_and_smaller_numbers_are_converted_and_float64_is_not_copied():
    given = np.arange(3.0)
    assert real_array("x", given) is given
    for kind in (np.int8, np.uint64, np.float16, np.float32):
        array = real_array("x", np.arange(3, dtype=kind))
        assert array.dtype == np.float64
        assert array.tolist() == [0.0, 1.0, 2.0]
    assert real_array("x", np.arange(3.0, dtype=">f8")).tolist() == [0.0, 1.0, 2.0]


class Lying(np.ndarray):
    """An array that says it is larger than its memory."""

    shape = property(lambda self: (1000, N))  # type: ignore[assignment]
    flags = property(lambda self: np.zeros(1).flags)  # type: ignore[assignment]
    nbytes = 10**9  # type: ignore[assignment]


def lying(size=N):
    return np.zeros(size).view(Lying)


def test_an_array_that_says_it_is_larger_than_its_memory_is_never_written_outside_of_it():
    q = np.zeros((1000, N))
    program = lw.record(lambda x: 2.0 * x, (N,))
    for call in (
        lambda: MECH.gravity_forces(q, out=lying()),
        lambda: program(q, out=lying()),
        lambda: program.bound([lying(1)], [np.zeros(N)]),
        lambda: program.bound([np.zeros(N)], [lying(1)]),
        lambda: program.marched([lying(1)], [np.zeros((1000, N))], 1000),
        lambda: program.marched([np.zeros(N)], [lying()], 1000),
    ):
        with pytest.raises(ShapeError):
            call()


def test_an_array_that_says_it_is_larger_than_its_memory_is_read_as_it_is():
    assert MECH.gravity_forces(lying()).shape == (N,)
    with pytest.raises(ShapeError):
        MECH.gravity_forces(lying(1))


def test_an_array_that_cannot_be_written_out_is_no_number():
    for call in (lambda: lw.chain(lying()), lambda: lw.simulate(MECH, lying())):
        with pytest.raises(ModelError, match="of type Lying"):
            call()


def test_a_subclass_as_out_is_written_and_given_back():
    class Named(np.ndarray):
        pass

    out = np.zeros(N).view(Named)
    assert MECH.gravity_forces(np.full(N, 0.3), out=out) is out
    assert out.tolist() == MECH.gravity_forces(np.full(N, 0.3)).tolist()
    transposed = np.zeros((N, 2)).view(Named).T  # not contiguous
    states = np.array([[0.1, 0.2], [0.3, 0.4]])
    assert MECH.gravity_forces(states, out=transposed) is transposed
    assert transposed.tolist() == MECH.gravity_forces(states).tolist()


def test_read_only_and_masked_arrays_are_no_outputs():
    out = np.zeros(N)
    out.flags.writeable = False
    program = lw.record(lambda x: 2.0 * x, (N,))
    with pytest.raises(ShapeError, match="read-only"):
        program.bound([np.zeros(N)], [out])
    with pytest.raises(DtypeError, match="masked"):
        program(np.zeros(N), out=np.ma.zeros(N))
    assert exact_array("x", [1.0]) is None


def test_whole_numbers_are_whole():
    assert whole_number("n", np.int64(3)) == 3
    for bad in (2.5, 3.0, "3", None, True, [3], 10.0**20):
        with pytest.raises(ModelError, match="n must be a whole number, not"):
            whole_number("n", bad)
    with pytest.raises(ModelError, match="from 1 on, not 0"):
        whole_number("n", 0, 1)
    with pytest.raises(LinkwrightError, match="n is 11; 10 is the most"):
        whole_number("n", 11, 1, 10)


def test_arrays_are_taken_while_another_thread_imports_masked_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    half_imported = ModuleType("numpy.ma")  # it is among the modules before its names are
    monkeypatch.setitem(sys.modules, "numpy.ma", half_imported)
    assert real_array("q", [1, 2]).dtype == np.float64
