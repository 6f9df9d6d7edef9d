# %% [markdown]
# # Lab 16, deeper: Measuring honestly

# %%
from textwrap import fill

import numpy as np
from course import results, serve
from course.lessons import lab16
from course.lessons.lab16 import load_test, many_tools, steady_window, three_files
from course.lessons.lab16.steady_window import percentile_interval

# %% [markdown]
# ## The question
#
# Lab 16 counted from the plan and brought numbers under one definition. **How sure is such a number, which part of a
# test should it come from, and what else does a result file show?** This notebook is optional; nothing in it is asked
# elsewhere.
#
# The engine here has 256 slots, the largest batch that was recorded. The tests with a limit run with 8,192 tokens a
# step, {{engine}}'s default on an H100; the burst, the replicas and the closed loop with {{small_tokens:,}}, its default on
# an A100. Its default of slots on an H100 is {{default_slots:,}}.
#
# ## What a client does
#
# ### The limit
#
# This is the test of lab 16 with other limits. The p99 of what is written down shows the stall once more than 1% of the
# requests waited for it in the engine. With a limit of {{unseen_limit}} those were {{unseen}} of 2,000; the others in flight had their first
# token before it. Counting from the plan is better, and still not what users see: with a limit of {{small_limit}} a queue grows in
# the client, which users would not form, at 12 requests/s even without a document. The best test has no limit, or one
# that is never reached.

# %%
lab16.what_a_limit_hides()

# %% [markdown]
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
both = lab16.a_client_and_a_server(limits=(1, 16))
for test in both.tests:
    assert test.answered == len(test.planned)  # client and server count the same requests
    for name in ("ttft", "e2e"):
        sent, plan, server = test.means[name]
        assert server <= sent <= plan  # the way there and back; the wait in the client
both.table

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
# "ITL is lower than TPOT, which is impossible" is a report that you will meet. After a burst it is lower:

# %%
burst = many_tools.read_by_all(128, 1.0, 1)
gaps = burst.seen.tokens - 1
print(f"mean over requests {burst.seen.tpot.mean() * 1e3:5.2f} ms (TPOT)")
print(f"mean over gaps     {(gaps @ burst.seen.tpot) / gaps.sum() * 1e3:5.2f} ms (ITL)")
for name, some in (
    ("shorter half", gaps < np.median(gaps)),
    ("longer half", gaps >= np.median(gaps)),
):
    share, tpot = gaps[some].sum() / gaps.sum(), burst.seen.tpot[some].mean() * 1e3
    print(f"{name:12s} {share:4.0%} of the gaps, mean TPOT {tpot:5.2f} ms")

# %% [markdown]
# Two more reports are about pieces:
#
# - "The first ITL is far too long." A chat stream may open with a piece that holds a role and no text. A client that
#   takes it for the first token writes down the way to the server as TTFT, and the real TTFT as a gap.
# - "ITL grew fourfold and users notice nothing." The server sends {{piece}} tokens at a time. Divide a gap by the tokens of
#   its piece, or take TPOT from the token count of the answer.
#
# ## What a p99 is of, and how sure it is
#
# ### People and gaps
#
# One prompt in {{short_each}} is a document of {{short_document:,}} tokens; its two steps take {{short_first_s:.2f}} and {{short_second_s:.2f}} s. Count tokens, then count people:

# %%
run = serve(load_test.requests(12, 16_384, documents=40), load_test.engine(), load_test.STEP)
gaps = [np.diff(run.token_times(i)) for i in range(len(run))]
longest, every = np.array([gap.max(initial=0) for gap in gaps]), np.concatenate(gaps)
print(f"{len(every):,} gaps: p99 {np.percentile(every, 99) * 1e3:.1f} ms", end=", ")
print(f"{(every > 0.2).mean():.2%} above 200 ms")
print(f"requests whose longest gap is above 200 ms: {(longest > 0.2).mean():.0%}")

# %% [markdown]
# ### Percentiles cannot be averaged
#
# Two replicas behind a router that sends one of them more than its share: {{more_rate}} requests/s and {{less_rate}}. Their p99s of TTFT are
# {{busy_p99:.2f}} and {{idle_p99:.2f}} s, whose mean is {{mean_p99:.2f}} s; the p99 of all requests together is {{joint_p99:.2f}} s. Keep the values, or histograms with
# the same buckets, since counts can be added.
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

# %%
run = steady_window.closed_loop(64)
for name, start, end in (("whole test", 0, run.makespan), ("5 to 45 s", 5, 45)):
    ttft, speed = steady_window.between(run, start, end)
    print(
        f"{name:10s} {len(ttft):5,} requests, p99 {np.percentile(ttft, 99) * 1e3:.0f} ms, "
        f"{speed:,.0f} tokens/s"
    )

# %% [markdown]
# ## What is in a file
#
# **Rates from gaps.** A standard deviation of {{reported_std}} requests/s, where about {{reported_rate}} were served at most, was reported of
# guidellm in February 2026 (its issue {{reported_issue}}). A rate taken from each single gap is 1 / gap, and two requests may end at
# nearly the same moment. Count in windows instead.
#
# **A null that is read as zero.** {{inference_perf}} writes null as TTFT where nothing was streamed (`streaming: false`).
# A dashboard that reads null as 0 makes you look faster than you are.
#
# **Three files, one flaw each.** Three result files of a colleague, in the tools' own schemas, made up for this lab. Each
# has one flaw that changes a conclusion. Times in them are in milliseconds, `duration` in seconds.
#
# - **nightly** (vLLM bench serve): "it kept up with {{nightly_asked:g}} requests/s". How many requests a second were answered?
# - **gateway** (SGLang bench_serving, through a company proxy): "0.00 ms a token". What is the mean TPOT?
# - **peak** (vLLM bench serve): the file behind the decision of lab 16. When was the last request sent?

# %%
lab16.result_file("nightly")

# %%
lab16.result_file("gateway")

# %%
lab16.result_file("peak")

# %% [markdown]
# In nightly {{nightly_answered}} requests were answered in {{nightly_s:g}} s: {{nightly_rate:.1f}} a second. The rate in the file counts the failed ones too. In
# gateway TTFT is E2E, so the answers came in one piece, and nobody can say how long a token took. In peak the last
# request was due at {{peak_due_s:.0f}} s and, judged by the mean E2E, sent at {{peak_sent_s:.0f}} s. `course results FILE...` says such things about
# any file:

# %%
for name in three_files.NAMES:
    print(name)
    for note in results.read(three_files.path(name)).notes:
        print(fill(note, 96, initial_indent="   - ", subsequent_indent="     "))

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
