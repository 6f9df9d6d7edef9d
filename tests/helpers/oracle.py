"""What serving means, written for a reader and not for speed: every token of every request, one at a time.

Nothing here comes from `course`: the fast loops are compared with this, to the bit. Requests are numbers into plain
lists. A step time is a function (decodes, decode context, ((tokens, already cached), ...)) -> seconds.
"""

from dataclasses import dataclass, field

TIMES = ("start", "end")
COUNTS = ("running", "useful", "wasted", "decodes", "decode_context", "prefill_tokens", "preemptions", "dropped")
COLUMNS = (*TIMES, *COUNTS, "queue", "blocks")


@dataclass
class Requests:
    """`after[i]` None: request i comes at arrival[i]. Else think_time[i] after request after[i] was answered.

    guess[i]: what somebody thinks of the length of its answer, or None.
    """

    arrival: list
    prompt: list
    output: list
    after: list
    think_time: list
    guess: list


@dataclass
class Outcome:
    """What happened. Times in seconds, by request; `steps` has one dict a step, with COLUMNS as keys."""

    arrival: list
    admitted: list
    token_times: list
    response: list
    preempted: list
    steps: list = field(default_factory=list)
    starved: int = 0
    """How often a request that had tokens out already got no turn in a step, though it held a slot."""
    chunked: int = 0
    """How often a prompt was computed in part only."""
    idle: int = 0
    """How many steps began later than the one before them ended."""


class Door:
    """Where requests come in: a list of (time, request) of all that is known about the future."""

    def __init__(self, requests):
        self.requests, self.to_come = requests, len(requests.prompt)
        self.arrival = [None] * len(requests.prompt)
        self.known = []
        for request, before in enumerate(requests.after):
            if before is None:
                self.expect(request, requests.arrival[request])

    def expect(self, request, when):
        self.arrival[request] = when
        self.known = sorted([*self.known, (when, request)])

    def answered(self, request, now):
        for turn, before in enumerate(self.requests.after):
            if before == request:
                self.expect(turn, now + self.requests.think_time[turn])

    def come_in(self, now):
        """Those who are here by now, in order; at one time, by number."""
        here = [request for when, request in self.known if when <= now]
        self.known = [(when, request) for when, request in self.known if when > now]
        self.to_come -= len(here)
        return here

    @property
    def next(self):
        return self.known[0][0] if self.known else None


def begin(requests):
    n = len(requests.prompt)
    door = Door(requests)
    return door, Outcome(door.arrival, [None] * n, [[] for _ in range(n)], [None] * n, [0] * n)


def new_blocks(cached, tokens, block_size):
    """One by one: a token whose place is a multiple of the block size needs a new block."""
    return sum(place % block_size == 0 for place in range(cached, cached + tokens))


def the_step(start, end, batch, decodes, context, chunks, victims, dropped, queue):
    """A row of `Outcome.steps`, but for its blocks and the tokens that left."""
    return {
        "start": start,
        "end": end,
        "running": len(batch),
        "wasted": 0,
        "decodes": len(decodes),
        "decode_context": context,
        "prefill_tokens": sum(tokens for tokens, _ in chunks),
        "preemptions": len(victims),
        "dropped": dropped,
        "queue": len(queue),
    }


def serve_continuous(
    requests,
    step_time,
    max_num_seqs,
    max_num_batched_tokens,
    enable_chunked_prefill=True,
    long_prefill_token_threshold=0,
    scheduler_reserve_full_isl=True,
    engine_version="0.33",
    watermark=0,
    by=None,
    num_blocks=None,
    block_size=16,
    drafting=(0, (), None),
):
    """Iteration-level batching in the order of vLLM V1: those who run first, as they were admitted; then the queue.

    engine_version: "0.33", in which the threshold spares a request beside which no other runs or waits, or "0.19".
    by: "prompt" or "guess": the shortest in the queue is next, the first of equals; without a guess, the last.

    drafting: drafts for each that decodes, fewer if the budget is short, none if somebody gives way or blocks are short
    for all; for each request whether all its drafts are right, or none; (decodes, context, drafts) -> seconds besides.
    """
    door, out = begin(requests)
    queue, batch, decoding = [], [], set()
    cached = [0] * len(requests.prompt)  # tokens whose K and V are in memory
    held = [0] * len(requests.prompt)  # blocks
    now, last_end = 0.0, None

    def to_compute(who):
        return requests.prompt[who] + len(out.token_times[who]) - cached[who]

    def at_most(who, left):
        return min(to_compute(who), left, threshold or left)

    def free():
        return float("inf") if num_blocks is None else num_blocks - sum(held)

    def length(who):
        if by is None:
            return 0
        known = requests.prompt[who] if by == "prompt" else requests.guess[who]
        return float("inf") if known is None else known

    while True:
        queue += door.come_in(now)
        if not queue and not batch:
            if door.next is None:
                return out
            now = door.next
            continue

        alone = len(queue) + len(batch) == 1 and engine_version == "0.33"
        threshold = 0 if alone else long_prefill_token_threshold

        # Whoever runs, first come first served; the last one gives way to those before it. Beside drafts, prompts get
        # what all decodes leave; if blocks are short then, whoever runs is looked at in order once more.
        each = min(drafting[0], (max_num_batched_tokens - len(decoding)) // len(decoding)) if decoding else 0
        for reserve in (True, False) if each else (False,):
            before = list(batch), list(cached), list(held)
            turn, victims, dropped, left = {}, [], 0, max_num_batched_tokens - each * len(decoding)
            for who in list(batch):
                if who in victims or not left:
                    break
                tokens = at_most(who, left - (reserve and who not in decoding) * len(decoding - turn.keys()))
                if not tokens:
                    continue
                need = new_blocks(cached[who], tokens, block_size)
                while need > free() and who not in victims:
                    victims.append(batch.pop())
                    dropped += cached[victims[-1]]
                    cached[victims[-1]] = held[victims[-1]] = 0
                if who not in victims:
                    turn[who] = tokens
                    held[who] += need
                    left -= tokens
            if not (reserve and victims):
                break
            batch[:], cached[:], held[:] = before
        for victim in victims:
            out.preempted[victim] += 1
            queue.insert(0, victim)

        # Then the queue, from its head or its shortest, unless somebody has just been sent there.
        while queue and not victims and left and len(batch) < max_num_seqs:
            who = min(queue, key=length)
            tokens = at_most(who, left)
            whole = min(to_compute(who), threshold or to_compute(who))
            if tokens < whole and not enable_chunked_prefill:
                break
            must_fit = to_compute(who) if scheduler_reserve_full_isl else tokens
            kept_free = int(watermark * (num_blocks + 1)) if batch and num_blocks is not None else 0
            if new_blocks(0, must_fit, block_size) + kept_free > free():
                break
            queue.remove(who)
            batch.append(who)
            turn[who] = tokens
            held[who] += new_blocks(0, tokens, block_size)
            left -= tokens
            if out.admitted[who] is None:
                out.admitted[who] = now

        each = min(each, (max_num_batched_tokens - sum(turn.values())) // len(decoding)) if each else 0
        if victims or len(decoding) * -(-each // block_size) > free():
            each = 0
        drafted = [who for who in turn if who in decoding] if each else []

        # The step itself.
        decodes = [who for who in turn if out.token_times[who] and to_compute(who) == 1]
        context = sum(cached[who] + 1 for who in decodes)
        chunks = tuple((turn[who], cached[who]) for who in turn if who not in decodes)
        start, now = (
            now,
            now
            + (
                step_time(len(decodes), context, chunks)
                + (drafting[2](len(drafted), sum(cached[who] + 1 for who in drafted), each) if drafted else 0)
            ),
        )
        out.idle += last_end is not None and start > last_end
        last_end = now
        out.starved += sum(who not in turn and bool(out.token_times[who]) for who in batch)
        out.chunked += sum(turn[who] < to_compute(who) for who in turn)
        row = the_step(start, now, batch, decodes, context, chunks, victims, dropped, queue)
        row["blocks"] = (
            sum(held) + sum(new_blocks(cached[who] + 1, each, block_size) for who in drafted)
            if num_blocks is not None
            else 0
        )
        row["drafted"] = each * len(drafted)

        told, decoding = 0, set()
        for who, tokens in turn.items():
            cached[who] += tokens
            if to_compute(who) == 0:
                besides = each if who in drafted and drafting[1][who] else 0
                besides = min(besides, requests.output[who] - len(out.token_times[who]) - 1)
                held[who] += new_blocks(cached[who], besides, block_size)
                cached[who] += besides
                out.token_times[who] += [now] * (1 + besides)
                told += 1 + besides
                decoding.add(who)
                if len(out.token_times[who]) == requests.output[who]:
                    out.response[who] = now
                    held[who] = 0
                    decoding.remove(who)
                    batch.remove(who)
                    door.answered(who, now)
        out.steps.append({**row, "useful": told})


def serve_batches(requests, step_time, max_num_seqs, max_queue_delay=None, num_blocks=None, block_size=16):
    """Request-level batching: static without max_queue_delay, dynamic with it. They differ in when a batch starts."""
    door, out = begin(requests)
    queue, now, last_end = [], 0.0, None

    while True:
        queue += door.come_in(now)
        if not queue and door.next is None:
            return out
        if len(queue) >= max_num_seqs:
            start = True
        elif max_queue_delay is None:
            start = door.next is None
        else:
            start = bool(queue) and now >= out.arrival[queue[0]] + max_queue_delay
        if not start:  # until somebody comes, or the oldest has waited long enough
            until = [] if door.next is None else [door.next]
            if queue and max_queue_delay is not None:
                until.append(out.arrival[queue[0]] + max_queue_delay)
            now = min(until)
            continue

        batch, queue = queue[:max_num_seqs], queue[max_num_seqs:]
        prompt = max(requests.prompt[who] for who in batch)
        output = max(requests.output[who] for who in batch)
        each = new_blocks(0, prompt + output - 1, block_size) if num_blocks is not None else 0
        for token in range(output):
            queue += door.come_in(now)
            if token == 0:
                out.idle += last_end is not None and now > last_end
                decodes, context, chunks = 0, 0, ((prompt, 0),) * len(batch)
            else:
                decodes, context, chunks = len(batch), (prompt + token) * len(batch), ()
            begun, now = now, now + step_time(decodes, context, chunks)
            useful = 0
            for who in batch:
                if token == 0:
                    out.admitted[who] = begun
                if token < requests.output[who]:
                    out.token_times[who].append(now)
                    useful += 1
            out.steps.append(
                {
                    "start": begun,
                    "end": now,
                    "running": len(batch),
                    "useful": useful,
                    "wasted": len(batch) - useful,
                    "decodes": decodes,
                    "decode_context": context,
                    "prefill_tokens": sum(tokens for tokens, _ in chunks),
                    "preemptions": 0,
                    "dropped": 0,
                    "queue": len(queue),
                    "blocks": each * len(batch),
                }
            )
        last_end = now
        for who in batch:
            out.response[who] = now
        for who in batch:
            door.answered(who, now)
