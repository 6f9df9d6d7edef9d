# %% [markdown]
# # Lab 16, deeper: Measuring honestly

# %%
from textwrap import fill

import numpy as np
from course import results
from course.lessons import lab16
from course.lessons.lab16 import many_tools
from course.lessons.lab16.steady_window import percentile_interval

# %% [markdown]
# ## The question
#
# Lab 16 counted from the plan and brought numbers under one definition. **How sure is such a number, which part of a
# test should it come from, and what else does a result file show?** This notebook is optional; nothing in it is asked
# elsewhere.
#
# The closed loop here has 256 slots, the largest batch that was recorded, and {{small_tokens:,}} tokens a step.
#
# ## What a client does
#
# ### A client that is late
#
# A client that sleeps for the *gap* between two requests adds its own work to each gap. One user asked a tool for {{gap_rate}}
# requests/s and got {{gap_got:g}}. That is 1/{{gap_got:g}} - 1/{{gap_rate}} s, or {{gap_work_ms:.2f}} ms of work for each request. The cure is to sleep until
# the planned moment, not for a planned time.
#
# ### A client and a server
#
# `course serve` answers over HTTP and reports its counts at `/metrics`, under vLLM's names. Here it runs inside the
# kernel, on a free port of {{host}}, and a small client (`lessons/lab16/over_http.py`) sends it {{http_requests}} requests by the
# clock, {{http_rate:g}} a second: once with 1 request in flight, once with at most {{http_slots}}. Each clock gives a TTFT of its own.

# %% tags=["nbval-ignore-output"]
tests, clocks = lab16.a_client_and_a_server(limits=(1, 16))
for test in tests:
    assert test.server.totals["requests"] == len(test.planned)
    for name in ("ttft", "e2e"):
        sent, plan, server = test.means[name]
        assert server <= sent <= plan  # the way there and back; the wait in the client
clocks

# %% [markdown]
# Counted from sending, client and server differ only by the way between them, which takes longer while all share these
# cores. The server cannot see the wait in the client: with 1 in flight its own page and the client's report look fine,
# and only the plan shows the seconds that users wait. TPOT is the same by all clocks.
#
# vLLM and the client that asked it, without a limit in flight. Its page says {{way_ms:.0f}} ms less than the client: its clock begins
# when the API server has read a request, and ends before the token is sent.

# %%
lab16.vllms_own_page()

# %% [markdown]
# ## Requests, tokens, pieces
#
# "ITL is lower than TPOT, which is impossible": after a burst it is lower, since long answers go on in faster steps and have
# most of the gaps. Two more reports are about pieces:
#
# - "The first ITL is far too long." A chat stream may open with a piece that holds a role and no text. A client that
#   takes it for the first token writes down the way to the server as TTFT, and the real TTFT as a gap.
# - "ITL grew fourfold and users notice nothing." The server sends {{piece}} tokens at a time. Divide a gap by the tokens of
#   its piece, or take TPOT from the token count of the answer.
#
# ## What a p99 is of, and how sure it is
#
# ### Percentiles cannot be averaged
#
# Of two replicas behind an uneven router one may have a p99 of seconds and the other of milliseconds: the p99 of all
# requests is near that of the busy one, which had most of them, and not the mean of both. Keep the values, or histograms
# with the same buckets, since counts can be added.
#
# ### How many requests for a p99
#
# Of $n$ independent requests the number below the true p99 is binomial with $n$ and {{quantile}}. So the $l$-th and $u$-th
# smallest hold the true p99 between them with a probability that is known, whatever the distribution:
#
# $$P(x_{(l)} \le p99 \le x_{(u)}) \ge P(l \le B < u), \qquad B \sim \text{Binomial}(n,\ 0.99)$$

# %%
print("requests   95% sure that the p99 lies between the")
for n in (100, 300, 500, 1_000, 2_000, 10_000):
    band = percentile_interval(np.arange(1, n + 1), 99)
    upper = f"{band.high_rank:,}th smallest" if np.isfinite(band.high) else "no bound"
    print(f"{n:8,}   {band.low_rank:,}th smallest and {upper}")

# %% [markdown]
# That holds for independent values. Latencies are not: requests in one queue wait for the same reason. Lab 03's engine
# at {{queue_rate}} requests/s, with its {{queue_slots}} slots, in {{queue_tests}} tests of {{queue_requests:,}} requests: the band holds the true p99 in {{held_queue}} of them, and in
# {{held_shuffled}} once the requests are in random order, which makes them independent. So the band is the smaller part of the uncertainty.
# Near saturation, repeat the whole test with other seeds and see how far apart the p99s are.
#
# ### The window that counts
#
# "The p99 of TTFT is nine times what we see in production." In a closed loop {{users}} users who all begin at once make one
# burst, and in a test of {{crowd:,}} requests those {{users}} are {{crowd_share:.0%}}. At the end they stop one after the other, and the tokens/s
# fall. Leave out the start, and the end as well; a window of fewer than {{bounded}} requests has no upper bound for its p99.
#
# ## What is in a file
#
# **Rates from gaps.** A rate taken from each single gap is 1 / gap, and two requests may end at nearly the same moment: a
# standard deviation of many times what was served. Count in windows instead.
#
# **A null that is read as zero.** {{inference_perf}} writes null as TTFT where nothing was streamed (`streaming: false`).
# A dashboard that reads null as 0 makes you look faster than you are.
#
# **Held back.** The file behind the decision of lab 16, made up: its last request was due at {{peak_due_s:.0f}} s and, judged by the mean
# E2E, sent at {{peak_sent_s:.0f}} s. `course results FILE...` says such things about any file:

# %%
for note in results.read(many_tools.PEAK).notes:
    print(fill(note, 96, initial_indent="- ", subsequent_indent="  "))

# %% [markdown]
# A result file has the times of requests, not of steps, and yet a step time is in it: TPOT is the step time averaged
# over a request's stay. `course compare RESULT --model CONFIG --gpu NAME` fits one to your own run, and says what the
# run does not settle. Trust such a model at loads between those that were measured.
#
# ## The knobs in real tools
#
# | here | vLLM 0.30 `bench serve` | {{guidellm}} | {{aiperf}}, genai-perf |
# |---|---|---|---|
# | open loop at a rate | `--request-rate 12` | `--rate-type poisson --rate 12` | `--request-rate 12` |
# | bursts | `--burstiness 0.25` (Gamma shape) | | aiperf: `--arrival-pattern gamma --arrival-smoothness 0.25` |
# | limit in flight | `--max-concurrency 16` | `--rate-type concurrent --rate 16` | `--concurrency 16` |
# | leave out the start | `--num-warmups 50` | `--warmup-percent 0.1` | `--warmup-request-count 50` |
# | E2E too | `--percentile-metrics ttft,tpot,itl,e2el` | always | always |
# | which percentiles | `--metric-percentiles 50,95,99` | fixed list | fixed list |
# | goodput (SLOs in ms) | `--goodput ttft:500 tpot:50` | | `--goodput "time_to_first_token:500"` |
# | every request | `--save-result --save-detailed` | `--output-path run.json` | aiperf: `profile_export.jsonl` |
#
# With `--max-concurrency`, vLLM's TTFT and E2E begin after the wait for a permit. Since {{waits_since}} that wait is written down
# separately (`queue_times`, `mean_client_queue_time_ms`); in older files it is in no number. vLLM 0.30 also stretches
# the drawn gaps so that the plan has exactly the rate asked for. Its warm-up requests (`--num-warmups`, since {{warms_since}})
# are sent at once, as far as the limit allows, and end before the test begins: they warm up the engine and leave the
# burst at the start of a closed loop where it is. guidellm calls `--rate-type` `--profile` since {{renamed_since}}, and
# `--warmup-percent` `--warmup`; it still takes the old names.
#
# **What to read next**
#
# - G. Tene, *How NOT to Measure Latency*, talk, Strange Loop 2015, and `wrk2`, a client that counts from the plan.
# - B. Schroeder, A. Wierman, M. Harchol-Balter, *Open Versus Closed: A Cautionary Tale*, NSDI 2006.
# - H. A. David, H. N. Nagaraja, *Order Statistics*, {{order_statistics}}: intervals for percentiles.
# - J. Dean, L. A. Barroso, *The Tail at Scale*, Communications of the ACM {{tail_at_scale}}.
