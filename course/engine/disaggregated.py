"""Prompts on some engines and answers on others: prefill and decode apart, with K and V copied in between.

Zhong et al., "DistServe" (OSDI 2024) and Patel et al., "Splitwise" (ISCA 2024) serve like this; vLLM calls it
disaggregated prefilling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from course.base import settings
from course.engine.fleet import Fleet, FleetRun, Replica, part
from course.engine.log import GAVE_UP, Left, Log
from course.engine.run import Run
from course.engine.serving import Engine
from course.policies.base import Request
from course.workload import Workload

Route = Callable[[Request, Sequence[Replica]], int]


class Disaggregated:
    """Two fleets: `prefill` computes each prompt and says the first token, `decode` the rest of the answer.

    prefill, decode: engines, as a Fleet takes them. transfer: bytes/s of the link between both sides. token_bytes: of
    K and V of a token (`ModelSpec.kv_bytes_per_token`). route, decode_route: to which engine of its side a request
    goes, by default one after the other.

        fleet = Disaggregated(engines(2), engines(2), transfer=50e9, token_bytes=131_072)
        run = fleet.serve(load)  # one Run: TTFT from the prefill side; TPOT with the transfer in it

    A request comes to the decode side prompt x token_bytes / transfer seconds after its first token. There it is one
    whose prompt has a token more, the first of its answer, and brings K and V of all others (`Request.computed`). After
    a preemption it computes them again, there.

    Not modelled: transfers that share the link, K and V that are sent layer by layer while the prompt is computed, and
    blocks that the prefill side holds until they are sent.

    Raises ValueError for a link of 0 bytes/s and other sizes that cannot be, for an engine on both sides, and as
    `Fleet` does.
    """

    def __init__(
        self,
        prefill: Sequence[Engine],
        decode: Sequence[Engine],
        *,
        transfer: float,
        token_bytes: float,
        route: Route | None = None,
        decode_route: Route | None = None,
    ):
        self.transfer = settings.real("transfer", transfer, low=0)
        if not self.transfer:
            raise ValueError(
                "transfer is 0 bytes/s, over which K and V never arrive: give the bytes/s of the link, or serve with a "
                "Fleet, where no K and V are sent"
            )
        self.token_bytes = settings.real("token_bytes", token_bytes, low=0)
        self.prefill, self.decode = Fleet(prefill, route), Fleet(decode, decode_route)
        for number, engine in enumerate(decode):
            if any(engine is other for other in prefill):
                raise ValueError(f"engine {number} of the decode side is on the prefill side too: make one for each")
            if engine.limits.padded or prefill[0].limits.padded:
                raise ValueError(
                    "a padded batch is answered as a whole, and a prompt that is computed elsewhere is not: give both "
                    "sides policies that answer each request by itself, such as Continuous"
                )

    def seconds(self, tokens: int) -> float:
        """Seconds to send K and V of so many tokens."""
        return tokens * self.token_bytes / self.transfer

    def serve(self, load: Workload) -> FleetRun:
        """Serve every request, and return what happened, as one Run. It serves once.

        prefill.routed, decode.routed: (n,) and (m,) who went where; the m of the decode side are in the order in which
        they came there (`sent`, rows of the workload). What the summary says of patience, rejected requests and
        prefix hits is true of both sides together.

        Raises ValueError for prefix hashes that go on over answers, which no engine has whole, and as `Fleet.serve`.
        """
        if isinstance(load, Workload) and load.prefix_answers:
            raise ValueError(
                "prefix hashes that go on over answers are not modelled here, since no engine has prompt and answer: "
                "leave prefix_answers at False"
            )
        prompts = replace(load, output_tokens=np.ones_like(load.output_tokens)) if isinstance(load, Workload) else load
        first = self.prefill.serve(prompts)
        rows = np.flatnonzero(first.answered & (load.output_tokens > 1))
        comes = first.response + self.seconds(1) * load.prompt_tokens
        self.sent = rows = rows[np.lexsort((rows, comes[rows]))]
        parts = list(first.parts)
        if len(rows):
            second = self.decode.serve(_answers(load, rows, comes[rows]), load.prompt_tokens[rows])
            parts += [(run, rows[of]) for run, of in second.parts]
        engines = [replica.engine for fleet in (self.prefill, self.decode) for replica in fleet.replicas]
        return DisaggregatedRun(load, engines, parts, len(first.parts))


def _answers(load: Workload, rows: np.ndarray, arrival: np.ndarray) -> Workload:
    """What comes to the decode side: these rows, in this order, at these times."""
    # Patience and deadline are about the first token, and prefixes about prompts.
    plain = replace(load, patience=None, deadline=None, prefix=None, prefix_block_size=None)
    known, left = load.prompt_tokens[rows] + 1, load.output_tokens[rows] - 1
    any_order = replace(plain, arrival=np.zeros(len(load)))
    return replace(part(any_order, rows), arrival=arrival, prompt_tokens=known, output_tokens=left)


class DisaggregatedRun(FleetRun):
    """What both sides did, as one Run; `parts` has the engines of the prefill side first."""

    def __init__(
        self, load: Workload, engines: Sequence[Engine], parts: Sequence[tuple[Run, np.ndarray]], prefilling: int
    ):
        self._prefilling = prefilling
        super().__init__(load, engines, parts)

    def merged(self, load: Workload) -> Log:
        """See FleetRun. What came from the other side was computed there, and counts once."""
        log = super().merged(load)
        left: dict[int, Left] = dict(log.left)
        retries: Counter[int] = Counter()
        for place, (run, of) in enumerate(self.parts):
            unused = set(run.log.left).difference(run.log.brought[:, 0].tolist())  # never got a slot
            if place < self._prefilling:  # had its token too late, and so no other
                unused = set(np.flatnonzero(~run.answered).tolist()).difference(run.log.left)
            for row in unused:
                late = Left(GAVE_UP, float(run.response[row]), len(run.steps), 0)
                was = run.log.left.get(row, late)
                left[int(of[row])] = was._replace(tokens=was.tokens + int(load.prompt_tokens[of[row]]))
            retries.update({int(of[row]): count for row, count in run.log.retries.items()})
        return replace(log, brought=log.brought[:0], left=left, retries=dict(retries))
