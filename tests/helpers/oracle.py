"""What serving means, written for a reader and not for speed: every token of every request, one at a time.

Nothing here comes from `course`: the fast loops are compared with this, to the bit. Requests are numbers into plain
lists. A step time is a function (decodes, decode context, ((tokens, already cached), ...)) -> seconds.
"""

from dataclasses import dataclass, field

from tests.helpers.oracle_rivals import Host, Pieces, reserved_tokens

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
    cap: int | None = None
    """So many are out at a time; who is due later waits in the client, in order."""
    patience: list | None = None
    """Seconds after its arrival in which its first token must leave, or whoever asked goes; None for ever."""
    elsewhere: list | None = None
    """Tokens of its prompt that somebody else computed; of a whole prompt the last one is computed again."""

    def comes_with(self, who):
        return min(self.elsewhere[who], self.prompt[who] - 1) if self.elsewhere else 0

    def end_of_patience(self, who, arrival):
        seconds = self.patience[who] if self.patience else None
        return float("inf") if seconds is None else arrival[who] + seconds


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
    returned: int = 0
    """How often a preempted request came back with what it had."""
    fragmented: int = 0
    """How often enough was free for a piece, but not in one hole."""
    retries: dict = field(default_factory=dict)
    """How often somebody was told to come again."""
    evicted: int = 0
    """Blocks that others could have found, taken for something else."""
    left: dict = field(default_factory=dict)
    """Who went without a whole answer: (why, when, tokens computed for it that nobody has lost before)."""

    def gone(self, who, why, now, cached):
        self.left[who] = why, now, cached[who]
        cached[who] = 0
        self.response[who] = now


class Door:
    """Where requests come in: a list of (time, request) of all that is known about the future."""

    def __init__(self, requests):
        self.requests, self.to_come = requests, len(requests.prompt)
        self.arrival = [None] * len(requests.prompt)
        self.known = []
        self.unsent = [request for request, before in enumerate(requests.after) if before is None]
        self.permits = [0.0] * (requests.cap or len(self.unsent))  # since when each place in the client is free
        self.send()

    def send(self):
        while self.unsent and self.permits:
            request = self.unsent.pop(0)
            self.expect(request, max(self.requests.arrival[request], self.permits.pop(0)))

    def expect(self, request, when):
        self.arrival[request] = when
        self.known = sorted([*self.known, (when, request)])

    def answered(self, request, now):
        self.permits.append(now)
        self.send()
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


def impatient(requests, out, there, now):
    """Those of `there` whose patience is over and who have had no token in time, as they leave."""
    ends = {who: requests.end_of_patience(who, out.arrival) for who in there}
    late = [
        who for who in there if ends[who] <= now and not (out.token_times[who] and out.token_times[who][0] <= ends[who])
    ]
    return sorted(late, key=lambda who: (ends[who], who))


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
    fewest=False,
    host_blocks=0,
    host_seconds=0.0,
    reserve=None,
    max_model_len=None,
    compaction=None,
    fit="best",
):
    """Iteration-level batching in the order of vLLM V1: those who run first, as they were admitted; then the queue.

    engine_version: "0.33", in which the threshold spares a request beside which no other runs or waits, or "0.19".
    by: "prompt" or "guess": the shortest in the queue is next, the first of equals; without a guess, the last.
    fewest: whoever has computed least gives way, of equals the last. host_blocks: what is preempted keeps `cached`
    there while they last; each block takes host_seconds, one way. reserve: pieces in place of blocks.
    """
    door, out = begin(requests)
    queue, batch = [], []
    # Tokens whose K and V are in memory, or come into it with the first slot.
    cached = [requests.comes_with(who) for who in range(len(requests.prompt))]
    held = [0] * len(requests.prompt)  # blocks
    now, last_end = 0.0, None
    host, pieces = Host(host_blocks), Pieces(num_blocks, compaction, fit) if reserve else None

    def piece(who):
        guess = requests.guess[who] if requests.guess else None
        return new_blocks(0, reserved_tokens(reserve, max_model_len, requests.prompt[who], guess), block_size)

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
        gone = impatient(requests, out, [*queue, *batch], now)
        for who in gone:
            host.held.pop(who, None)  # what is there was computed for nobody, too
            if who in batch and pieces:
                pieces.free(who)
            (batch if who in batch else queue).remove(who)
            held[who] = 0
            if out.admitted[who] is None:
                cached[who] = 0  # nothing has come
            out.gone(who, "gave up", now, cached)
            door.answered(who, now)
        if gone:
            continue
        if not queue and not batch:
            if door.next is None:
                return out
            now = door.next
            continue

        alone = len(queue) + len(batch) == 1 and engine_version == "0.33"
        threshold = 0 if alone else long_prefill_token_threshold

        # Whoever runs, first come first served; the last one gives way to those before it.
        turn, victims, dropped, left = {}, [], 0, max_num_batched_tokens
        for who in list(batch):
            if who in victims:
                continue
            if not left:
                break
            tokens = at_most(who, left)
            need = 0 if pieces else new_blocks(cached[who], tokens, block_size)
            while need > free() and who not in victims:
                victim = min(reversed(batch), key=lambda one: cached[one]) if fewest else batch[-1]
                batch.remove(victim)
                victims.append(victim)
                left += turn.pop(victim, 0)
                if not host.keeps(victim, new_blocks(0, cached[victim], block_size)):
                    dropped += cached[victim]
                    cached[victim] = 0
                held[victim] = 0
            if who not in victims:
                turn[who] = tokens
                held[who] += need
                left -= tokens
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
            needed = piece(who) if pieces else new_blocks(0, cached[who] + must_fit, block_size)
            out.fragmented += bool(pieces) and needed <= free() and max(pieces.holes())[0] < needed
            if needed + kept_free > free() or (pieces and not pieces.fits(needed)):
                break
            queue.remove(who)
            batch.append(who)
            turn[who] = tokens
            if pieces:
                pieces.put(who, needed)
            held[who] += needed if pieces else new_blocks(0, cached[who] + tokens, block_size)
            out.returned += host.gives_back(who)
            left -= tokens
            if out.admitted[who] is None:
                out.admitted[who] = now

        # The step itself.
        decodes = [who for who in turn if to_compute(who) == 1 and (out.token_times[who] or requests.comes_with(who))]
        context = sum(cached[who] + 1 for who in decodes)
        chunks = tuple((turn[who], cached[who]) for who in turn if who not in decodes)
        seconds = step_time(len(decodes), context, chunks) + host.moved * host_seconds
        if pieces and pieces.moved:
            seconds += pieces.moved * compaction
            pieces.moved = 0
        host.moved = 0
        start, now = now, now + seconds
        out.idle += last_end is not None and start > last_end
        last_end = now
        out.starved += sum(who not in turn and bool(out.token_times[who]) for who in batch)
        out.chunked += sum(turn[who] < to_compute(who) for who in turn)
        row = the_step(start, now, batch, decodes, context, chunks, victims, dropped, queue)
        row["blocks"] = sum(held) if num_blocks is not None else 0

        told = 0
        for who, tokens in turn.items():
            cached[who] += tokens
            if to_compute(who) == 0:
                out.token_times[who].append(now)
                told += 1
                if len(out.token_times[who]) == requests.output[who]:
                    out.response[who] = now
                    held[who] = 0
                    batch.remove(who)
                    if pieces:
                        pieces.free(who)
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
