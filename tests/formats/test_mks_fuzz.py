"""Whatever the text, the reader gives a description or one of its own errors."""

import re
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from linkwright.errors import ModelError
from linkwright.formats.mks.mks_reader import parse_mks
from linkwright.formats.mks.mks_writer import write_mks
from linkwright.model.description import Description

SAMPLE = (Path(__file__).resolve().parents[2] / "examples/models/slider_crank.mks").read_text(encoding="utf-8")
RICH = """MODEL rich
SYSTEM (KINEMATIC ANALYSIS, ending time = 2, angle unit = degree, freedom = pivoting);
PARAMETER L = 2; PARAMETER half = L/2;
BODY g (ground); BODY g2 (ground, pqr = [(1,0,0),(1,0,1),(1,1,0)]);
BODY crank (center of gravity = (half, 0, 0), pqr = [(0,0,0),(0,0,1),(L,0,0)], mass = 2*L, inertia = (1,1,1));
BODY arm (mass = 1, colour = red);
TRIAD tip (associated body = crank, origin = (L, 0, 0));
REVOLUTE JOINT r1 (triad = g, triad = crank, lower = -90, upper = 1 rad, damping = 0.1);
CYLINDRICAL JOINT "odd name" (triad = (associated body = g2, h = (1,0,0)), triad = arm, cut, passive);
SCREW JOINT s1 (triad = tip, triad = arm, pitch = 0.1);
ROD rod1 (triad = tip, triad = g2, length = half + sqrt(2));
POINT ON LINE pl (line = g, point = arm);
GEAR gg (joint = s1, joint = r1, ratio = -L, offset = 90);
DRIVER d1 (r1.angle = 30 + 10*sin(2*pi*TIME));
DRIVER d2 (tip.y = -TIME^2 + 2**-1);
DRIVER d3 (distance(tip, g2) = max(1, 2, L) + if(TIME < 1, 1, 2));
SPRING sp1 (triad = tip, triad = g2, stiffness = 100*L, length = half, damping = 3);
SPRING sp2 (joint = r1, stiffness = 5, rest = 30); DAMPER da (joint = "odd name".shift, damping = 0.5);
BUSHING bu (triad = tip, triad = g2, stiffness = (100, L, 3 N/mm), torsional stiffness = L, preload = (1, half, 0));
FRICTION fr (joint = s1, friction = 2, speed = 1 rad/s);
FRICTION rf (joint = r1, coefficient = 0.1*L, radius = 8 mm, axial radius = 1, length = half);
STOP st (joint = r1, stiffness = 1e4, damping = 0.1);
ACTUATOR ac (joint = r1, law = -3*r1.rate + sin(TIME), effort limit = 10);
FORCE fo (triad = tip, triad = g2, law = 3/distance(tip, g2)^2); TORQUE to (joint = s1.angle, law = r1.angle*arm.vx);
FORCE f2 (triad = tip, force = (1, TIME, 0), torque = (0, 0, L), axes = ground, reaction = arm);
INITIAL (r1.angle = 30 deg, r1.rate = 2, tip.vx = half, distance(tip, g2) = 2);
DRIVER d4 (angle(crank, g.h) = table(TIME, (0,0), (1,1), (2,4)));
SHAPE box1 (associated body = crank, box = (L, 0.1, 0.1)); TRACE tr (triad = tip, colour = "#aabbcc");
GRAVITY (0, -9.81, 0);
PARAMETER x = [1, 2*L, -3]; PARAMETER pt = [(1, 2), (L, 0, 3)];
REPEAT i = 1 .. 2 { BODY link[i] (mass = x[i]^2, origin = pt[i]);
  REPEAT k = i … 2 { TRIAD tri[i,k] (associated body = link[i], origin = (k*L, pt[k,1])); } }
PART leg (base, long = 2, paint = red) { PARAMETER mid = long/2; BODY foot (mass = mid, colour = paint);
  HINGE hip (body = base, body = foot, at = (long, 0)); USE toe AS toe[1] (of = foot); }
PART toe (of) { BODY nail (mass = 1); WELD w (body = of, body = nail, at = (0, 0)); }
REPEAT j = 1 ... 2 { USE leg AS leg[j] (base = link[j], long = x[j]); }
DRIVER d5 (leg[2].hip.angle = TIME); FORCE f3 (triad = leg[1].toe[1].nail, triad = tri[1,2], law = leg[1].hip.rate);
ENDMODEL
"""
WORDS = st.sampled_from(
    [
        *re.sub(r"([][(),;{}])", r" \1 ", RICH).split(),
        *("-", "^", "[", "]", '"', "/*", "*/", "#", "\n", "1e308", "1e-308", "0", "°", "deg", ".", "<", "if(", "é"),
    ]
)


def read_or_refuse(text: str) -> Description | None:
    try:
        return parse_mks(text)
    except ModelError:  # and its kinds, FormatError and MksError
        return None


@settings(deadline=None)
@given(st.text(max_size=400))
@example("MODEL a ENDMODEL")
@example("\ufeffMODEL a")
def test_any_text_is_read_or_refused(text: str) -> None:
    read_or_refuse(text)


@settings(deadline=None)
@given(st.lists(WORDS, max_size=60))
def test_any_words_in_a_row_are_read_or_refused(words: list[str]) -> None:
    read_or_refuse("MODEL m BODY g (ground); BODY a (mass = 1); " + " ".join(words) + " ENDMODEL")


@settings(deadline=None)
@given(st.lists(WORDS, max_size=25))
def test_any_law_is_read_or_refused(words: list[str]) -> None:
    read_or_refuse(f"MODEL m BODY g (ground); BODY a (mass = 1); DRIVER d (a.x = {' '.join(words)}); ENDMODEL")


@st.composite
def changed(draw: st.DrawFn) -> str:
    """A good file with a few places cut out, doubled, exchanged or written over."""
    text = draw(st.sampled_from([SAMPLE, RICH]))
    for _ in range(draw(st.integers(1, 4))):
        a = draw(st.integers(0, len(text)))
        b = draw(st.integers(a, min(len(text), a + draw(st.sampled_from([1, 5, 40])))))
        put = draw(st.one_of(st.just(""), WORDS, st.text(max_size=3), st.just(text[a:b] * 2)))
        text = text[:a] + put + text[b:]
    return text


@settings(max_examples=200, deadline=None)
@given(changed())
def test_a_good_file_with_changes_is_read_or_refused_and_printed_if_read(text: str) -> None:
    description = read_or_refuse(text)
    if description is not None:
        assert read_or_refuse(write_mks(description)) is not None
