"""`policies.Static` and `.Dynamic`, simulated a batch at a time: the same steps as `stepwise`, to the last bit."""

from array import array

import numpy as np

from course.engine.loops.arrivals import NEVER, Arrivals
from course.engine.loops.log import Log, check_length, log_from, rows
from course.engine.loops.reserve import check_batch_fits
from course.memory.kvcache import KVCache
from course.policies.dynamic import Dynamic
from course.policies.static import Static
from course.steptime import StepTimeModel
from course.workload import Workload


def run_batches(load: Workload, policy: Static | Dynamic, step_time: StepTimeModel, cache: KVCache | None) -> Log:
    """Serve everybody, batch after batch. Raises ValueError for a batch that cannot fit the cache."""
    arrivals = Arrivals(load)
    times, ids, slots = arrivals.times, arrivals.ids, policy.max_num_seqs
    prompts, outputs = load.prompt_tokens.tolist(), load.output_tokens.tolist()
    batch_of = np.zeros(len(load), dtype=np.int64)
    batches = []  # first step, last step, padded prompt
    clock, idle = array("d"), []
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
        check_batch_fits(cache, width, prompt, output)
        if start > now or not step:
            idle.append((step, start))
        now = start + step_time.seconds(0, 0, width * prompt, width * (prompt * (prompt + 1) // 2), width * prompt)
        clock.append(now)
        check_length(range(step + output))
        if output > 1:
            base, slope = step_time.decode_line(width)
            contexts = np.arange(prompt + 1, prompt + output, dtype=np.float64) * width
            ends = base + slope * contexts
            ends[0] += now
            np.add.accumulate(ends, out=ends)
            clock.frombytes(ends.tobytes())
            now = ends.item(-1)
        batch_of[batch] = len(batches)
        batches.append((step, step + output - 1, prompt))
        if arrivals.next_turns:
            for request in batch:
                arrivals.answered(request, now, head)
        step += output

    requests, (first, last, prompt) = np.arange(len(load)), np.array(batches)[batch_of].T
    return log_from(
        load,
        arrivals.arrival,
        clock,
        idle,
        tokens=np.stack([requests, first, first + load.output_tokens - 1], axis=1),
        decodes=np.stack([requests, first + 1, last, prompt + 1], axis=1),
        chunks=np.stack([requests, first, prompt, np.zeros_like(requests)], axis=1),
        stays=np.stack([requests, first, last], axis=1),
        preemptions=rows([], 3),
    )
