"""Printed Python and C compute what the formulas say, and cost what they say."""

import ast
import ctypes
import math
import re
import shutil
import subprocess
from dataclasses import replace
from fractions import Fraction

import formulas
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwright.errors import LinkwrightError
from linkwright.model.expression import FUNCTIONS, Call, Name, by_parts
from linkwright.symbolic.derivation.exact_numbers import from_expression
from linkwright.symbolic.formulas.formula import Applied, Block, Sum, Symbol, evaluate
from linkwright.symbolic.printing import (
    Sheet,
    c_source,
    html_page,
    latex_document,
    markdown_page,
    operations,
    python_module,
)
from linkwright.symbolic.printing.sympy_out import to_sympy

few = settings(max_examples=20, deadline=None, derandomize=True)
compiler = shutil.which("gcc") or shutil.which("cc")
needs_compiler = pytest.mark.skipif(compiler is None, reason="no C compiler: gcc or cc is not in the PATH")
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def loaded(text: str) -> dict:
    space: dict = {}
    exec(compile(text, "printed", "exec"), space)
    return space


def close(made: float, formula: Sum, at: dict[str, float]) -> bool:
    return abs(made - evaluate(formula, at)) <= 1e-12 * formulas.magnitude(formula, at)


def counted(tree: ast.AST) -> tuple[int, int, int, int]:
    """Additions, multiplications, divisions and calls in code; a minus is one unless it is a literal's."""
    kinds = [0, 0, 0, 0]
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            kinds[{ast.Add: 0, ast.Sub: 0, ast.Mult: 1, ast.Div: 2}[type(node.op)]] += 1
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
            kinds[0] += 1
        elif isinstance(node, ast.Call):
            kinds[3] += 1
    return tuple(kinds)


def counted_c(text: str) -> tuple[int, int]:
    """Additions (a minus before a variable is one) and multiplications in C without the struct's stars."""
    code = re.sub(r"/\*.*?\*/|\*(?:at|p)\b|->", "", text, flags=re.DOTALL)
    return len(re.findall(r" [+-] |(?<=[=(]) ?-(?=[a-z(])|return -(?=[a-z(])", code)), code.count("*")


def point(sheet: Sheet, at: dict[str, float]) -> list:
    vectors = [[at[s.name] for s in group] for group in (sheet.coordinates, sheet.rates)]
    return [*vectors, {name: at[name] for name in sheet.values}]


@few
@given(formulas.blocks, formulas.values)
def test_printed_python_computes_the_formulas(block: Block, at: dict[str, float]) -> None:
    sheet = formulas.sheet(block)
    q, dq, p = point(sheet, at)
    module = loaded(python_module(sheet))
    uses_rates = "dq" in module["M"].__code__.co_varnames[: module["M"].__code__.co_argcount]
    made = module["M"](q, dq, p) if uses_rates else module["M"](q, p)
    for row in range(2):
        for column in range(2):
            entry = block.entries[2 * row + column]
            assert close(made[row][column], entry, at)


@few
@given(formulas.blocks)
def test_the_count_is_that_of_the_printed_code(block: Block) -> None:
    tree = ast.parse(python_module(formulas.sheet(block)))
    (function,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "M"]
    made = operations(block)
    assert (made.additions, made.multiplications, made.divisions, made.functions) == counted(function)


def test_the_arm_in_python_has_its_values_as_defaults_once_all_are_known() -> None:
    sheet = formulas.arm()
    assert "def M(q, p):" in python_module(sheet)
    known = {name: sheet.parameters[name] for name in ("m2", "m3", "l2", "lg2", "lg3", "g")}
    module = loaded(python_module(replace(sheet, blocks=sheet.blocks[:3], parameters=known)))
    wanted = evaluate(sheet.blocks[0].entries[4], {**known, "theta3": 0.3})
    assert module["M"]([0.1, 0.2, 0.3])[1][1] == pytest.approx(wanted, rel=1e-14)
    assert module["h"]([0.1, 0.2, 0.3], [0.0, 0.0, 0.0]) == [0.0, 0.0, 0.0]


def test_sums_of_thousands_of_terms_run_in_python() -> None:
    terms = tuple(formulas.term(k + 1, formulas.m2, formulas.cos(0, k % 7 + 1, 0)) for k in range(5000))
    sheet = Sheet("Long", "expanded", (Block("T", (), (Sum(terms),)),), formulas.q, (), (), {"m2": 2.0})
    made = loaded(python_module(sheet))["T"]([0.1, 0.2, 0.3])
    assert made == pytest.approx(evaluate(Sum(terms), {"m2": 2.0, "theta2": 0.2}), rel=1e-10)


def test_a_title_cannot_leave_its_comment() -> None:
    title = 'x"""\nboom = 1\n*/ int y; /*'
    sheet = Sheet(title, "a\nboom = 1", (Block("M", (), (Sum(),)),), formulas.q, notes=("n\nboom = 1",))
    assert "boom" not in loaded(python_module(sheet))
    assert c_source(sheet).count("*/") == 2


class Compiled:
    def __init__(self, folder, text: str) -> None:
        source, library = folder / "printed.c", folder / "printed.so"
        source.write_text(text, encoding="ascii")
        command = [compiler, *STRICT, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr[:2000] + text
        self.library = ctypes.CDLL(str(library))

    def __call__(self, name: str, inputs: list[list[float]], count: int) -> list[float]:
        out = (ctypes.c_double * count)()
        getattr(self.library, name)(*((ctypes.c_double * len(x))(*x) for x in inputs), out)
        return list(out)


@needs_compiler
def test_printed_c_computes_the_formulas_and_compiles_without_a_warning(tmp_path) -> None:
    found: list[tuple[Block, dict[str, float]]] = []

    @settings(max_examples=20, deadline=None, derandomize=True)
    @given(formulas.blocks, formulas.values)
    def gather(block: Block, at: dict[str, float]) -> None:
        found.append((block, at))

    gather()
    # One compilation for all: what each costs is the compiler's start.
    at = found[0][1]
    named = tuple(Block(f"b{k}", b.shape, b.entries) for k, (b, _) in enumerate(found))
    sheet = formulas.sheet(*named)
    library = Compiled(tmp_path, c_source(sheet))
    q, dq, p = point(sheet, at)
    module = loaded(python_module(sheet))
    for block in named:
        function = module[block.name]
        arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
        vectors = [q, dq] if "dq" in arguments else [q]
        made = library(f"Random_theta_equations_{block.name}", [*vectors, list(p.values())], 4)
        for value, entry in zip(made, block.entries, strict=True):
            assert close(value, entry, at)


def stays(function: str, count: int) -> bool:
    """Whether formulas hold the function itself; motion laws and remainders are read as their parts."""
    call = Call(function, tuple(Name(f"v{k}") for k in range(count)))
    return by_parts(call) is call


def every_function() -> tuple[Block, dict[str, float]]:
    """A block with every function that a formula may hold, at points that no rounding moves over an edge."""
    at = {f"v{k}": value for k, value in enumerate((0.7, 0.25, -0.5, 2.0, 3.0))}
    arguments = [Sum((formulas.term(1, Symbol(name)),)) for name in at]
    plain = [name for name, (count, _) in FUNCTIONS.items() if stays(name, count)]
    calls = [Applied(name, tuple(arguments[: FUNCTIONS[name][0]])) for name in plain]
    calls += [Applied(name, (arguments[2],)) for name in ("sign", "floor", "abs")]
    calls.append(Applied("lt", (arguments[2], arguments[0])))
    return Block("all", (len(calls),), tuple(Sum((formulas.term(2, call),)) for call in calls)), at


def test_every_function_is_right_in_python_and_sympy() -> None:
    block, at = every_function()
    wanted = pytest.approx([evaluate(e, at) for e in block.entries], rel=1e-14)
    assert loaded(python_module(Sheet("f", "f", (block,), (), (), (), at)))["all_"]() == wanted
    numbers = {sympy.Symbol(name): value for name, value in at.items()}
    assert [float(to_sympy(e).subs(numbers)) for e in block.entries] == wanted


@pytest.mark.parametrize("x", [-0.3, 0.05, 0.3, 0.6, 0.97, 1.4])
def test_motion_laws_and_remainders_are_formulas_of_their_parts(x: float) -> None:
    at = {"v0": x, "v1": 0.25, "v2": -0.5, "v3": 1.25, "v4": 3.0}
    composed = [name for name, (count, _) in FUNCTIONS.items() if not stays(name, count)]
    assert {"rise345", "mod"} <= set(composed)
    for name in composed:
        call = Call(name, tuple(Name(f"v{k}") for k in range(FUNCTIONS[name][0])))
        assert evaluate(from_expression(call), at) == pytest.approx(float(call.evaluate(at)), rel=1e-13, abs=1e-14)


@needs_compiler
def test_every_function_is_right_in_c(tmp_path) -> None:
    block, at = every_function()
    library = Compiled(tmp_path, c_source(Sheet("f", "f", (block,), (), (), (), at)))
    made = library("f_all", [list(at.values())], len(block.entries))
    assert made == pytest.approx([evaluate(e, at) for e in block.entries], rel=1e-14)


@needs_compiler
def test_the_arm_in_c_equals_its_formulas(tmp_path) -> None:
    sheet = formulas.arm()
    library = Compiled(tmp_path, c_source(sheet))
    at = {name: 0.3 + 0.1 * k for k, name in enumerate(sheet.symbols)}
    q, dq, p = point(sheet, at)
    for block in sheet.blocks:
        inputs = [q] if block.name in "Mg" else [q, dq]
        made = library(f"Three_link_arm_{block.name}", [*inputs, list(p.values())], len(block.entries))
        assert made == pytest.approx([evaluate(e, at) for e in block.entries], rel=1e-12, abs=1e-13)


@given(st.lists(st.text(min_size=1, max_size=6), min_size=2, max_size=6, unique=True))
@few
def test_any_names_become_different_identifiers(names: list[str]) -> None:
    from linkwright.symbolic.printing.printed_sheet import ascii_identifier, python_identifier

    for make in (ascii_identifier, python_identifier):
        made: list[str] = []
        for name in names:
            made.append(make(name, made))
        assert len(set(made)) == len(names)
        assert all(word.isidentifier() for word in made)
        assert make is python_identifier or all(word.isascii() for word in made)


@needs_compiler
def test_sums_of_thousands_of_terms_compile_in_c(tmp_path) -> None:
    m2, sin, cos, term = formulas.m2, formulas.sin, formulas.cos, formulas.term
    bracket = Sum(tuple(term((-1) ** k, formulas.l2, sin(k + 1, 0, 0)) for k in range(100)))
    terms = tuple(term((-1) ** k * (k + 1), (m2, 2), cos(0, k % 7 + 1, 0)) for k in range(3000))
    block = Block("h", (2,), (Sum(terms), Sum((term(-2, m2, bracket), *terms[:90]))))
    sheet = Sheet("Long", "expanded", (block,), formulas.q, formulas.dq, (), {"m2": 2.0, "l2": 0.5})
    at = {"theta1": 0.4, "theta2": 0.2, "theta3": 0.3, "m2": 2.0, "l2": 0.5}
    made = Compiled(tmp_path, c_source(sheet))("Long_h", [[0.4, 0.2, 0.3], [0.0] * 3, [2.0, 0.5]], 2)
    assert made == pytest.approx([evaluate(e, at) for e in block.entries], rel=1e-12, abs=1e-9)
    assert sum(counted_c(c_source(sheet))) == operations(block).additions + operations(block).multiplications


def huge(number: Fraction) -> Sheet:
    block = Block("h", (2,), (Sum(), Sum((formulas.term(number, formulas.m2),))))
    return Sheet("Huge", "expanded", (block,), formulas.q, formulas.dq, (), {"m2": 2.0})


@pytest.mark.parametrize("number", [Fraction(10**400), Fraction(1, 10**400)])
def test_a_number_beyond_floating_point_is_named_by_code_and_printed_by_texts(number: Fraction) -> None:
    sheet = huge(number)
    for printer in (python_module, c_source):
        with pytest.raises(LinkwrightError, match="h2 has a number"):
            printer(sheet)
    for text in (latex_document(sheet), markdown_page(sheet), html_page(sheet)):
        assert "400" in text


def test_a_quotient_of_whole_numbers_beyond_floating_point_is_a_number_of_code() -> None:
    sheet = huge(Fraction(10**400 + 1, 3 * 10**400))
    assert loaded(python_module(sheet))["h"]([0.0] * 3, [0.0] * 3)[1] == pytest.approx(2 / 3)


@needs_compiler
def test_what_is_no_number_is_not_lost_in_the_smaller_and_the_larger(tmp_path) -> None:
    one, other = Symbol("u"), Symbol("w")
    calls = [Applied(f, tuple(Sum((formulas.term(1, s),)) for s in (one, other))) for f in ("min", "max")]
    block = Block("b", (2,), tuple(Sum((formulas.term(1, call),)) for call in calls))
    sheet = Sheet("n", "n", (block,), (), (), (), {"u": 1.0, "w": 1.0})
    library, module = Compiled(tmp_path, c_source(sheet)), loaded(python_module(sheet))
    for pair in ([math.nan, 1.0], [1.0, math.nan]):
        made = [*library("n_b", [pair], 2), *module["b"](dict(zip("uw", pair, strict=True)))]
        assert all(map(math.isnan, made))
