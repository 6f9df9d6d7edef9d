"""`policies.Static` and `.Dynamic`, simulated a batch at a time: the same steps as `stepwise`, to the last bit."""

from array import array

import numpy as np

from ..kvcache import KVCache
from ..policies.dynamic import Dynamic
from ..policies.static import Static
from ..steptime import StepTimeModel
from ..workload import Workload
from .arrivals import NEVER, Arrivals
from .log import Log, log_from
from .reserve import check_batch_fits


def run_batches(load: Workload, policy: Static | Dynamic, step_time: StepTimeModel, cache: KVCache | None) -> Log:
    """Serve everybody, batch after batch. Raises ValueError for a batch that cannot fit the cache."""
    arrivals = Arrivals(load)
    times, ids, slots = arrivals.times, arrivals.ids, policy.max_num_seqs
    prompts, outputs = load.prompt_tokens.tolist(), load.output_tokens.tolist()
    admitted, runs = [0.0] * len(load), [(0, 0, 0)] * len(load)
    clock, stretches = array("d"), []
    now, step, head = 0.0, 0, 0

    while times[head] != NEVER:
        # len(times) - 1 requests are known; nobody else comes before this batch is answered.
        full = len(times) - 1 - head >= slots
        if isinstance(policy, Dynamic):
            deadline = times[head] + policy.max_queue_delay
            start = max(now, min(deadline, times[head + slots - 1]) if full else deadline)
        else:
            start = max(now, times[head + slots - 1] if full else times[-2])
        batch = []
        while len(batch) < slots and times[head] <= start:
            batch.append(ids[head])
            head += 1

        width, prompt = len(batch), max(prompts[i] for i in batch)
        output = max(outputs[i] for i in batch)
        used = check_batch_fits(cache, width, prompt, output)
        stretches.append((step, start, 0, 0, width * prompt, width, used, 0, 0))
        now = start + step_time.seconds(0, 0, width * prompt, width * (prompt * (prompt + 1) // 2), width * prompt)
        clock.append(now)
        if output > 1:
            stretches.append((step + 1, now, width, width * (prompt + 1), 0, width, used, 0, 0))
            base, slope = step_time.decode_line(width)
            contexts = np.arange(prompt + 1, prompt + output, dtype=np.float64) * width
            ends = base + slope * contexts
            ends[0] += now
            np.add.accumulate(ends, out=ends)
            clock.frombytes(ends.tobytes())
            now = ends.item(-1)
        for request in batch:
            admitted[request] = start
            runs[request] = (request, step, step + outputs[request] - 1)
            arrivals.answered(request, now, head)
        step += output
    return log_from(arrivals.arrival, admitted, clock, stretches, runs, np.zeros(len(load), dtype=np.int64))
