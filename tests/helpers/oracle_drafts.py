"""The oracle of continuous batching with drafts: every token of every request, one at a time.

Nothing here comes from `course`. Without drafts it says what `oracle.serve_continuous` says of plain blocks, and
`oracle_prefix.serve_sharing` of shared ones.
"""

from tests.helpers.oracle import begin, new_blocks, the_step
from tests.helpers.oracle_prefix import Memory


def serve_drafting(
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
    text_of=None,
):
    """(Outcome, hits, spared), the latter two as `serve_sharing` has them; without `text_of` nothing is found.

    Iteration-level batching in the order of vLLM V1: those who run first, as they were admitted; then the queue.

    engine_version: "0.33", in which the threshold spares a request beside which no other runs or waits, or "0.19".
    by: "prompt" or "guess": the shortest in the queue is next, the first of equals; without a guess, the last.

    drafting: drafts for each that decodes, fewer if the budget is short, none if somebody gives way or blocks are short
    for all; for each request whether all its drafts are right, or none; (decodes, context, drafts) -> seconds besides.
    Drafts take their blocks last, and give them back. text_of: see `serve_sharing`; a draft that was right can be found
    once its step has ended.
    """
    door, out = begin(requests)
    queue, batch, decoding, hits, spared = [], [], set(), [], []
    cached = [0] * len(requests.prompt)  # tokens whose K and V are in memory
    memory = Memory(num_blocks or 9 * sum(requests.prompt + requests.output), block_size, engine_version == "0.33")
    now, last_end = 0.0, None

    def to_compute(who):
        return requests.prompt[who] + len(out.token_times[who]) - cached[who]

    def at_most(who, left):
        return min(to_compute(who), left, threshold or left)

    def free():
        return len(memory.unused)

    def known(who):
        return requests.prompt[who] + len(out.token_times[who])

    def texts(who, tokens):
        return [] if text_of is None else [text_of(who, place) for place in range(tokens // block_size)]

    def length(who):
        if by is None:
            return 0
        tokens = requests.prompt[who] if by == "prompt" else requests.guess[who]
        return float("inf") if tokens is None else tokens

    def joins(who, left):
        """How many tokens it computes at once; 0 if it cannot join."""
        found = memory.search(who, texts(who, known(who) - 1))
        there = len(found) * block_size
        rest = known(who) - there
        whole = min(rest, threshold or rest)
        tokens = min(whole, left)
        if tokens < whole and not enable_chunked_prefill:
            return 0
        must_fit = rest if scheduler_reserve_full_isl else tokens
        kept_free = int(watermark * (num_blocks + 1)) if batch and num_blocks is not None else 0
        woken = sum(block in memory.unused for block in found)
        if new_blocks(there, must_fit, block_size) + woken + kept_free > free():
            return 0
        queue.remove(who)
        batch.append(who)
        hits.append((who, known(who), there))
        memory.join(who, found)
        memory.add(who, new_blocks(there, tokens, block_size))
        cached[who] = there
        memory.name(who, texts(who, there + tokens))
        return tokens

    while True:
        queue += door.come_in(now)
        if not queue and not batch:
            if door.next is None:
                return out, hits, spared
            now = door.next
            continue

        threshold = long_prefill_token_threshold if len(queue) + len(batch) > 1 or engine_version == "0.19" else 0

        # Whoever runs, first come first served; the last one gives way to those before it. Beside drafts, prompts get
        # what all decodes leave; if blocks are short then, whoever runs is looked at in order once more.
        each = min(drafting[0], (max_num_batched_tokens - len(decoding)) // len(decoding)) if decoding else 0
        for reserve in (True, False) if each else (False,):
            before = list(batch), list(cached), memory.copy()
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
                    cached[victims[-1]] = 0
                    memory.leave(victims[-1])
                if who not in victims:
                    turn[who] = tokens
                    left -= tokens
                    memory.add(who, need)
                    memory.name(who, texts(who, cached[who] + tokens))
            if not (reserve and victims):
                break
            batch[:], cached[:], memory = before
        for victim in victims:
            out.preempted[victim] += 1
            queue.insert(0, victim)

        # Then the queue, from its head or its shortest, unless somebody has just been sent there.
        while queue and not victims and left and len(batch) < max_num_seqs:
            who = min(queue, key=length)
            tokens = joins(who, left)
            if not tokens:
                break
            turn[who] = tokens
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
        seconds = step_time(len(decodes), context, chunks)
        if drafted:
            seconds += drafting[2](len(drafted), sum(cached[who] + 1 for who in drafted), each)
        start, now = now, now + seconds
        out.idle += last_end is not None and start > last_end
        last_end = now
        out.starved += sum(who not in turn and bool(out.token_times[who]) for who in batch)
        out.chunked += sum(turn[who] < to_compute(who) for who in turn)
        row = the_step(start, now, batch, decodes, context, chunks, victims, dropped, queue)
        lent = memory.lend(sum(new_blocks(cached[who] + 1, each, block_size) for who in drafted))
        row["blocks"] = 0 if num_blocks is None else num_blocks - free()
        row["drafted"] = each * len(drafted)
        spared.append(sum(map(len, memory.of.values())) + len(lent) - row["blocks"])
        memory.take_back(lent)

        told, decoding = 0, set()
        for who, tokens in turn.items():
            cached[who] += tokens
            if to_compute(who) == 0:
                besides = each if who in drafted and drafting[1][who] else 0
                besides = min(besides, requests.output[who] - len(out.token_times[who]) - 1)
                memory.add(who, new_blocks(cached[who], besides, block_size))
                cached[who] += besides
                memory.name(who, texts(who, cached[who]))
                out.token_times[who] += [now] * (1 + besides)
                told += 1 + besides
                decoding.add(who)
                if len(out.token_times[who]) == requests.output[who]:
                    out.response[who] = now
                    memory.leave(who)
                    decoding.remove(who)
                    batch.remove(who)
                    door.answered(who, now)
        out.steps.append({**row, "useful": told})
