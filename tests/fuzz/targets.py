"""Everything that reads: what is given to it, and how the corpora come about.

A target takes bytes. It answers, or raises one of `linkwright.errors`; anything else is a finding.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from fuzz import archives
from fuzz.mutation import Mutator, any_of, binary, text
from fuzz.structure import archive, hdf5, header_array, json_text, npy, xml

CORPUS = Path(__file__).parent / "corpus"
REGRESSIONS = CORPUS / "regressions"


@dataclass(frozen=True)
class Target:
    """A reader, its corpus, how inputs are made of it, and its share of the time."""

    name: str
    run: Callable[[bytes, Path], Any]  # with a folder of its own, where files may be put
    corpus: Callable[[], Sequence[bytes]]
    mutate: Mutator
    share: float = 1.0
    prepare: Callable[[Path], None] = lambda folder: None  # puts into the folder what inputs refer to

    def input(self, seed: int, number: int) -> bytes:
        """The input of a number: the same for the same seed, corpus and code."""
        rng = Random(f"{seed} {self.name} {number}")
        corpus = members(self)
        return self.mutate(rng, rng.choice(corpus), corpus)


@cache
def members(target: Target) -> tuple[bytes, ...]:
    """The corpus of a target."""
    return tuple(target.corpus())


def regressions(name: str) -> list[Path]:
    """Inputs of a target that were findings once."""
    folder = REGRESSIONS / name
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


# -- corpora -----------------------------------------------------------------------------------------------------
def files(folder: str) -> Callable[[], Sequence[bytes]]:
    """The files of a folder of the corpus."""
    return lambda: [path.read_bytes() for path in sorted((CORPUS / folder).iterdir())]


def lines(file: str) -> Callable[[], Sequence[bytes]]:
    """The lines of a file of the corpus."""
    return lambda: [line.encode() for line in (CORPUS / file).read_text(encoding="utf-8").splitlines() if line]


# -- models ------------------------------------------------------------------------------------------------------
def model(ending: str, **options: Any) -> Callable[[bytes, Path], Any]:
    """A model file, read and made a mechanism, and printed as `check` and notebooks print it."""

    def run(data: bytes, folder: Path) -> Any:
        from linkwright.formats.model_files import read
        from linkwright.mechanism import Mechanism

        path = folder / f"model{ending}"
        path.write_bytes(data)
        with few_repetitions():
            mechanism = Mechanism(read(path, **options))
        return repr(mechanism), [joint.name for joint in mechanism.joints], mechanism.parameters

    return run


def few_repetitions() -> Any:
    """REPEATs of one changed digit are models of 30,000 statements, which take seconds like any model of that size."""
    return patch.multiple("linkwright.formats.mks.expansion", MAX_STATEMENTS=2000, MAX_ROUNDS=2000)


def printed(data: bytes, folder: Path) -> Any:
    """A text in `.mks` that can be read can be printed, and what is printed can be read."""
    from linkwright.errors import LinkwrightError
    from linkwright.formats.mks.mks_reader import parse_mks
    from linkwright.formats.mks.mks_writer import write_mks

    with few_repetitions():
        description = parse_mks(data.decode("utf-8", "replace"))
    try:
        again = write_mks(description)
    except LinkwrightError:
        return None  # what the language cannot hold is said
    try:
        return parse_mks(again)
    except LinkwrightError as error:
        raise AssertionError(f"what was printed cannot be read: {error}") from error


LAW = """MODEL m PARAMETER L = 2; BODY g (ground); BODY a (mass = 1); BODY b (mass = 1);
REVOLUTE JOINT j (triad = g, triad = a); REVOLUTE JOINT k (triad = (associated body = a, origin = (L,0,0)), triad = b);
{} ENDMODEL"""


def law(data: bytes, folder: Path) -> Any:
    """A law of a torque in a small model; what it may name is more than a driver's law or a parameter may."""
    from linkwright.formats.mks.mks_reader import parse_mks

    return parse_mks(LAW.format(f"TORQUE t (joint = j, law = {data.decode('utf-8', 'replace')});"))


_PART = "<body name='i'><joint name='i'/><geom size='1'/></body>"
_PARTS = {
    "part.xml": f"<mujocoinclude><worldbody>{_PART}</worldbody></mujocoinclude>",
    "part.sdf": "<sdf version='1.7'><model name='p'><link name='l'/></model></sdf>",
}


def files_beside(folder: Path) -> None:
    """What models of the corpus name: meshes and parts."""
    for ending, name in (("stl", "binary.stl"), ("obj", "small.obj"), ("msh", "small.msh")):
        shutil.copy(CORPUS / ending / name, folder / f"part.{ending}")
    for name, content in _PARTS.items():
        (folder / name).write_text(content)


def included(name: str, main: str) -> Callable[[bytes, Path], Any]:
    """A file that a member of the corpus includes."""

    def run(data: bytes, folder: Path) -> Any:
        from linkwright.formats.model_files import read

        (folder / name).write_bytes(data)
        return read(shutil.copy(CORPUS / main, folder))

    return run


def parts(name: str, whole: str) -> Callable[[], Sequence[bytes]]:
    """What may be included: a part, and a whole model."""
    return lambda: [_PARTS[name].encode(), (CORPUS / whole).read_bytes()]


def mesh(ending: str) -> Callable[[bytes, Path], Any]:
    """A mesh file, as it is drawn."""

    def run(data: bytes, folder: Path) -> Any:
        from linkwright.formats.mesh_files import read_mesh

        (folder / f"mesh{ending}").write_bytes(data)
        return read_mesh(str(folder), f"mesh{ending}")

    return run


WEIGHED = """<mujoco><asset><mesh name="m" file="{0}" inertia="{1}"/></asset>
<worldbody><body><joint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""


def weighed(ending: str) -> Callable[[bytes, Path], Any]:
    """A mesh file from which MJCF takes a body's inertia."""

    def run(data: bytes, folder: Path) -> Any:
        from linkwright.formats.model_files import read

        (folder / f"mesh{ending}").write_bytes(data)
        rule = ("legacy", "convex", "exact", "shell")[len(data) % 4]
        (folder / "model.xml").write_text(WEIGHED.format(f"mesh{ending}", rule))
        return read(folder / "model.xml")

    return run


# -- texts -------------------------------------------------------------------------------------------------------
@cache
def _described() -> Any:
    from linkwright.formats.mks.mks_reader import parse_mks

    return parse_mks(LAW.format("DRIVER d (j.angle = 10*TIME); SPRING s (joint = k, stiffness = L);"))


def study_output(data: bytes, folder: Path) -> Any:
    """An output of a study: its name and its expression."""
    from linkwright.outputs.output_language import named, output_of

    outputs = named([data.decode("utf-8", "replace")])
    return [output_of(_described(), name, str(text)) for name, text in outputs.items()]


def design_output(data: bytes, folder: Path) -> Any:
    """An output of a design problem."""
    from linkwright.outputs.derivatives import Outputs
    from linkwright.outputs.output_language import named

    outputs = Outputs(_described(), named([data.decode("utf-8", "replace")]))
    return [str(output.expression) for output in outputs.list], outputs.labels, outputs.series.measures


def constants(data: bytes, folder: Path) -> Any:
    """A value on the command line, and a parameter's value given as text."""
    from linkwright.formats.mks.mks_reader import parse_mks
    from linkwright.formats.mks.values import constant

    word = data.decode("utf-8", "replace")
    constant(word, "--set L")
    return parse_mks(LAW.format("PARAMETER any = 1;"), parameters={"any": word})


def cam_motion(data: bytes, folder: Path) -> Any:
    """The motion of a cam as a text."""
    import linkwright as lw

    return lw.cam_profile(data.decode("utf-8", "replace"), 0.05, "flat", check=False, count=64).report()


def options(data: bytes, folder: Path) -> Any:
    """What follows --set, --sample, --times and --argument."""
    from linkwright.cli import run_verb as run
    from linkwright.cli import screen
    from linkwright.cli.sweep_verb import _parameters

    path = folder / "model.mks"
    if not path.exists():
        path.write_text(LAW.format("PARAMETER w = 1;"))
    option, _, value = data.decode("utf-8", "replace").partition(" ")
    if option == "--set":
        return _parameters(path, [value], None)
    if option == "--sample":
        return _parameters(path, None, [value])
    if option == "--times":
        return run.time_points(value)
    return screen.file_options(None, False, [value]), screen.assignments([value])


def record(data: bytes, folder: Path) -> Any:
    """A recorded input and output."""
    from linkwright.control.identification.records import Record

    path = folder / "record.csv"
    path.write_bytes(data)
    return Record.read(path, uneven="interpolate" if len(data) % 2 else "refuse")


# -- files of our own --------------------------------------------------------------------------------------------
def solution(data: bytes, folder: Path) -> Any:
    """A saved solution."""
    from linkwright.results.solution_files import open as open_solution

    path = folder / "solution.nc"
    path.write_bytes(data)
    found = open_solution(path)
    return repr(found), found.status, found.events


def study_file(data: bytes, folder: Path) -> Any:
    """A saved study."""
    from linkwright.sweeps.study import Study

    path = folder / "study.nc"
    path.write_bytes(data)
    found = Study.open(path)
    return repr(found), found.summary(), found.reason_counts


def study_folder(name: str) -> Callable[[bytes, Path], Any]:
    """The folder of a study that is not finished, one of whose files is the input."""

    def run(data: bytes, folder: Path) -> Any:
        from linkwright.sweeps.study import Study

        place = folder / "study"
        if not place.is_dir():
            shutil.copytree(archives.study_folder(), place)
        path = place / name
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        found = Study.open(place)
        return repr(found), found.summary(), found.reason_counts

    return run


def checkpoint(data: bytes, folder: Path) -> Any:
    """A checkpoint, and whether a run can go on from it."""
    from linkwright.simulation import checkpoint as storage

    path = folder / "run.lwc"
    path.write_bytes(data)
    standing = storage.read_checkpoint(str(path), archives.QUESTION, archives.NQ, archives.NV)
    return storage.fault(standing, archives.settings(), ["folded"])


def cache_entry(data: bytes, folder: Path) -> Any:
    """An entry of the cache as it lies on disk: the content, or none."""
    from linkwright.kernels.llvm import compiler as disk

    archives.entry_path().write_bytes(data)
    content = disk.read(archives.ENTRY)
    if content is not None and archives.cache_entry(content) != data:
        raise AssertionError("a damaged entry was believed")
    return content


def signature(data: bytes, folder: Path) -> Any:
    """What an entry says of a program: made anew where it is damaged."""
    from linkwright.kernels.kernel import Kernel
    from linkwright.kernels.llvm import compiler as disk

    kernel = Kernel("fuzz", archives.program)
    name = disk.key("fuzz", "signature", str(kernel._lanes))
    disk.write(name, data)
    return kernel.signature


def program(data: bytes, folder: Path) -> Any:
    """A saved program; one that is read is run where that is cheap."""
    from linkwright.tape.program_files import load

    path = folder / "program.lwp"
    path.write_bytes(data)
    found = load(path)
    return found.count(), repr(found)


# -- all of them -------------------------------------------------------------------------------------------------
def _member(name: str) -> Mutator:
    return header_array(json_text) if name == "header.npy" else json_text if name.endswith(".json") else npy


_XML = any_of((70, xml), (30, text))
_JSON = any_of((85, json_text), (15, text))
_ARCHIVE = archive(_member)

TARGETS = (
    Target("mks", model(".mks"), files("mks"), text, 4.0),
    Target("mks-printed", printed, files("mks"), text, 1.0),
    Target("law", law, lines("law.txt"), text, 3.0),
    Target("urdf", model(".urdf"), files("urdf"), _XML, 3.0),
    Target("urdf-floating", model(".urdf", base="floating", fixed="keep", friction="apply"), files("urdf"), _XML, 1.0),
    Target("mjcf", model(".xml"), files("mjcf"), _XML, 2.0, files_beside),
    Target("mjcf-applied", model(".mjcf", actuators="apply", fixed="keep"), files("mjcf"), _XML, 1.0, files_beside),
    Target("sdf", model(".sdf"), files("sdf"), _XML, 2.0, files_beside),
    Target(
        "mjcf-part",
        included("part.xml", "mjcf/include.xml"),
        parts("part.xml", "mjcf/tendons.xml"),
        _XML,
        0.5,
        files_beside,
    ),
    Target(
        "sdf-part", included("part.sdf", "sdf/world.sdf"), parts("part.sdf", "sdf/mimic.sdf"), _XML, 0.5, files_beside
    ),
    Target("xacro", model(".xacro", trust=True), files("xacro"), _XML, 0.5),
    Target("dh", model(".dh.toml"), files("dh"), text, 3.0),
    Target("stl", mesh(".stl"), files("stl"), any_of((50, text), (50, binary)), 6.0),
    Target("obj", mesh(".obj"), files("obj"), text, 5.0),
    Target("stl-weighed", weighed(".stl"), files("stl"), any_of((30, text), (70, binary)), 0.5),
    Target("msh", weighed(".msh"), files("msh"), binary, 0.5),
    Target("outputs", study_output, lines("outputs.txt"), text, 8.0),
    Target("design-outputs", design_output, lines("outputs.txt"), text, 8.0),
    Target("constants", constants, lines("constants.txt"), text, 4.0),
    Target("cam-motion", cam_motion, lines("cam_motion.txt"), text, 0.3),
    Target("options", options, lines("options.txt"), text, 3.0),
    Target("csv", record, files("csv"), text, 8.0),
    Target("solution", solution, archives.solutions, hdf5, 2.0),
    Target("study", study_file, archives.studies, hdf5, 1.0),
    Target("manifest", study_folder("manifest.json"), archives.manifests, _JSON, 3.0),
    Target("values", study_folder("values.npy"), archives.values, npy, 3.0),
    Target("chunk", study_folder("chunks/000000.npz"), archives.chunks, archives.signed(_ARCHIVE), 2.0),
    Target("checkpoint", checkpoint, archives.checkpoints, _ARCHIVE, 3.0),
    Target("cache-entry", cache_entry, archives.entries, binary, 1.0),
    Target("signature", signature, archives.signatures, _JSON, 1.0),
    Target("program", program, archives.programs, _ARCHIVE, 6.0),
)
BY_NAME = {target.name: target for target in TARGETS}
