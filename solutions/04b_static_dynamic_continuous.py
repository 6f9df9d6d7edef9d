# %% [markdown]
# # Lab 04, deeper: Static, dynamic, continuous

# %%
from course.lessons import lab04

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
# ## A trace
#
# The Azure-style trace is made up, with the statistics of a real conversation trace: prompts of {{trace_prompt:,.0f}} tokens on
# average, answers of {{trace_answer:.0f}}, and gaps that vary a little more than Poisson's. Its step times are a roofline: a padded
# batch of 32 prompts reaches {{trace_step:,}} tokens in one step, and no step of more than {{recorded_step:,}} was recorded.

# %%
lab04.the_trace()

# %% [markdown]
# The gain is larger than the padding of the answers explains. The prompts differ as well, from {{trace_shortest}} to
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
# **"Continuous batching needs PagedAttention."** Orca did it in 2022 with one contiguous reservation per request.
# Paging makes more requests fit.
#
# ## Where a dynamic batcher still fits
#
# An image classifier, or an audio encoder over windows of {{window_s}} s: every request is one step of equal length. There is no
# padding, and continuous batching has nothing to win. With a delay of 0, whoever waits when the model gets free makes
# the next batch: that is continuous batching, to the last bit, and queueing theory calls it **bulk service**.
#
# In front of an LLM engine that batches by iteration, a dynamic batcher only delays admission.
#
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
# | TensorRT-LLM | `capacity_scheduler_policy` | `GUARANTEED_NO_EVICT` admits only what surely fits |
#
# - Yu et al., *Orca: A Distributed Serving System for Transformer-Based Generative Models*, OSDI 2022: iteration-level
#   scheduling.
# - Kwon et al., *Efficient Memory Management for Large Language Model Serving with PagedAttention*, SOSP 2023,
#   arXiv:2309.06180.
# - Agrawal et al., *Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve*, OSDI 2024,
#   arXiv:2403.02310: what a long prompt does to everybody else in a continuous batch.
