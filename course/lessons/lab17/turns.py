"""Lab 17's exercises 1 and 3: counters by hand, whose turn it is, known wrong turns, and an answer that plays a board.

A `fair` is a function of two things: `waiting`, [(tenant, prompt tokens)] in order of arrival, and `counters`,
{tenant: what it was served}, with each that waits. It returns the places of `waiting` in the order in
which they are admitted: always the first of the tenant with the least counter, which its prompt is then added to. Of
equal counters, whose request came first.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

from course import policies
from course.policies import Request

Waiting = list[tuple[str, int]]
Counters = dict[str, float]
Own = Callable[[Waiting, Counters], list[int]]

OUTPUT_WEIGHT = 2  # of an output token; one of a prompt counts 1
SERVED = {"A": (4, 100, 300), "B": (2, 800, 50), "N": (1, 1_500, 400)}
TWIN = {"A": (3, 200, 300), "B": (6, 150, 100), "N": (2, 900, 60)}
"""Requests that were served, prompt and output tokens of each."""

PROBES: tuple[tuple[Waiting, Counters], ...] = (
    ([("N", 50), ("N", 50), ("A", 20), ("N", 50), ("A", 20)], {"N": 100, "A": 100}),
    ([("A", 10), ("B", 30), ("A", 10), ("A", 10), ("A", 10), ("B", 30)], {"A": 0, "B": 0}),
    ([("N", 5), ("N", 5), ("N", 5), ("A", 90)], {"N": 0, "A": 12}),
    ([("A", 7)], {"A": 3, "B": 1}),
    ([("B", 40), ("A", 25), ("C", 10), ("C", 10), ("A", 25), ("C", 10)], {"A": 5, "B": 8, "C": 0}),
    ([("A", 9)] * 4 + [("B", 9)] * 2, {"A": 0, "B": 3}),
    ([], {"A": 4}),
)


def counter(served: tuple[int, int, int], output_weight: float = OUTPUT_WEIGHT) -> float:
    """What a counter reads after so many requests of so many tokens."""
    requests, prompt, output = served
    return requests * (prompt + output_weight * output)


def fair(waiting: Waiting, counters: Counters) -> list[int]:
    """The least served tenant's first request, again and again."""
    order: list[int] = []
    counters = dict(counters)
    while len(order) < len(waiting):
        left = [place for place in range(len(waiting)) if place not in order]
        order.append(min(left, key=lambda place: counters[waiting[place][0]]))
        counters[waiting[order[-1]][0]] += waiting[order[-1]][1]
    return order


def in_order(waiting: Waiting, counters: Counters) -> list[int]:
    """First come, first served."""
    return list(range(len(waiting)))


def one_tenant_at_a_time(waiting: Waiting, counters: Counters) -> list[int]:
    """The prompts that are admitted count for nothing."""
    return sorted(range(len(waiting)), key=lambda place: counters[waiting[place][0]])


def most_served_first(waiting: Waiting, counters: Counters) -> list[int]:
    """The other way round."""
    return fair([(tenant, -prompt) for tenant, prompt in waiting], {name: -value for name, value in counters.items()})


def round_robin(waiting: Waiting, counters: Counters) -> list[int]:
    """Every request counts one; the solution of the twin, and a mistake of the exercise."""
    order: list[int] = []
    counters = dict(counters)
    while len(order) < len(waiting):
        left = [place for place in range(len(waiting)) if place not in order]
        order.append(min(left, key=lambda place: counters[waiting[place][0]]))
        counters[waiting[order[-1]][0]] += 1
    return order


def starts_anew(waiting: Waiting, counters: Counters) -> list[int]:
    """What was served before is forgotten."""
    return fair(waiting, dict.fromkeys(counters, 0))


def only_the_next(waiting: Waiting, counters: Counters) -> list[int]:
    """Who is next, and nobody else."""
    return fair(waiting, counters)[:1]


def tenants(waiting: Waiting, counters: Counters) -> list[str]:
    """The right order, as names in place of places."""
    return [waiting[place][0] for place in fair(waiting, counters)]


def shortest_prompt_first(waiting: Waiting, counters: Counters) -> list[int]:
    """The order of another policy, which no counter decides."""
    return sorted(range(len(waiting)), key=lambda place: waiting[place][1])


class Yours(policies.Fair):
    """Fair in the order that a function says; counters and lift are the policy's."""

    def __init__(self, function: Own, max_num_seqs: int, max_num_batched_tokens: int):
        self.function = function
        super().__init__(max_num_seqs, max_num_batched_tokens)

    def in_turn(self, groups: Mapping[Hashable, Iterable[Request]]) -> Iterator[Request]:
        """Those that wait in the function's order. ValueError where it names a place that there is not."""
        line = sorted((request for group in groups.values() for request in group), key=lambda request: request.index)
        tenants = [(str(request.tenant), request.prompt_tokens) for request in line]
        places = self.function(tenants, {str(tenant): self.counters.get(tenant, 0.0) for tenant in groups})
        if not isinstance(places, list) or sorted(places) != list(range(len(line))):
            raise ValueError(f"your function must return each of the {len(line)} places once, not {places!r}")
        for place in places:
            self.offered.append(line[place])
            yield line[place]
