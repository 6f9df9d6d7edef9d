"""The Pareto front: the settings that no other beats in both of two numbers."""

from course.sweep.table import Design, Table


def front(table: Table, most: str, least: str) -> tuple[Design, ...]:
    """The settings for which no other has as much of `most` and as little of `least`, and more or less of one of them.

    In the order of `least`, both means over seeds; refused settings are left out. Of settings that are equal in both,
    each is there. ValueError, with the names that there are, if no row has such a number.
    """
    table.known(most, least)
    placed = [one for one in table.designs if most in one.numbers and least in one.numbers]
    placed.sort(key=lambda one: (one[least], -one[most]))
    found: list[Design] = []
    for one in placed:
        if not found or one[most] > found[-1][most] or (one[most], one[least]) == (found[-1][most], found[-1][least]):
            found.append(one)
    return tuple(found)
