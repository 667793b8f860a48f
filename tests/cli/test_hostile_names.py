"""Names from files that would move the cursor, colour the screen or turn the text: shown, never obeyed."""

from __future__ import annotations

import re

import pytest
from command import linkwright
from rich.text import Text

from linkwright.cli.app import app
from linkwright.cli.screen import console, print_error, print_text, print_warning
from linkwright.errors import UNSEEN, FormatError, LinkwrightWarning, NameNotFound, on_one_line, visible

ESC, CSI, OVERRIDE = "\x1b[31m", "\x9b2J", "\u202e"
HOSTILE = ESC + CSI + OVERRIDE + "\x07\x08\x7f"
MODEL = f"""MODEL "model{HOSTILE}"
SYSTEM (KINEMATIC ANALYSIS, ending time = 0.2, print interval = 0.1);
PARAMETER L = 2;
BODY "ground{HOSTILE}" (ground); BODY "body{HOSTILE}" (mass = 1, inertia = (1, 1, 1));
TRIAD "tip{HOSTILE}" (associated body = "body{HOSTILE}", origin = (L, 0, 0));
REVOLUTE JOINT "joint{HOSTILE}" (triad = "ground{HOSTILE}", triad = "body{HOSTILE}");
PART arm (of) {{{{ BODY "hand{HOSTILE}" (mass = 1, inertia = (1, 1, 1));
  WELD "wrist{HOSTILE}" (body = of, body = "hand{HOSTILE}", at = (0, 0)); }}}}
REPEAT i = 1 .. 2 {{{{ USE arm AS arm[i] (of = "body{HOSTILE}"); }}}}
SPRING "spring{HOSTILE}" (joint = "joint{HOSTILE}", stiffness = 5);
BUSHING "bushing{HOSTILE}" (triad = "ground{HOSTILE}", triad = "tip{HOSTILE}", stiffness = 5);
{{}}
ENDMODEL
"""
DRIVER = f'DRIVER "driver{HOSTILE}" ("joint{HOSTILE}".angle = TIME);'
FLAWS = ["", f'ROD "rod{HOSTILE}" (triad = nobody);', f'USE arm AS "a{HOSTILE}" (of = "no{HOSTILE}");']
#: Every verb that reads a file, and what is given to it besides; `bench`, `cam`, `demo` and `study` read none.
VERBS = {
    "check": (DRIVER, []),
    "run": (DRIVER, ["--output", "out"]),
    "view": (DRIVER, ["--output", "page.html"]),  # of a solution
    "equations": ("", []),
    "convert": ("", ["other.mks"]),
    "export": ("", ["--function", "mass_matrix"]),
    "sweep": (DRIVER, ["--set", "L=1,2", "--out", "study", "--output-value", f'x = "tip{HOSTILE}".x']),
    "tolerances": (DRIVER, ["--tolerance", "L=0.1", "--output", f'x = max("tip{HOSTILE}".x)', "--draws", "0"]),
}


def obeyed(text: str) -> str:
    """What of a text a terminal would act upon."""
    return "".join(sorted(set(UNSEEN.findall(text))))


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("flaw", FLAWS, ids=["good", "bad", "bad part"])
def test_no_verb_lets_a_name_reach_the_terminal(capsys, tmp_path, monkeypatch, verb, flaw):
    monkeypatch.chdir(tmp_path)
    more, words = VERBS[verb]
    (tmp_path / "model.mks").write_text(MODEL.format(more + flaw), encoding="utf-8")
    file = "model.mks"
    if verb == "view" and not flaw:
        assert linkwright(capsys, "run", file, "--output", "out").code == 0
        (file,) = (tmp_path / "out").glob("*.nc")
    outcome = linkwright(capsys, verb, file, *words)
    assert outcome.code == bool(flaw), outcome.err
    assert obeyed(outcome.out + outcome.err) == ""


def test_every_verb_that_reads_a_model_is_tried():
    verbs = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert verbs - set(VERBS) == {"bench", "cam", "demo", "study"}


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_lets_a_word_of_its_command_line_reach_the_terminal(capsys, verb):
    outcome = linkwright(capsys, verb, f"there is no {HOSTILE}.mks", f"--flying{HOSTILE}")
    assert outcome.code
    assert obeyed(outcome.out + outcome.err) == ""
    outcome = linkwright(capsys, verb, f"there is no {HOSTILE}.mks")
    assert obeyed(outcome.out + outcome.err) == ""


@pytest.mark.parametrize("tell", [print_error, print_warning, print_text, lambda text: console().print(Text(text))])
def test_messages_are_shown_with_their_controls_spelled_out(capsys, tell):
    tell(f"a{ESC}b{OVERRIDE}c")
    out, err = capsys.readouterr()
    assert "a\\x1b[31mb\\u202ec" in out + err


def test_errors_and_warnings_spell_out_what_is_in_names():
    """In Python too, where the interpreter prints them."""
    for one in (FormatError(HOSTILE), NameNotFound("body", HOSTILE, [HOSTILE]), LinkwrightWarning(HOSTILE)):
        assert obeyed(str(one)) == ""


def test_text_that_is_plain_stays_as_it_is():
    plain = "Gelenk „Bär“, 関節 ∂τ/∂q 😀\n\tsecond line"
    assert visible(plain) == plain
    assert on_one_line("a\nb\tc") == "a\\nb\\tc"


def test_what_cannot_be_encoded_is_spelled_out():
    assert visible("\ud800").encode("utf-8") == b"\\ud800"
    assert re.fullmatch(r"[ -~]*", visible(HOSTILE))
