"""LaTeX reads as textbooks print, and every document compiles with pdflatex's base packages."""

import shutil
import subprocess
from dataclasses import replace
from fractions import Fraction

import formulas
import pytest
from formulas import cos, dq, l2, lg3, m2, m3, sin, term
from hypothesis import given, settings

from linkwright.errors import LinkwrightError
from linkwright.symbolic.formulas.formula import Applied, Block, Root, Sum, Symbol
from linkwright.symbolic.printing import Sheet, latex_block, latex_document
from linkwright.symbolic.printing.latex import Latex

pdflatex = shutil.which("pdflatex")
needs_latex = pytest.mark.skipif(pdflatex is None, reason="no pdflatex: install texlive-latex-base or its like")


@pytest.mark.parametrize(
    ("formula", "written"),
    [
        (Sum(), "0"),
        (Sum((term(-1, m3, sin(0, 2, 2)), term(2, m2))), r"-m_{3}\sin(2(\theta_{2} + \theta_{3})) + 2m_{2}"),
        (Sum((term(Fraction(1, 2), cos(0, 1, 0), (lg3, 2)),)), r"\tfrac{1}{2}l_{g3}^{2}\cos \theta_{2}"),
        (Sum((term(1, (dq[0], 2), (cos(0, 2, 0), 2)),)), r"\dot{\theta}_{1}^{2}\cos^{2} 2\theta_{2}"),
        (Sum((term(Fraction(3, 2), Root(3), (l2, -1)),)), r"\dfrac{3\,\sqrt{3}}{2\,l_{2}}"),
        (Sum((term(1, Symbol("crank_length2")),)), r"\mathit{crank\_length}_{2}"),
        (Sum((term(1, Symbol("φ")), term(1, Symbol("mé")))), r"\phi + m_{e}"),
        (Sum((term(1, Applied("tanh", (Sum((term(100, dq[0]),)),))),)), r"\tanh(100\dot{\theta}_{1})"),
        (Sum((term(Fraction(12345, 10**8), m2),)), r"0.00012345\,m_{2}"),
        (Sum((term(Fraction(12345, 10**10), m2),)), r"1.2345\cdot 10^{-6}\,m_{2}"),
    ],
)
def test_formulas_read_as_textbooks_print(formula: Sum, written: str) -> None:
    assert Latex().sum(formula) == written


def test_short_blocks_are_matrices_and_long_ones_go_entry_by_entry() -> None:
    mass, _, gravity, _ = formulas.arm().blocks
    assert r"\begin{bmatrix}" in latex_block(gravity)
    long = latex_block(mass, width=40)
    assert long.startswith(r"\begin{align*}")
    assert "M_{21}" not in long
    assert max(map(len, long.splitlines())) < 160


def compiled(folder, text: str) -> str:
    """What pdflatex says of a document that it made."""
    (folder / "made.tex").write_text(text, encoding="ascii")
    command = [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "made.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    said = done.stdout.decode("latin-1")
    assert done.returncode == 0, said[-2000:]
    return said


@needs_latex
def test_the_arm_is_a_document_without_a_line_too_long(tmp_path) -> None:
    assert "Overfull" not in compiled(tmp_path, latex_document(formulas.arm()))


@needs_latex
def test_a_long_table_of_symbols_is_right_after_one_run(tmp_path) -> None:
    values = {f"{letter}{k}": 1.0 / k for k in range(1, 60) for letter in ("m", "crank_length_")}
    said = compiled(tmp_path, latex_document(replace(formulas.arm(), parameters=values)))
    assert "[4]" in said
    assert "have changed" not in said


@needs_latex
def test_any_formula_and_any_text_compile(tmp_path) -> None:
    found: list[Block] = []

    @settings(max_examples=15, deadline=None, derandomize=True)
    @given(formulas.blocks)
    def gather(block: Block) -> None:
        found.append(Block(f"b{len(found)}", block.shape, block.entries, block.symmetric))

    gather()
    names = ["a_b^c", "50%", "x{", "\\input{x}", "中", "$", "#1", "~", "ḧ", "TIME", "I", "Ω2", "", " "]
    odd = Block("potential_energy", (), (Sum(tuple(term(1, Symbol(n)) for n in names)),))
    sheet = formulas.sheet(*found, odd)
    strange = replace(sheet, title="Türkçe θ & 中文 \\undefined {", notes=("50% of #1 — 'q̇'_^~<>|\"",))
    compiled(tmp_path, latex_document(strange))


@needs_latex
@pytest.mark.slow
def test_a_sum_of_thousands_of_terms_compiles(tmp_path) -> None:
    terms = tuple(term(k + 1, m2, m3, l2, cos(0, k % 7 + 1, 0), sin(k % 5 + 1, 0, 1)) for k in range(4_000))
    compiled(tmp_path, latex_document(Sheet("Long", "expanded", (Block("h", (1,), (Sum(terms),)),), formulas.q)))


def test_a_document_that_nobody_could_read_is_refused_with_advice() -> None:
    terms = tuple(term(k + 1, m2, cos(0, k + 1, 0)) for k in range(20_001))
    with pytest.raises(LinkwrightError, match=r'20,001 terms.*"recursive"'):
        latex_document(Sheet("Long", "expanded", (Block("h", (1,), (Sum(terms),)),), formulas.q))
