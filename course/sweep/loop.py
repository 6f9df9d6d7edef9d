"""The loop of `Continuous`, first come first served, in the part of Python that numba compiles: numbers and arrays.

The meaning and the order of work are those of `course.engine.plain` and `course.policies.continuous`, whose words these
are. Each step touches every request that runs. `loop` returns to whoever called it for what it cannot do itself, and
goes on from there. `course.sweep.fast` fills in the arrays:

r: int64, a row a request, COLUMNS. q: LISTS of requests, a row each. s: what SETTINGS and STATE name.
events: rows of (kind, request, three numbers), see KINDS. clock: when each step ended [s]. idle: (step, when it began)
of those that began late. arrival: seconds, rising. lines: (base, slope) of a step of so many decodes, NaN where nobody
asked yet. f: the time, then the seconds of the step that were asked for.
"""

from math import inf

DONE, FULL, SECONDS, LINE, STUCK = range(5)
"""Why `loop` returns: all is served; `events` or `clock` is full; the seconds of a step with prompts are wanted, or the
line of so many decodes; nothing can run, which is the engine's to explain."""

TOKENS, CHUNK, STAY, PREEMPTED = KINDS = range(4)
"""What an event says besides: first and last step in which a token left, and 2 x tokens known + whether it began with a
chunk; step, tokens, cached before; first and last step; step, tokens lost, 0."""

COLUMNS = PROMPT, OUTPUT, COMPUTED, EMITTED, HELD, DECODES, COUNT, PREFILLS, ADMITTED, FIRST, KNOWN = range(11)
"""Of a request: tokens of prompt, answer, computed, emitted; blocks; whether it decodes; tokens in this step; whether
it is listed as prefilling; the step of its admission; where its latest tokens began, as in TOKENS."""
LISTS = RUNNING, PREFILLING, BACK, PLAN = range(4)
"""Who runs, by admission; who prefills; who was sent back, the head last; who computes in this step."""

SETTINGS = SLOTS, BUDGET, CHUNKED, THRESHOLD, SPARES, WHOLE, KEPT_FREE, SIZE, BLOCKS = range(9)
STATE = (
    FREE, HEAD, HERE, STEPS, RUNS, PREFILL, BACKS, PLANNED, ANSWERED, EVENTS, IDLES, DECODING, CONTEXT, TOKENS_OF,
    PAIRS, SEEN, COMPOSED, SHORT,
) = range(9, 27)  # fmt: skip
"""Free blocks; the head of the queue, and who has not come yet; steps; lengths of the lists; requests with their whole
answer; events, and late steps; then of the step that is under way, once it is composed; whether somebody gave way."""


def blocks(tokens, size):
    """Blocks that hold so many tokens."""
    return -(-tokens // size)


def note(events, s, kind, one, a, b, c):
    """One event more."""
    row = s[EVENTS]
    events[row, 0], events[row, 1], events[row, 2], events[row, 3], events[row, 4] = kind, one, a, b, c
    s[EVENTS] = row + 1


def remaining(r, one):
    """Tokens that a request still has to compute."""
    return r[one, PROMPT] + r[one, EMITTED] - r[one, COMPUTED]


def listed(r, q, s, one, tokens):
    """It computes so many tokens in this step."""
    q[PLAN, s[PLANNED]], r[one, COUNT] = one, tokens
    s[PLANNED] += 1


def cap_of(s, decoding):
    """The most tokens of one request in this step."""
    alone = decoding <= 1 and s[RUNS] + s[HERE] - s[HEAD] + s[BACKS] == 1
    return s[BUDGET] if not s[THRESHOLD] or (s[SPARES] and alone) else s[THRESHOLD]


def prefill(r, q, s, decoding, left, room):
    """List those that prefill. The tokens and blocks that are left; -1 blocks if there are too few."""
    cap = cap_of(s, decoding)
    for place in range(s[PREFILL]):
        one = q[PREFILLING, place]
        tokens, there = min(remaining(r, one), left, cap), r[one, COMPUTED]
        if tokens == 0:
            break
        need = blocks(there + tokens, s[SIZE]) - r[one, HELD]
        if need > room:
            return left, -1
        listed(r, q, s, one, tokens)
        left, room = left - tokens, room - need
    return left, room


def admit(r, q, s, cap, left, room):
    """List newcomers while slots, tokens and blocks last: those sent back, then the queue. They hold slots at once."""
    while left > 0 and s[RUNS] < s[SLOTS] and (s[BACKS] or s[HEAD] < s[HERE]):
        one = q[BACK, s[BACKS] - 1] if s[BACKS] else s[HEAD]
        whole = remaining(r, one)
        tokens = min(whole, cap)
        if tokens > left:
            if not s[CHUNKED]:
                break
            tokens = left
        need = blocks(whole if s[WHOLE] else tokens, s[SIZE])
        if need > room or (s[RUNS] and need + s[KEPT_FREE] > room):
            break
        listed(r, q, s, one, tokens)
        left, room = left - tokens, room - blocks(tokens, s[SIZE])
        if s[BACKS]:
            s[BACKS] -= 1
        else:
            s[HEAD] += 1
        q[RUNNING, s[RUNS]], r[one, ADMITTED] = one, s[STEPS]
        s[RUNS] += 1


def stop(r, s, events, one):
    """It decodes no more, or stands still: its latest tokens left up to the step before."""
    if r[one, DECODES]:
        r[one, DECODES] = 0
        note(events, s, TOKENS, one, r[one, FIRST], s[STEPS] - 1, r[one, KNOWN])


def make_room(r, q, s, events, decoding, due):
    """Those that run, in order of admission; who was admitted last gives way. All tokens of the step are listed."""
    size, stay, s[PLANNED] = s[SIZE], s[RUNS], 0
    if decoding == stay:
        room = s[FREE] - due
        while room < 0:
            stay -= 1
            room += blocks(r[q[RUNNING, stay], COMPUTED] + 1, size)
        for place in range(stay):
            listed(r, q, s, q[RUNNING, place], 1)
    else:
        room, left, place, cap = s[FREE], s[BUDGET], 0, cap_of(s, decoding)
        while place < stay and left > 0:
            one = q[RUNNING, place]
            tokens, there = min(remaining(r, one), left, cap), r[one, COMPUTED]
            need = blocks(there + tokens, size) - r[one, HELD]
            while need > room and stay > place:
                stay -= 1
                room += r[q[RUNNING, stay], HELD]
            if stay > place:
                listed(r, q, s, one, tokens)
                left, room, place = left - tokens, room - need, place + 1
    for place in range(s[RUNS] - 1, stay - 1, -1):
        one = q[RUNNING, place]
        stop(r, s, events, one)
        note(events, s, STAY, one, r[one, ADMITTED], s[STEPS] - 1, 0)
        note(events, s, PREEMPTED, one, s[STEPS], r[one, COMPUTED], 0)
        s[FREE] += r[one, HELD]
        r[one, COMPUTED], r[one, HELD], r[one, PREFILLS], q[BACK, s[BACKS]] = 0, 0, 0, one
        s[BACKS] += 1
    s[RUNS] = stay
    for place in range(s[PLANNED], stay):  # no turn
        stop(r, s, events, q[RUNNING, place])


def plan(r, q, s, events):
    """The policy's answer, as a list with the tokens of each: decodes and those that prefill, then those that wait."""
    decoding, due, s[PLANNED] = 0, 0, 0
    for place in range(s[RUNS]):
        one = q[RUNNING, place]
        if r[one, DECODES]:
            decoding += 1
            due += r[one, COMPUTED] == r[one, HELD] * s[SIZE]
            listed(r, q, s, one, 1)
    left, room = s[BUDGET] - decoding, s[FREE] - due
    joining = left > 0 and s[RUNS] < s[SLOTS] and (s[BACKS] or s[HEAD] < s[HERE])
    cap = cap_of(s, decoding)
    if room >= 0 and s[PREFILL]:
        left, room = prefill(r, q, s, decoding, left, room)
    s[SHORT] = room < 0
    if room < 0:
        make_room(r, q, s, events, decoding, due)
    elif joining:
        admit(r, q, s, cap, left, room)


def decodes_in(r, one):
    """Whether what it computes in this step is a decode: of a prompt computed again, the last token is."""
    return r[one, DECODES] or (r[one, EMITTED] and remaining(r, one) == 1)


def compose(r, q, s):
    """What the step is made of, for its seconds."""
    s[DECODING] = s[CONTEXT] = s[TOKENS_OF] = s[PAIRS] = s[SEEN] = 0
    for place in range(s[PLANNED]):
        one = q[PLAN, place]
        tokens, there = r[one, COUNT], r[one, COMPUTED]
        if decodes_in(r, one):
            s[DECODING] += 1
            s[CONTEXT] += there + 1
        else:
            s[TOKENS_OF] += tokens
            s[PAIRS] += tokens * there + tokens * (tokens + 1) // 2
            s[SEEN] += there + tokens
    s[COMPOSED] = 1


def alike(r, q, s):
    """How many steps are like this one: decodes alone, until one of them is complete or blocks might run short.

    After a step in which somebody gave way, and so nobody joined, somebody may.
    """
    if s[SHORT] or s[PREFILL] or s[PLANNED] > s[DECODING] or s[RUNS] > s[PLANNED]:
        return 1
    steps, need = s[BUDGET] + (1 << 60), 0
    for place in range(s[RUNS]):
        one = q[RUNNING, place]
        steps = min(steps, r[one, OUTPUT] - r[one, EMITTED])
    for place in range(s[RUNS]):
        one = q[RUNNING, place]
        need += blocks(r[one, COMPUTED] + steps, s[SIZE]) - r[one, HELD]
    return steps if need <= s[FREE] else 1


def forward(r, q, s, events, steps):
    """One step has run, or several alike: count what was computed, and let go whose answer is complete."""
    step, size, done = s[STEPS], s[SIZE], 0
    for place in range(s[PLANNED]):
        one = q[PLAN, place]
        tokens, there, decode = r[one, COUNT], r[one, COMPUTED], decodes_in(r, one)
        if not decode:
            note(events, s, CHUNK, one, step, tokens, there)
        complete = remaining(r, one) == tokens
        tokens = max(tokens, steps)
        if there + tokens > r[one, HELD] * size:
            s[FREE] += r[one, HELD]
            r[one, HELD] = blocks(there + tokens, size)
            s[FREE] -= r[one, HELD]
        r[one, COMPUTED] = there + tokens
        if complete:
            if not r[one, DECODES]:
                r[one, DECODES], r[one, FIRST], r[one, PREFILLS] = 1, step, 0
                r[one, KNOWN] = 2 * (there + 1) if decode else 2 * (there + tokens + 1) + 1
            r[one, EMITTED] += steps
            done += r[one, EMITTED] == r[one, OUTPUT]
    s[STEPS] += steps
    if done:
        kept = 0
        for place in range(s[RUNS]):
            one = q[RUNNING, place]
            if r[one, EMITTED] == r[one, OUTPUT]:
                stop(r, s, events, one)
                note(events, s, STAY, one, r[one, ADMITTED], s[STEPS] - 1, 0)
                s[FREE] += r[one, HELD]
            else:
                q[RUNNING, kept] = one
                kept += 1
        s[RUNS], s[ANSWERED] = kept, s[ANSWERED] + done


def list_prefilling(r, q, s):
    """Who prefilled before and still does, in that order, then others that run and do not decode."""
    kept = 0
    for place in range(s[PREFILL]):
        one = q[PREFILLING, place]
        if r[one, PREFILLS]:
            q[PREFILLING, kept] = one
            kept += 1
    for place in range(s[RUNS]):
        one = q[RUNNING, place]
        if not r[one, DECODES] and not r[one, PREFILLS]:
            q[PREFILLING, kept], r[one, PREFILLS] = one, 1
            kept += 1
    s[PREFILL] = kept


def loop(r, q, s, f, arrival, lines, line_of_prompts, clock, idle, events):
    """Go on, and return why not further. line_of_prompts: what a token and a pair add [s], NaN if that is no line."""
    while s[ANSWERED] < len(arrival):
        if not s[COMPOSED]:
            while s[HERE] < len(arrival) and arrival[s[HERE]] <= f[0]:
                s[HERE] += 1
            most = s[RUNS] + min(s[SLOTS] - s[RUNS], s[HERE] - s[HEAD] + s[BACKS])
            if s[STEPS] == len(clock) or s[EVENTS] + 4 * most > len(events):
                return FULL
            plan(r, q, s, events)
            if not s[PLANNED]:
                if s[RUNS] or s[BACKS] or s[HEAD] < s[HERE]:
                    return STUCK
                f[0] = arrival[s[HERE]]
                idle[s[IDLES], 0], idle[s[IDLES], 1] = s[STEPS], f[0]
                s[IDLES] += 1
                continue
            compose(r, q, s)
            f[1] = 0.0
        base, slope = lines[s[DECODING], 0], lines[s[DECODING], 1]
        steps, changes = 1, s[PREFILL] or s[PLANNED] > s[DECODING] or s[RUNS] > s[PLANNED]
        if f[1] > 0:
            f[0] += f[1]
        elif s[TOKENS_OF] and line_of_prompts[0] != line_of_prompts[0]:
            return SECONDS
        elif base != base:
            return LINE
        elif s[TOKENS_OF]:
            f[0] += base + line_of_prompts[0] * s[TOKENS_OF] + slope * s[CONTEXT] + line_of_prompts[1] * s[PAIRS]
        else:
            steps = min(alike(r, q, s), len(clock) - s[STEPS])
            # Who waits does not join before somebody leaves; who comes may.
            waits = s[RUNS] == s[SLOTS] or s[BACKS] or s[HEAD] < s[HERE]
            coming = inf if waits or s[HERE] == len(arrival) else arrival[s[HERE]]
            for step in range(steps):
                f[0] += base + slope * s[CONTEXT]
                clock[s[STEPS] + step] = f[0]
                s[CONTEXT] += s[DECODING]
                if f[0] >= coming:
                    steps = step + 1
                    break
        clock[s[STEPS] + steps - 1], s[COMPOSED] = f[0], 0
        forward(r, q, s, events, steps)
        if changes:
            list_prefilling(r, q, s)
    return DONE


PARTS = (
    blocks, note, remaining, listed, cap_of, prefill, admit, stop, make_room, plan, decodes_in, compose, alike, forward,
    list_prefilling, loop,
)  # fmt: skip
"""In the order in which they use each other."""
