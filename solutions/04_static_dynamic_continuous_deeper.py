# %% [markdown]
# # Lab 04, deeper: Static, dynamic, continuous

# %%
import numpy as np
from course import Workload, policies, serve, steptime
from course.lessons import lab04
from course.lessons.lab04 import side_by_side

# %% [markdown]
# ## The question
#
# Lab 04 compared the policies at saturation, on a chat, by one formula. **Where do runs differ from the formula, what
# happens below saturation, and for which work is a dynamic batcher still right?** This notebook is optional; nothing in
# it is asked elsewhere. An **open loop** is a load whose requests arrive whether or not the server keeps up.

# %% [markdown]
# ## Be the scheduler, with a predictor
#
# Refilling at once is not the best that there is: it takes whoever came first. A predictor of lengths changes that, and
# somebody pays for it. Who?

# %%
lab04.with_a_predictor()

# %% [markdown]
# And two more tasks for the explorers of the lab. In "One trace, three policies", raise only the delay until dynamic
# batching answers each request when static does: every batch is then full before the delay is over. In "Spread and
# slots", read how far the gain at the start is from the one that is often quoted.

# %% [markdown]
# ## Below saturation and at it
#
# People arrive one by one, 2,000 of them, in an open loop. **Goodput** counts the requests a second that are answered
# in time, here within {{e2e_slo}} s.
#
# - Move the rate from {{rate_low}} to {{light_rate}} requests/s. Tokens/s are the same for all three policies. The latency of static batching
#   is high at both ends of its curve: at the left a batch waits to fill, at the right requests wait for a batch.
# - Choose the first token instead of the whole answer. Only continuous batching can stream: the others send an answer
#   when its batch ends.
# - A delay of {{long_delay_s}} s helps nobody at a low rate: it is as long as the wait that it should bound.

# %%
lab04.chat_under_load()

# %% [markdown]
# ## The formula, and runs
#
# The formula counts slot-steps, so it is exact where every step costs the same. Steps of a real card differ. "As drawn"
# applies the formula to the answers of the simulation, batch by batch. 2,000 requests are only {{batches}} batches of 32, or {{batches_most}}
# of {{most_slots}}, so it differs from the expected value.

# %%
lab04.gain_and_formula()

# %% [markdown]
# Two things pull the gain away from the formula. Prompts must be computed under either policy, which makes the gain
# smaller, most of all with many slots and a small spread. A row of padding reads its keys and values, more of them with
# every step, which makes the gain larger: with {{most_slots}} slots and a CV of {{widest}} that wins.
#
# Where every step takes {{equal_step_ms}} ms, gain and formula agree within what {{equal_requests:,}} requests can show:

# %%
same_cost = steptime.PowerLaw(t0=5e-3, c=0, alpha=1)
found = side_by_side.saturated_gain(
    same_cost, max_num_seqs=32, output_cv=1.0, num_requests=20_000
)
print(f"simulated {found.gain:.2f}, formula {found.bound:.2f}")

# %% [markdown]
# ### Exponential answers
#
# If lengths are exponential, an answer that still runs is as good as new. Of two answers the first ends after half a
# mean, and the other one needs a whole mean more. So E[max] / mean of b answers is 1 + 1/2 + ... + 1/b.

# %%
lab04.exponential_answers()

# %% [markdown]
# ### Capacity by hand
#
# Seconds of a full static batch: one padded prefill, then a step for each further token of the longest answer.
# Continuous: each step carries the decodes and, now and then, a prompt.

# %%
lab04.capacity_by_hand()

# %% [markdown]
# The calculation by hand takes the expected longest answer, of which the {{batches}} simulated batches are a small sample. The
# service in the lab's question is one draw as well: at 4 requests/s it runs just about at capacity, where one draw says
# little.

# %%
lab04.other_draws()

# %% [markdown]
# ## A trace
#
# The Azure-style trace is made up, with the statistics of a real conversation trace: prompts of {{trace_prompt:,.0f}} tokens on
# average, answers of {{trace_answer:.0f}}, and gaps that vary a little more than Poisson's. Its step times are a roofline: a padded
# batch of 32 prompts reaches {{trace_step:,}} tokens in one step, and no step of more than {{recorded_step:,}} was recorded.

# %%
lab04.trace_under_load()

# %%
lab04.the_trace()

# %% [markdown]
# The gain is larger than the padding of the answers, E[max] / mean, explains. The prompts differ as well, from {{trace_shortest}} to
# {{trace_longest:,}} tokens, and a static batch pads every one of them to its longest, computes it, and then reads it in every step.
#
# ## What is often said
#
# **"The GPU idles once the short answers of a static batch have ended"**, and **"utilisation is {{said_static}} with static
# batching and {{said_continuous}} with continuous"**. It does not idle. The first range belongs to answers that differ little;
# the second is too modest, as long as somebody waits.

# %%
lab04.wanted_shares()

# %% [markdown]
# **"Dynamic batching replaces finished sequences one by one."** That describes continuous batching.

# %%
lab04.joins()

# %% [markdown]
# **"Average latency is the duration divided by the number of requests"**, and **"a larger batch of requests shows the
# gain"**: a benchmark sends {{equal_at_once}} equal requests at once. But duration / requests is 1 / throughput, not a latency. And
# equal requests in one batch show no gain: it comes from spread, and from people who arrive later, as in the last row.
# (Dynamic batching waits out its delay of {{benchmark_delay_ms}} ms here, since its batch is never full.)

# %%
lab04.duration_is_no_latency()

# %% [markdown]
# **"Queued requests are answered {{said_sooner}} times sooner."** That depends on the draw.

# %%
lab04.sooner()

# %% [markdown]
# **"Continuous batching needs PagedAttention."** Orca did it in 2022 with one contiguous reservation per request.
# Paging makes more requests fit.
#
# And a trap for whoever writes such a loop: if you remove elements from a list while you loop over it, the loop skips
# the one after each. Below, *b* has ended and keeps its slot for another step.

# %%
tokens_left = {"a": 0, "b": 0, "c": 3}
active = ["a", "b", "c"]
for name in active:
    if tokens_left[name] == 0:
        active.remove(name)
print("still in the batch:", active)

# %% [markdown]
# ## A refill in the engine
#
# The engine asks a policy through `state`: `running` and `waiting` are tuples of requests, and `request.remaining` is
# what a request must compute before its next output token. The exercise of the lab in these words:


# %%
def refill(state):
    tokens = {request: request.remaining for request in state.running}
    for request in state.waiting[: state.max_num_seqs - len(state.running)]:
        tokens[request] = request.remaining
    return tokens


chat = Workload.poisson(rate=10, num_requests=200, prompt_tokens=512, output_tokens=64)
h100 = steptime.recorded("h100-llama3-8b")
mine = serve(chat, policies.FromFunction(refill, max_num_seqs=8), h100)
theirs = serve(chat, policies.Continuous(8, max_num_batched_tokens=8192), h100)
print("the same answers at the same times:", np.array_equal(mine.response, theirs.response))

# %% [markdown]
# ## Where a dynamic batcher still fits
#
# An image classifier, or an audio encoder over windows of {{window_s}} s: every request is one step of equal length. There is no
# padding, and continuous batching has nothing to win. Here a step takes {{image_step_ms}} ms and {{image_ms}} ms for each image (made-up
# numbers), at most {{image_most}} images a step. The lines are the share of requests answered within a time.
#
# - At {{image_rate:,}} images/s, move the delay from {{image_short_ms}} ms to {{busy_short_ms}} ms: latency and batches grow, and the GPU is busy for less of the
#   time.
# - At {{busy_rate:,}} images/s, move it from {{busy_short_ms}} ms to {{busy_long_ms}} ms: nothing changes, since batches are full before the delay is over.

# %%
lab04.image_service()

# %% [markdown]
# With a delay of 0, whoever waits when the model gets free makes the next batch. For requests of one step that is
# continuous batching, to the last bit; queueing theory calls it **bulk service**, and for Poisson arrivals its means
# are exact. At {{image_rate:,}} images/s the GPU is busy nearly all the time, and could still serve {{image_headroom:.1f}} times as many, since
# batches grow with the load.

# %%
lab04.no_delay()

# %% [markdown]
# Does a delay raise throughput? In an open loop it cannot. In a load test with a fixed number of clients (a **closed
# loop**) it can do either. Here each client sends its next image {{think_ms}} ms after the answer to its last:

# %%
lab04.in_a_closed_loop()

# %% [markdown]
# Without a delay the clients fall into two groups that take turns. With {{clients}} of them the delay merges the two into a full
# batch; with {{few_clients}} the batch can never be full, and everybody waits for clients who do not exist.
#
# In front of an LLM engine that batches by iteration, a dynamic batcher only delays admission:

# %%
lab04.through_a_batcher()

# %% [markdown]
# For whoever operates Triton:
#
# - With a delay of 0 there are still batches, and they grow with the load by themselves.
# - In an open loop below capacity a delay buys time on the GPU, not throughput. Without a second model on the card it
#   only makes everybody wait.
# - The delay is no bound on latency. It limits how long the batcher holds a request that could run; past capacity
#   requests queue for as long as it takes.
#
# ## Knobs and further reading
#
# | engine | knob | in lab 04 |
# |---|---|---|
# | vLLM | `--max-num-seqs` | slots |
# | vLLM | `--max-num-batched-tokens` | tokens a step of `Continuous` |
# | Triton | `dynamic_batching { max_queue_delay_microseconds }` | `Dynamic(max_queue_delay=)`, in seconds here |
# | Triton | `max_batch_size` | slots of `Dynamic` |
# | TensorRT-LLM in Triton | `gpt_model_type: inflight_fused_batching` | `Continuous`; the other, `V1`: `Static` |
# | TensorRT-LLM in Triton | `batch_scheduler_policy: guaranteed_no_evict` (default) | admit only what surely fits |
# | TensorRT-LLM in Triton | `batch_scheduler_policy: max_utilization` | admit what fits now, preempt when it grows |
# | TensorRT-LLM | `capacity_scheduler_policy` | the same outside Triton; also `STATIC_BATCH`, like `Static` |
#
# The script `fill_template.py` of TensorRT-LLM's Triton backend calls the first of its rows `batching_strategy`.
#
# - Yu et al., *Orca: A Distributed Serving System for Transformer-Based Generative Models*, OSDI 2022: iteration-level
#   scheduling.
# - Kwon et al., *Efficient Memory Management for Large Language Model Serving with PagedAttention*, SOSP 2023,
#   arXiv:2309.06180.
# - Agrawal et al., *Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve*, OSDI 2024,
#   arXiv:2403.02310: what a long prompt does to everybody else in a continuous batch.
