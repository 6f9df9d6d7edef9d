"""The example trace: made up, in the schema of the Azure LLM inference traces, with statistics like a real one's.

No row comes from a real service. The shape of the distributions (quantiles of lengths, mean and variation of the gaps)
follows what was measured on the conversation trace that Azure published in 2023; the order is random, and lengths are
independent of each other, which they are not quite in the real trace (correlation of prompt and output length -0.14
there, about 0 here).

    python -m course.workload.synthetic          # writes course/data/azure_style_conv.csv again
"""

from datetime import datetime, timedelta
from math import sqrt
from pathlib import Path

import numpy as np

START = datetime(2030, 1, 1)  # far from any published trace
NUM_REQUESTS = 2_000
RATE = 4.885  # requests/s
GAP_CV = 1.06
# (share of requests, tokens): the quantile function between two of these points is a straight line.
PROMPT_QUANTILES = [
    (0, 2), (0.01, 28), (0.05, 180), (0.25, 405), (0.5, 1045), (0.7, 1110), (0.75, 1165), (0.9, 2315), (0.93, 3400),
    (0.95, 4080), (0.99, 4107), (1, 7700),
]  # fmt: skip
OUTPUT_QUANTILES = [
    (0, 10), (0.01, 14), (0.05, 40), (0.25, 91), (0.5, 217), (0.59, 370), (0.75, 405), (0.9, 431), (0.95, 487),
    (0.99, 638), (1, 1000),
]  # fmt: skip
TICKS = 10_000_000  # 100 ns, the resolution of the published traces


def azure_style(num_requests: int = NUM_REQUESTS, seed: int = 0) -> str:
    """A CSV text of `num_requests` rows: TIMESTAMP with 7 fractional digits, CRLF between rows and none after the last.

    Only uniform draws, logarithms and straight lines are used, so every platform writes the same file. Each column
    takes one uniform draw from each of `num_requests` equal slices of [0, 1), in random order: a small file then has
    the statistics of the distributions it was drawn from.
    """
    rng = np.random.default_rng(seed)

    def spread() -> np.ndarray:
        slices = np.argsort(rng.random(num_requests), kind="stable")
        return (slices + rng.random(num_requests)) / num_requests

    prompts, outputs = (
        np.rint(np.interp(spread(), *np.array(quantiles).T)).astype(int)
        for quantiles in (PROMPT_QUANTILES, OUTPUT_QUANTILES)
    )
    # Two exponentials with balanced means: the simplest gaps with a coefficient of variation above 1.
    often = (1 + sqrt((GAP_CV**2 - 1) / (GAP_CV**2 + 1))) / 2
    short = spread() < often
    mean = np.where(short, 1 / (2 * often), 1 / (2 * (1 - often))) / RATE
    gaps = np.rint(-np.log1p(-spread()) * mean * TICKS).astype(np.int64)
    gaps[0] = 0
    rows = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    for tick, prompt, output in zip(np.cumsum(gaps).tolist(), prompts.tolist(), outputs.tolist(), strict=True):
        seconds, fraction = divmod(tick, TICKS)
        rows.append(f"{START + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}.{fraction:07d},{prompt},{output}")
    return "\r\n".join(rows)


if __name__ == "__main__":
    target = Path(__file__).parents[1] / "data" / "azure_style_conv.csv"
    target.write_bytes(azure_style().encode())
    print(f"wrote {target}")
