"""The web page and the Markdown page hold every formula, and no name from a file can be markup in them."""

from dataclasses import replace

import formulas
import pytest
from formulas import cos, m2, term
from hypothesis import given, settings
from pages import Reader

from linkwright.symbolic.formulas.formula import Block, Sum, Symbol
from linkwright.symbolic.printing import (
    Sheet,
    c_source,
    html_page,
    latex_document,
    markdown_page,
    python_module,
)
from linkwright.symbolic.printing.mathml import MathML, math


@settings(max_examples=25, deadline=None, derandomize=True)
@given(formulas.formulas)
def test_mathml_is_well_formed(formula: Sum) -> None:
    Reader(math(MathML().sum(formula)))


def test_the_page_has_every_section_and_its_contents_lead_there() -> None:
    page = Reader(html_page(formulas.arm()))
    headings = ("Equation of motion", "Mass matrix", "Gravity forces", "Friction forces", "Symbols", "Size and cost")
    for heading in headings:
        assert page.words.count(heading) == 2
    assert {f"#{target}" for target in page.targets} == page.links


def test_the_page_needs_no_network_and_no_script() -> None:
    text = html_page(formulas.arm())
    assert "<script" not in text
    assert "default-src 'none'" in text
    assert "http://" not in text
    assert "https://" not in text


EVIL = ["<script>alert(1)</script>", '"><img src=x onerror=y>', "&lt;b&gt;", "a\ud800b", "</style>"]


@pytest.mark.parametrize("evil", EVIL)
def test_names_from_files_are_text(evil: str) -> None:
    block = Block(evil, (1,), (Sum((term(1, Symbol(evil), cos(0, 1, 0)),)),))
    sheet = Sheet(evil, evil, (block,), (Symbol(evil + "q", "coordinate"),), notes=(evil,), meanings={evil: evil})
    text = html_page(sheet)
    Reader(text)
    text.encode("utf-8")
    markdown_page(sheet).encode("utf-8")
    latex_document(sheet).encode("ascii")
    c_source(sheet).encode("ascii")
    compile(python_module(sheet), "printed", "exec")


def test_a_huge_entry_is_shortened_and_says_so() -> None:
    terms = tuple(term(k + 1, m2, cos(0, k + 1, 0)) for k in range(2_500))
    page = html_page(Sheet("Long", "expanded", (Block("h", (1,), (Sum(terms),)),), formulas.q))
    assert "… and 2,300 more terms" in page
    assert "recursive" in page


def test_markdown_draws_short_formulas_and_writes_long_ones_as_text() -> None:
    sheet = formulas.arm()
    page = markdown_page(sheet)
    assert r"$$ M_{23} = l_{g3}^{2}\,m_{3} + l_{2}\,l_{g3}\,m_{3}\cos \theta_{3} $$" in page
    assert r"| $m_{2}$ | `m2` | 2 | mass of link 2 |" in page
    assert "```" not in page
    long = Block("h", (1,), (Sum(tuple(term(k + 1, m2, cos(0, k + 1, 0)) for k in range(40))),))
    page = markdown_page(replace(sheet, blocks=(long,)))
    assert "h1 = m2*cos(theta2) + 2*m2*cos(2*theta2)" in page
    assert max(map(len, page.splitlines())) <= 120


def sprung(rest: bool) -> Sheet:
    """The arm on a spring, with a stop's law among its friction where `rest`."""
    sheet = formulas.arm()
    *blocks, friction = sheet.blocks
    stop = term(1, formulas.dq[0], formulas.q[0]) if rest else term(1, formulas.dq[0])
    friction = replace(friction, entries=(Sum((stop,)), *friction.entries[1:]))
    springs = Block("springs", (3,), (Sum((term(5, formulas.q[0]),)), Sum(), Sum()))
    return replace(sheet, blocks=(*blocks, friction, springs))


def test_the_equation_of_motion_has_its_springs_and_what_friction_depends_on() -> None:
    spring = r"\boldsymbol{F}_{\mathrm{spring}}(\boldsymbol{q})"
    for made in (latex_document(sprung(False)), markdown_page(sprung(False))):
        assert spring in made
        assert r"\boldsymbol{F}_{\mathrm{fric}}(\dot{\boldsymbol{q}})" in made
    assert r"\boldsymbol{F}_{\mathrm{fric}}(\boldsymbol{q}, \dot{\boldsymbol{q}})" in latex_document(sprung(True))
    page = html_page(sprung(False))
    assert '<mi class="up">spring</mi>' in page.split('class="motion"')[1].split("</div>")[0]
    assert ">Springs<" in page
