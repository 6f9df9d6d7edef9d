"""The common case of continuous batching, as tight as Python gets: prompts that fit whole, blocks enough for all.

Nobody is touched but those who join or leave. Between two such moments lies a stretch of steps of decodes alone.
"""

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from course.engine.loops.arrivals import NEVER
from course.engine.loops.log import check_length
from course.engine.loops.stretch import LONG, keep, long_stretch

if TYPE_CHECKING:
    from course.engine.loops.continuous import ContinuousLoop

_ROUNDS = 1 << 10  # at a time; then the times of the steps so far go where they take less memory


def run_plain(loop: "ContinuousLoop") -> None:
    """Some rounds: those leave whose answer is complete, those join who wait, and a stretch of decodes follows.

    Ends when all is served, and sets `loop.special` where those who wait cannot join as they are. Needs arrivals known
    beforehand, so that requests stand in the queue as they are numbered, and nobody in chunks, sent back or short of
    blocks. Each line runs about once a request: their number is what the simulator's speed depends on.
    """
    n, slots, budget = loop.requests, loop.policy.max_num_seqs, loop.policy.max_num_batched_tokens
    times, prompts, pairs_of, codes, length = loop.arrivals.times, loop.whole, loop.pairs, loop.codes, loop.length
    counted, blocks, total = loop.cache is not None, loop.blocks, loop.total
    clock, finishes, answered = loop.clock, loop.finishes, loop.answered
    seconds, lines, linear = loop.step_time.seconds, loop.lines, loop.step_time.prefill_line()
    a_token, a_pair = linear or (0.0, 0.0)
    now, head, decodes, reserved = loop.now, loop.head, loop.decodes, loop.reserved
    ends: list[float] = []  # of the latest steps, not yet in the clock
    step = len(clock)
    offset = loop.context - decodes * step  # the decodes attend to offset + decodes x step tokens
    leave = finishes[0] // n  # the first step without the one who leaves next
    coming = times[head] if decodes < slots else NEVER  # when the next one can join

    for _ in range(_ROUNDS):
        while leave <= step:
            code = heappop(finishes)
            answered.append(code)
            offset += step - length[code % n]
            decodes -= 1
            if counted:
                reserved -= blocks[code % n]
            leave, coming = finishes[0] // n, times[head]

        if coming <= now:  # a step with new prompts
            end = head + 1
            if times[end] > now:
                tokens, pairs = prompts[head], pairs_of[head]
            else:
                last = head + slots - decodes
                while end < last and times[end] <= now:
                    end += 1
                tokens, pairs = sum(prompts[head:end]), sum(pairs_of[head:end])
            if tokens + decodes > budget or (counted and reserved + sum(blocks[head:end]) > total):
                loop.special = True
                break
            if counted:
                reserved += sum(blocks[head:end])
            if linear:
                base, slope = lines[decodes]
                base += a_token * tokens
                if slope:
                    base += slope * (offset + decodes * step)
                if a_pair:
                    base += a_pair * pairs
                now += base
            else:
                now += seconds(decodes, offset + decodes * step, tokens, pairs, tokens)
            ends.append(now)
            offset += tokens
            while head < end:
                heappush(finishes, codes[head] + step * n)
                offset -= step
                decodes += 1
                head += 1
            step += 1
            leave, coming = finishes[0] // n, times[head] if decodes < slots else NEVER
            if now >= coming or leave <= step:
                continue
        elif not decodes:
            if coming == NEVER:
                break
            now = coming
            loop.idle.append((step, now))
            continue

        base, slope = lines[decodes]
        if leave - step >= LONG and now + LONG * base < coming:
            if ends:
                keep(clock, ends)
            now = long_stretch(clock, now, coming, leave - step, decodes, offset + decodes * step, base, slope)
            step = len(clock)
        elif slope:
            context = offset + decodes * step
            for done in range(step + 1, leave + 1):  # noqa: B007
                now += base + slope * context
                ends.append(now)
                if now >= coming:
                    break
                context += decodes
            step = done
        else:
            for done in range(step + 1, leave + 1):  # noqa: B007
                now += base
                ends.append(now)
                if now >= coming:
                    break
            step = done

    keep(clock, ends)
    check_length(clock)
    loop.now, loop.head, loop.decodes, loop.reserved = now, head, decodes, reserved
    loop.context = offset + decodes * step
