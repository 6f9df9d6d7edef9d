"""Continuous batching with shared prefixes, one block and one token at a time: vLLM's rules as they read.

Nothing here comes from `course`. A block knows all the text up to its end; who looks for it compares texts.
"""

from tests.helpers.oracle import begin, new_blocks, the_step


class Block:
    """users: who holds it. text: all up to its end, once it is full; None before."""

    def __init__(self):
        self.users, self.text = set(), None


class Memory:
    """unused: blocks that nobody holds, the next to be taken first. known: those with a text, in order of birth."""

    def __init__(self, num_blocks, block_size, unhashed_first):
        self.size, self.unhashed_first = block_size, unhashed_first
        self.blocks = [Block() for _ in range(num_blocks)]
        self.unused, self.known = list(self.blocks), []
        self.of = {}  # request -> its blocks
        self.evicted = 0  # blocks whose text others may know, taken for something else

    def copy(self):
        """The same again, of which nothing is shared with this but the texts."""
        twins = {block: Block() for block in self.blocks}
        for block, twin in twins.items():
            twin.users, twin.text = set(block.users), block.text
        made = Memory(0, self.size, self.unhashed_first)
        made.blocks, made.unused, made.known = (
            [twins[b] for b in some] for some in (self.blocks, self.unused, self.known)
        )
        made.evicted = self.evicted
        made.of = {who: [twins[block] for block in blocks] for who, blocks in self.of.items()}
        return made

    def search(self, who, texts):
        """Blocks with the first of these texts, up to the first that nobody has."""
        found = []
        for text in texts:
            same = [block for block in self.known if block.text == text]
            if not same:
                break
            found.append(same[0])
        return found

    def join(self, who, found):
        self.of[who] = list(found)
        for block in found:
            block.users.add(who)
            if block in self.unused:
                self.unused.remove(block)

    def add(self, who, count):
        for _ in range(count):
            block = self.unused.pop(0)
            self.forget(block)
            block.users.add(who)
            self.of[who].append(block)

    def forget(self, block):
        if block.text is not None:
            self.known.remove(block)
            self.evicted += block.text[0] != "nobody else's"
            block.text = None

    def name(self, who, texts):
        """Its full blocks have these texts."""
        for block, text in zip(self.of[who], texts, strict=False):
            if block.text is None:
                block.text = text
                self.known.append(block)

    def lend(self, count):
        """So many for drafts, whose text nobody can know."""
        lent = [self.unused.pop(0) for _ in range(count)]
        for block in lent:
            self.forget(block)
        return lent

    def take_back(self, lent):
        """They are the next to be used: what was written in them may be wrong."""
        self.unused[:0] = lent

    def leave(self, who):
        first = []
        for block in reversed(self.of.pop(who)):
            block.users.remove(who)
            if not block.users:
                (first if self.unhashed_first and block.text is None else self.unused).append(block)
        self.unused[:0] = first


def serve_sharing(
    requests,
    text_of,
    step_time,
    num_blocks,
    block_size,
    max_num_seqs,
    max_num_batched_tokens,
    enable_chunked_prefill=True,
    long_prefill_token_threshold=0,
    scheduler_reserve_full_isl=True,
    engine_version="0.33",
    watermark=0,
):
    """(Outcome, hits, spared). text_of(request, number of a block): what others know that block by.

    hits: (request, tokens known, tokens found) of each admission. spared: in each step, blocks held in common, counted
    once less than held.
    """
    door, out = begin(requests)
    newest = engine_version == "0.33"
    memory = Memory(num_blocks, block_size, newest)
    queue, batch, hits, spared = [], [], [], []
    cached = [0] * len(requests.prompt)
    now = 0.0

    def known(who):
        return requests.prompt[who] + len(out.token_times[who])

    def texts(who, tokens):
        return [text_of(who, place) for place in range(tokens // block_size)]

    while True:
        queue += door.come_in(now)
        if not queue and not batch:
            if door.next is None:
                out.evicted = memory.evicted
                return out, hits, spared
            now = door.next
            continue
        threshold = 0 if newest and len(queue) + len(batch) == 1 else long_prefill_token_threshold
        turn, victims, dropped, left = {}, [], 0, max_num_batched_tokens
        for who in list(batch):
            if who in victims or not left:
                break
            tokens = min(known(who) - cached[who], left, threshold or left)
            need = new_blocks(cached[who], tokens, block_size)
            while need > len(memory.unused) and who not in victims:
                victims.append(batch.pop())
                dropped += cached[victims[-1]]
                cached[victims[-1]] = 0
                memory.leave(victims[-1])
                queue.insert(0, victims[-1])
                out.preempted[victims[-1]] += 1
            if who not in victims:
                turn[who] = tokens
                left -= tokens
                memory.add(who, need)
                memory.name(who, texts(who, cached[who] + tokens))
        while queue and not victims and left and len(batch) < max_num_seqs:
            who = queue[0]
            found = memory.search(who, texts(who, known(who) - 1))
            there = len(found) * block_size
            rest = known(who) - there
            whole = min(rest, threshold or rest)
            tokens = min(whole, left)
            if tokens < whole and not enable_chunked_prefill:
                break
            woken = sum(block in memory.unused for block in found)
            must_fit = rest if scheduler_reserve_full_isl else tokens
            kept_free = int(watermark * (num_blocks + 1)) if batch else 0
            if new_blocks(there, must_fit, block_size) + woken + kept_free > len(memory.unused):
                break
            batch.append(queue.pop(0))
            hits.append((who, known(who), there))
            memory.join(who, found)
            memory.add(who, new_blocks(there, tokens, block_size))
            cached[who] = there
            memory.name(who, texts(who, there + tokens))
            turn[who] = tokens
            left -= tokens
            if out.admitted[who] is None:
                out.admitted[who] = now

        decodes = [who for who in turn if out.token_times[who] and known(who) - cached[who] == 1]
        context = sum(cached[who] + 1 for who in decodes)
        chunks = tuple((turn[who], cached[who]) for who in turn if who not in decodes)
        start, now = now, now + step_time(len(decodes), context, chunks)
        row = the_step(start, now, batch, decodes, context, chunks, victims, dropped, queue)
        row["blocks"] = num_blocks - len(memory.unused)
        spared.append(sum(map(len, memory.of.values())) - row["blocks"])
        out.chunked += sum(turn[who] < known(who) - cached[who] for who in turn)
        told = 0
        for who, tokens in turn.items():
            cached[who] += tokens
            if cached[who] == known(who):
                out.token_times[who].append(now)
                told += 1
                if len(out.token_times[who]) == requests.output[who]:
                    out.response[who] = now
                    batch.remove(who)
                    memory.leave(who)
                    door.answered(who, now)
        out.steps.append({**row, "useful": told})
