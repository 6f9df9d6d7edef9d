"""One replica of a service in the long run: the setting of lab 03, for what a percentile is of and how sure it is.

Llama-3.1-8B on one H100 (recorded), 32 slots, 2,048 tokens a step; 512 prompt tokens and about 256 output tokens.
"""

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab16.load_test import STEP
from course.workload import Workload, lengths

POLICY = policies.Continuous(max_num_seqs=32, max_num_batched_tokens=2048)


def under_load(rate: float, num_requests: int, seed: int = 0) -> Run:
    """`num_requests` Poisson arrivals at `rate` requests/s, served."""
    # Gamma gaps of CV 1 are Poisson arrivals, drawn as lab 03 draws them.
    load = Workload.gamma(rate, 1.0, num_requests, 512, lengths.lognormal(256, 1.0), seed)
    return serve(load, POLICY, STEP)
