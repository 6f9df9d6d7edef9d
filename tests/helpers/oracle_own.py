"""The oracle for a policy that is a plain function: what it says is done, every token of every request, one at a time.

Nothing here comes from `course`. The rules of the admission windows are such functions, and so is `at_random`, which
says whatever the rules of an engine allow.
"""

from dataclasses import dataclass
from random import Random

from tests.helpers.oracle import begin, impatient, new_blocks, the_step


@dataclass
class Present:
    """What a function that decides may look at. `queue` and `batch` hold numbers of requests, in order."""

    slots: int
    budget: float
    block_size: int
    now: float
    last_end: float | None
    """When the last step ended; None before the first."""
    queue: list
    batch: list
    arrival: list
    remaining: dict
    """Tokens to compute before the next one is emitted, of everybody in the queue and the batch."""
    computed: dict
    emitted: dict
    prompt: dict
    had_slot: dict
    """Whether it ever had one."""
    decoding: list
    """Those of the batch that emitted a token in the last step that computed anything of them."""
    free: float
    """Blocks that nobody holds."""

    def need(self, who, tokens):
        return new_blocks(self.computed[who], tokens, self.block_size)


def serve_decided(requests, step_time, decide, slots, budget=float("inf"), num_blocks=None, block_size=16):
    """decide(present) -> (who is preempted, {who: tokens}), perhaps {who is rejected: seconds or None}; or a number:
    wait until then, or until somebody comes or leaves.
    """
    door, out = begin(requests)
    queue, batch, decoding, away = [], [], set(), set()
    cached = [0] * len(requests.prompt)
    now, last_end = 0.0, None

    def to_compute(who):
        return requests.prompt[who] + len(out.token_times[who]) - cached[who]

    while True:
        queue += door.come_in(now)
        away -= set(queue)
        gone = impatient(requests, out, [*queue, *batch, *away], now)
        for who in gone:
            if who in away:
                door.known, door.to_come = [one for one in door.known if one[1] != who], door.to_come - 1
            (batch if who in batch else away if who in away else queue).remove(who)
            decoding.discard(who)
            out.gone(who, "gave up", now, cached)
            door.answered(who, now)
        if gone:
            continue
        if not queue and not batch:
            if door.next is None:
                return out
            now = min([door.next, *(requests.end_of_patience(who, out.arrival) for who in away)])
            continue

        everybody = [*queue, *batch]
        held = sum(new_blocks(0, cached[who], block_size) for who in batch)
        answer = decide(
            Present(
                slots=slots,
                budget=budget,
                block_size=block_size,
                now=now,
                last_end=last_end,
                queue=list(queue),
                batch=list(batch),
                arrival=out.arrival,
                remaining={who: to_compute(who) for who in everybody},
                computed={who: cached[who] for who in everybody},
                emitted={who: len(out.token_times[who]) for who in everybody},
                prompt=dict(enumerate(requests.prompt)),
                had_slot={who: out.admitted[who] is not None for who in everybody},
                decoding=[who for who in batch if who in decoding],
                free=float("inf") if num_blocks is None else num_blocks - held,
            )
        )
        if isinstance(answer, float):
            assert answer > now
            ends = [
                requests.end_of_patience(who, out.arrival) for who in (*everybody, *away) if not out.token_times[who]
            ]
            now = min([answer, *ends, *([] if door.next is None else [door.next])])
            continue

        victims, turn, *rejects = answer
        for who, later in rejects[0].items() if rejects else ():
            queue.remove(who)
            if later is not None:
                away.add(who)
                out.retries[who] = out.retries.get(who, 0) + 1
                door.known, door.to_come = sorted([*door.known, (now + later, who)]), door.to_come + 1
                continue
            out.gone(who, "rejected", now, cached)
            door.answered(who, now)
        queue += door.come_in(now)  # whom the client sends in place of those waits while the step runs
        if not turn:
            continue
        dropped = 0
        for who in victims:
            dropped += cached[who]
            cached[who] = 0
            batch.remove(who)
            queue.insert(0, who)
            out.preempted[who] += 1
            decoding.discard(who)
        for who in turn:
            if who in queue:
                queue.remove(who)
                batch.append(who)
                if out.admitted[who] is None:
                    out.admitted[who] = now

        decodes = [who for who in turn if out.token_times[who] and to_compute(who) == 1]
        context = sum(cached[who] + 1 for who in decodes)
        chunks = tuple((turn[who], cached[who]) for who in turn if who not in decodes)
        start, now = now, now + step_time(len(decodes), context, chunks)
        out.idle += last_end is not None and start > last_end
        last_end = now
        out.starved += sum(who not in turn and bool(out.token_times[who]) for who in batch)
        out.chunked += sum(turn[who] < to_compute(who) for who in turn)
        decoding.intersection_update(turn)  # whoever got no turn stands still
        for who, tokens in turn.items():
            assert 1 <= tokens <= to_compute(who)
            cached[who] += tokens
        blocks = sum(new_blocks(0, cached[who], block_size) for who in batch)
        assert sum(turn.values()) <= budget and len(batch) <= slots and (num_blocks is None or blocks <= num_blocks)
        row = the_step(start, now, batch, decodes, context, chunks, victims, dropped, [*queue, *away])
        row["blocks"] = blocks if num_blocks is not None else 0

        emitted = [who for who in turn if to_compute(who) == 0]
        for who in emitted:
            out.token_times[who].append(now)
            decoding.add(who)
            if len(out.token_times[who]) == requests.output[who]:
                out.response[who] = now
                batch.remove(who)
                door.answered(who, now)
        out.steps.append({**row, "useful": len(emitted)})


# Admission windows


def everybody(present):
    """Whoever runs goes on, and whoever waits joins while there are slots."""
    newcomers = present.queue[: present.slots - len(present.batch)]
    return [], {who: present.remaining[who] for who in (*present.batch, *newcomers)}


def first_arrival_opens(window):
    """A window opens when somebody arrives at an idle engine; it ends after `window` seconds, or with a full batch."""

    def decide(present):
        if not present.batch and len(present.queue) < present.slots:
            opened = present.arrival[present.queue[0]]
            was_idle = present.last_end is None or opened > present.last_end
            if was_idle and present.now < opened + window:
                return opened + window
        return everybody(present)

    return decide


def window_of_the_notes(window):
    """A whole window before the first step of a busy time, full or not, and a quarter of one before every other."""

    def decide(present):
        if present.batch:
            opens = present.last_end + window / 4
        else:
            opens = max(present.last_end or 0.0, present.arrival[present.queue[0]]) + window
        return opens if present.now < opens else everybody(present)

    return decide


# A gateway that answers 429


def told_to_come_again(rate, burst, cost, tenant):
    """Whoever finds too little in the bucket of its tenant is told after how many whole seconds there will be enough.

    Buckets start full, with `burst` tokens, and fill by `rate` a second. Who costs more than that is rejected for good.
    """
    bucket, passed = {}, set()

    def decide(present):
        told = {}
        for who in present.queue:
            if who in passed:
                continue
            left, then = bucket.get(tenant[who], (burst, present.now))
            left = min(burst, left + rate * (present.now - then))
            if cost[who] > burst:
                told[who] = None
            elif cost[who] - left > 1e-9 * cost[who]:
                told[who] = max(1, -int((left - cost[who]) / rate // 1))
            else:
                bucket[tenant[who]] = left - cost[who], present.now
                passed.add(who)
        return ([], {}, told) if told else everybody(present)

    return decide


# Prompts first


def prompts_first(chunked):
    """As SGLang: a step of prompts while one can run, else a token for everybody whose prompt is complete."""

    def decide(present):
        complete = [who for who in present.batch if present.emitted[who] and present.remaining[who] == 1]
        begun = [who for who in present.batch if who not in complete]
        free = present.free - sum(present.need(who, 1) for who in complete)
        turn = prompts_of_a_step(present, begun, free, chunked)
        if turn:
            return [], turn
        victims, free = [], present.free
        while sum(present.need(who, 1) for who in complete if who not in victims) > free:
            left = [who for who in complete if who not in victims]
            if len(left) == 1 and begun:
                gives_way = begun.pop()
            else:  # of equals the one admitted last, hence the reversed order
                gives_way = min(reversed(left), key=lambda who: (present.emitted[who], -present.prompt[who]))
            victims.append(gives_way)
            free += new_blocks(0, present.computed[gives_way], present.block_size)
        return victims, {who: 1 for who in complete if who not in victims}

    return decide


def prompts_of_a_step(present, begun, free, chunked):
    """free: blocks beside those for the next token of everybody whose prompt is complete."""
    turn, left = {}, present.budget
    for who in begun:
        tokens = min(present.remaining[who], left)
        if not tokens or present.need(who, tokens) > free:
            return turn
        turn[who] = tokens
        left -= tokens
        free -= present.need(who, tokens)
    for who in present.queue[: present.slots - len(present.batch)]:
        tokens = min(present.remaining[who], left)
        if not tokens or (tokens < present.remaining[who] and not chunked):
            break
        if present.need(who, present.remaining[who]) > free:
            break
        turn[who] = tokens
        left -= tokens
        free -= present.need(who, tokens)
    return turn


# Anything at all


@dataclass
class AtRandom:
    """Says whatever an engine allows: a part of a prompt, no turn for some, somebody sent away who may come back at
    once, nothing for a while. Often it says that its answer holds, and then keeps to that.
    """

    seed: int
    holds_until: float = 0.0
    waits_until: float = 0.0
    those: tuple = ()
    """Who waited and who ran when it said that its answer would hold."""
    rejects: bool = False
    """Whether it also sends some away who wait, at times without doing anything else; never request 0."""

    def holds(self, present):
        """Whether decodes alone go on, as it said before."""
        due = sum(present.need(who, 1) for who in present.decoding)
        return (
            self.unchanged(present)
            and bool(present.decoding)
            and present.now < self.holds_until
            and due <= present.free
        )

    def unchanged(self, present):
        return self.those == (frozenset(present.queue), frozenset(present.batch))

    def __call__(self, present):
        if self.holds(present):
            return [], dict.fromkeys(present.decoding, 1)
        if self.unchanged(present) and present.now < self.waits_until:
            return self.waits_until
        self.holds_until, self.waits_until, self.those = 0.0, 0.0, ()
        draw = Random(f"{self.seed} {present.now!r}")
        sent_away = [who for who in present.queue if who and draw.random() < 0.1] if self.rejects else []
        if sent_away:
            present.queue = [who for who in present.queue if who not in sent_away]
            new = [who for who in sent_away if not present.had_slot[who]]
            sent_away = {who: draw.choice([None, 0.125, 0.3]) if who in new else None for who in sent_away}
            if draw.random() < 0.5 or not (present.queue or present.batch):
                return [], {}, sent_away
        rare = draw.random() < 0.3
        victims = [who for who in present.batch if rare and draw.random() < 0.2]
        draw.shuffle(victims)
        free = present.free + sum(new_blocks(0, present.computed[who], present.block_size) for who in victims)
        going_on = [who for who in present.batch if who not in victims]
        coming = [*reversed(victims), *present.queue]
        if draw.random() < 0.3:
            draw.shuffle(coming)
        left, slots, turn = present.budget, present.slots - len(going_on), {}
        for who in (*going_on, *coming):
            # A victim has all to compute again.
            again = present.computed[who] if who in victims else 0
            remaining, computed = present.remaining[who] + again, present.computed[who] - again
            tokens = draw.choice([remaining, remaining, 1, draw.randint(1, remaining)])
            need = new_blocks(computed, tokens, present.block_size)
            if tokens > left or need > free or (who in coming and not slots) or draw.random() < 0.15:
                continue
            turn[who] = tokens
            left -= tokens
            free -= need
            slots -= who in coming
        if not turn:
            if draw.random() < 0.5 and not sent_away:
                self.waits_until = present.now + draw.choice([0.125, 0.3])
                self.those = frozenset(present.queue), frozenset(present.batch)
                return self.waits_until
            first, *others = (*present.batch, *present.queue)  # alone it fits in any case
            turn = {first: 1}
            victims = [who for who in others if who in present.batch]
        if draw.random() < 0.7:
            self.holds_until = present.now + draw.choice([0.125, 0.3, 3.0, 1e9])
            running = {who for who in present.batch if who not in victims} | turn.keys()
            self.those = frozenset({*present.queue, *victims} - running), frozenset(running)
        return (victims, turn, sent_away) if sent_away else (victims, turn)
