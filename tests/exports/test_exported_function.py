"""What an export says of the numbers that it takes."""

from closed_mechanisms import geared_wheels
from linkwright.exports.exported_function import subject


def test_the_order_of_coordinates_names_every_one_once() -> None:
    for loop, names in ((False, ["shaft one"]), (True, ["shaft one", "shaft two"])):
        order = subject(geared_wheels(loop=loop), "mass_matrix").order()
        assert [(row[0], row[2]) for row in order] == [(name, str(k)) for k, name in enumerate(names)]
