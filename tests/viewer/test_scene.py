"""What of a mechanism and its motion is drawn, and how."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reading import numbers, scene_of
from sample_motions import Played, chain, played, slider_crank, spatial_four_bar

from linkwright.errors import LinkwrightWarning, NameNotFound
from linkwright.model.builder import Builder
from linkwright.model.description import KINDS, Trace
from linkwright.viewer import scene as room
from mesh_files import binary_stl


def still(b: Builder, points: int = 2) -> Played:
    """Bodies that stay where they are described."""
    d = b.description()
    e = np.tile([1.0, 0, 0, 0], (d.nb, 1))
    return played(d, np.arange(float(points)), lambda t: (np.zeros((d.nb, 3)), e))


def kinds(parts: list[dict[str, object]]) -> list[object]:
    return [part["kind"] for part in parts]


def test_a_scene_is_json() -> None:
    made = scene_of(spatial_four_bar())
    assert json.loads(json.dumps(made, allow_nan=False)) == made


def test_positions_are_kept_from_the_middle_of_the_scene() -> None:
    b = Builder()
    b.body("ship", 1, (0, 0, 0), (1, 1, 1))
    b.joint("free", "ground", "ship")
    motion = still(b, 50)
    motion.data["position"] = 1e7 + np.random.default_rng(1).normal(size=(50, 1, 3))
    made = scene_of(motion)
    assert_allclose(numbers(made, "position", 3) + made["origin"], motion.data["position"], atol=1e-6, rtol=0)


def test_rates_that_are_not_known_are_not_there() -> None:
    motion = slider_crank()
    made = room.scene(
        motion.description, motion.time, {name: motion.data[name] for name in ("position", "orientation")}
    )
    assert set(made["data"]) == {"count", "time", "position", "orientation"}


def test_a_link_is_a_bar_between_its_joints() -> None:
    made = scene_of(slider_crank(trace=False))
    coupler = [part for part in made["bodies"][1]["parts"] if part["kind"] == "capsule"]
    assert [part["size"][1] for part in coupler] == [10]


def test_a_point_beside_a_bar_stands_on_a_stalk() -> None:
    made = scene_of(slider_crank())
    lengths = sorted(part["size"][1] for part in made["bodies"][1]["parts"] if part["kind"] == "capsule")
    assert lengths == [2, 10]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_everything_grows_with_the_mechanism(scale: float) -> None:
    made, unit = scene_of(slider_crank(scale=scale)), scene_of(slider_crank())
    for name in ("unit", "size"):
        assert made[name] == pytest.approx(scale * unit[name])
    assert_allclose(made["view"]["half"], scale * np.array(unit["view"]["half"]), rtol=1e-5)


def test_the_picture_holds_every_body_at_every_time() -> None:
    motion = slider_crank()
    made = scene_of(motion)
    axes, half = np.array(made["view"]["axes"]), np.array(made["view"]["half"])
    seen = (motion.data["position"] - made["origin"]) @ axes.T
    assert (np.abs(seen) <= half).all()


def test_the_board_of_a_planar_mechanism_is_behind_it() -> None:
    made = scene_of(slider_crank())
    toward = np.array(made["view"]["axes"][2])
    assert (np.array(made["view"]["floor"]) - made["origin"]) @ toward < -made["view"]["half"][2]


def test_shapes_take_the_place_of_sticks() -> None:
    made = scene_of(slider_crank(shapes=True))
    crank = [part for part in made["bodies"][0]["parts"] if part["layer"] == "body"]
    assert kinds(crank) == ["box"]
    assert crank[0]["size"] == [7.2, 0.9, 0.5]
    assert not made["show"]["joints"]


def test_a_body_that_is_drawn_as_sticks_has_the_colour_that_it_is_given() -> None:
    motion = slider_crank()
    names = motion.description.body_names
    motion.description = replace(motion.description, colors=((names[1], "#ffa500"), ("ground", "#000080")))
    made, plain = scene_of(motion), scene_of(slider_crank())
    assert {part["color"] for part in made["bodies"][1]["parts"] if part["layer"] == "body"} == {"#ffa500"}
    assert made["bodies"][1]["color"] == "#ffa500"
    assert made["bodies"][0]["color"] == plain["bodies"][0]["color"]
    assert "#000080" in {part["color"] for part in made["ground"]["parts"]}
    assert [kinds(body["parts"]) for body in made["bodies"]] == [kinds(body["parts"]) for body in plain["bodies"]]


def test_a_shape_has_its_own_colour_or_its_bodys() -> None:
    made = scene_of(slider_crank(shapes=True))
    assert made["bodies"][2]["parts"][0]["color"] == "#7a8794"
    assert made["bodies"][0]["parts"][0]["color"] == made["bodies"][0]["color"]


def test_a_size_follows_its_parameters() -> None:
    b = Builder()
    length = b.parameter("length", 0.4)
    b.shape(b.body("a", 1, (0, 0, 0), (1, 1, 1)), "capsule", (length / 8, length))
    b.joint("revolute", "ground", "a")
    assert scene_of(still(b))["bodies"][0]["parts"][0]["size"] == [0.05, 0.4]


def two_bodies(kind: str) -> Builder:
    b = Builder()
    b.body("a", 1, (0, 0, 0), (1, 1, 1))
    b.body("b", 1, (0, 0, 0), (1, 1, 1))
    b.joint("revolute", "ground", "a")
    pitch = {"pitch": 0.1} if kind == "screw" else {}
    b.joint(kind, b.triad("a", (1, 0, 0)), b.triad("b", (0, 1, 0)), "between", **pitch)
    return b


@pytest.mark.parametrize(
    ("kind", "on_a", "on_b"),
    [
        ("revolute", {"cylinder"}, set()),
        ("prismatic", {"box"}, {"box"}),
        ("cylindrical", {"cylinder"}, {"cylinder"}),
        ("screw", {"cylinder"}, {"cylinder"}),
        ("universal", {"cylinder", "sphere"}, {"cylinder"}),
        ("spherical", {"sphere"}, set()),
        ("planar", {"capsule"}, {"cylinder"}),
        ("fixed", set(), set()),
        ("free", set(), set()),
    ],
)
def test_a_joint_looks_like_its_kind(kind: str, on_a: set[str], on_b: set[str]) -> None:
    made = scene_of(still(two_bodies(kind)))
    found = [{part["kind"] for part in body["parts"] if part["layer"] == "joint"} for body in made["bodies"]]
    assert found == [on_a, on_b]


def test_every_kind_of_joint_was_looked_at() -> None:
    looked = test_a_joint_looks_like_its_kind.pytestmark[0].args[1]
    assert {kind for kind, *_ in looked} == set(KINDS)


def test_a_rail_is_as_long_as_the_way_of_its_slider() -> None:
    made = scene_of(slider_crank(points=401))
    rail = max((part for part in made["ground"]["parts"] if part["kind"] == "box"), key=lambda part: part["size"][2])
    # The block goes from 4 to 16 in one turn, which the eight seconds hold.
    assert rail["size"][2] == pytest.approx(12 + 13 * made["unit"], rel=1e-3)
    assert_allclose(rail["at"], [10, 0, 0], atol=2e-3)


def test_rods_and_springs_reach_from_point_to_point() -> None:
    made = scene_of(spatial_four_bar())
    assert [(link["name"], link["kind"]) for link in made["links"]] == [("tie", "rod"), ("force1", "force")]
    assert made["links"][0]["ends"] == [{"body": 0, "at": [0.4, 0, 0]}, {"body": -1, "at": [0, 0, 1.2]}]


def test_points_held_on_lines_and_planes_are_drawn() -> None:
    b = two_bodies("spherical")
    b.point_on_line(b.triad("ground", (0, 0, 1), name="line"), b.triad("b", (0, 0, 1), name="bead"))
    b.point_on_plane("line", b.triad("b", (1, 0, 0), name="puck"))
    made = scene_of(still(b))
    assert {"cylinder", "capsule"} <= set(kinds(made["ground"]["parts"]))


def test_traces_and_triads_are_on_their_bodies() -> None:
    made = scene_of(slider_crank())
    assert [(t["name"], t["body"], t["at"]) for t in made["traces"]] == [
        ("coupler point", 1, [0, 2, 0]),
        ("crank pin", 0, [3, 0, 0]),
    ]
    assert {t["name"]: t["body"] for t in made["triads"]}["bearing"] == -1


def test_a_trace_of_a_place_that_is_not_there_is_an_error() -> None:
    motion = slider_crank()
    wrong = replace(motion.description, traces=(Trace("t", "crankpin"),))
    with pytest.raises(NameNotFound, match="crankpin"):
        scene_of(Played(wrong, motion.time, motion.data))


def with_mesh(folder: Path, file: str) -> Played:
    b = two_bodies("revolute")
    b.shape("a", "mesh", 2.0, file=file)
    motion = still(b)
    return Played(replace(motion.description, folder=str(folder)), motion.time, motion.data)


def test_a_mesh_is_embedded(tmp_path: Path) -> None:
    (tmp_path / "a.stl").write_bytes(binary_stl())
    made = scene_of(with_mesh(tmp_path, "a.stl"))
    part = made["bodies"][0]["parts"][0]
    assert (part["kind"], part["mesh"], part["size"]) == ("mesh", 0, [2.0])
    assert len(made["meshes"]) == 1


def test_a_mesh_that_cannot_be_read_leaves_sticks_a_warning_and_a_note(tmp_path: Path) -> None:
    with pytest.warns(LinkwrightWarning, match="no such mesh file"):
        made = scene_of(with_mesh(tmp_path, "gone.stl"))
    assert "capsule" in kinds(made["bodies"][0]["parts"])
    assert "gone.stl" in made["notes"][0]


def test_meshes_that_are_too_large_together_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MESH_BUDGET", 10)
    (tmp_path / "a.stl").write_bytes(binary_stl())
    with pytest.warns(LinkwrightWarning, match="too large for one page"):
        assert not scene_of(with_mesh(tmp_path, "a.stl"))["meshes"]


def test_of_very_many_bodies_the_first_are_drawn_and_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_BODIES", 5)
    made = scene_of(chain(8, 3))
    assert len(made["bodies"]) == 5
    assert numbers(made, "position", 3).shape == (3, 5, 3)
    assert made["notes"] == ["the first 5 of 8 bodies are drawn"]


def test_joints_that_would_hide_their_links_are_not_shown_at_first() -> None:
    assert scene_of(chain(20, 2))["show"]["joints"]
    assert not scene_of(chain(200, 2))["show"]["joints"]


def test_one_time_point_is_a_still_picture() -> None:
    made = scene_of(slider_crank(points=1))
    assert made["data"]["count"] == 1
    assert_array_equal(numbers(made, "orientation", 4).shape, (1, 3, 4))


def test_a_mechanism_that_is_one_point_has_a_size() -> None:
    b = Builder()
    b.body("a")
    b.joint("free", "ground", "a")
    made = scene_of(still(b, 1))
    assert made["unit"] > 0
    assert kinds(made["bodies"][0]["parts"]) == ["box"]
