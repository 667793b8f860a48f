"""Draw docs/images/cams.png: the same motion for four followers, as `CamProfile.plot` draws each of them.

Needs matplotlib:  python docs/draw_cams.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import linkwright as lw
from linkwright.design.cam_plots import draw_cam

LIFT = [("100 deg", "20 mm", "rise345"), ("160 deg", "20 mm"), ("280 deg", 0.0, "rise345")]
SWING = [("100 deg", "14 deg", "rise345"), ("160 deg", "14 deg"), ("280 deg", 0.0, "rise345")]
CAMS = {
    "roller, offset by 8 mm": (LIFT, lw.CamFollower(radius="8 mm", offset="8 mm")),
    "flat face": (LIFT, lw.CamFollower("flat")),
    "roller on an arm": (SWING, lw.CamFollower(radius="8 mm", pivot="90 mm", arm="75 mm")),
    "flat face on an arm": (SWING, lw.CamFollower("flat", pivot="90 mm", offset="8 mm")),
}


def main() -> None:
    figure, axes = plt.subplots(2, 2, figsize=(11.0, 10.0), layout="constrained", facecolor="white")
    for ax, (title, (motion, follower)) in zip(axes.flat, CAMS.items(), strict=True):
        draw_cam(ax, lw.cam_profile(motion, "45 mm", follower))
        ax.set_title(title, fontsize=11)
    figure.savefig(Path(__file__).parent / "images" / "cams.png", dpi=110)


if __name__ == "__main__":
    main()
