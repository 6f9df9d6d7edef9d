"""Executors whose answers end when they end: nobody knows beforehand, neither the engine nor the test."""

from random import Random

from course.engine.executor import Executor, Outcome


class Toy(Executor):
    """An answer ends when a seeded draw of (row, tokens so far) says so; seconds are drawn too.

    at_most: tokens of an answer, where the draw never says so. several: up to so many tokens a step of a decode.
    tables: whether it asks for block tables, and looks at them as a kernel would have to.
    """

    def __init__(self, seed, at_most=30, several=1, tables=False, block_size=1, num_blocks=0):
        self.seed, self.at_most, self.several, self.tables = seed, at_most, several, tables
        self.block_size, self.num_blocks = block_size, num_blocks
        self.seconds = []  # of each step
        self.emitted = {}  # row -> tokens that left, of all steps
        self.finished = set()
        self.expected, self.followed = [], None  # what it was told
        self.noted = {}  # row -> [(step, tokens that left in it)]
        self.blocks = []  # held in each step, by those that have ever run
        self.here = {}

    def follow(self, load):
        self.followed = load

    def expect(self, request, output_tokens):
        self.expected.append((request.index, output_tokens))

    def draw(self, *what):
        return Random(f"{self.seed} {what}")

    def ends(self, row, tokens):
        return tokens >= self.at_most or self.draw(row, tokens).random() < 0.06

    def execute(self, work):
        if self.tables:
            self.look_at_tables(work)
        completed = [request for request, tokens in work.chunks if tokens >= request.remaining]
        finished, several, step = [], {}, len(self.seconds)
        self.count_blocks(work)
        for request in (*work.decodes, *completed):
            row = request.index
            if row in self.finished:  # padding
                continue
            for count in range(1, 1 + (self.draw(row, request.emitted, "several").randint(1, self.several))):
                self.emitted[row] = self.emitted.get(row, 0) + 1
                several[request] = count
                if self.ends(row, self.emitted[row]):
                    finished.append(request)
                    self.finished.add(row)
                    break
            self.noted.setdefault(row, []).append((step, several[request]))
        self.seconds.append(self.draw(len(self.seconds)).choice([0.125, 0.125, 0.25, 0.01, 0.3]))
        return Outcome(self.seconds[-1], finished, several if self.several > 1 else None)

    def count_blocks(self, work):
        held = {request: request.blocks for request in self.here}
        for request, tokens in (*((one, 1) for one in work.decodes), *work.chunks):
            held[request] = -(-(request.computed + tokens) // self.block_size)
            self.here[request] = None
        self.blocks.append(sum(held.values()))

    def look_at_tables(self, work):
        numbers = []
        for request, tokens in (*((one, 1) for one in work.decodes), *work.chunks):
            table = list(work.table(request))
            assert len(table) == -(-(request.computed + tokens) // self.block_size)
            numbers += table
        assert len(set(numbers)) == len(numbers), "two requests share a block, or one has it twice"
        assert all(0 <= number < self.num_blocks for number in numbers)
