# %% [markdown]
# # Lab 07, deeper: what chunks cost

# %%
from course.lessons import lab07

# %% [markdown]
# ## The question
#
# The lab says: choose the budget for chats that stream, and the cap for those that arrive. **Is that true of any card,
# or only of the recorded one? And what do chunks cost?** This notebook is optional. It puts the roofline beside the
# recording, counts what is read and computed, looks at throughput, at a trace without contracts, and at how other
# engines order a step.

# %%
lab07.both_sides()

# %% [markdown]
# All budgets, with a cap of 512: on the left the TTFT of requests that arrive, on the right the ITL of chats that
# stream.
#
# ## What a step with a chunk costs, in theory
#
# $$ t = t_0 + \max\!\left(\frac{W}{B},\ p\,(b + c)\right) + \frac{m\,K}{B}
# + \max\!\left(q\,P,\ \frac{m\,(k + c)}{B}\right), \qquad P = c\,k + \frac{c\,(c + 1)}{2} $$
#
# | symbol | meaning | here |
# |---|---|---|
# | $t_0$ | launching the kernels of a step [s] | {{launch_ms:.2f}} ms |
# | $W / B$ | bytes of all weights over the bandwidth: reading them once [s] | {{weights_ms:.2f}} ms |
# | $p$ | matrix products of one token [s], a little more for a decode | {{token_us:.1f}} µs |
# | $b,\ c$ | decodes and prompt tokens in the step [tokens] | |
# | $k$ | tokens of that prompt already in the cache [tokens] | 0 to 32,768 - c |
# | $m$ | bytes of K and V of one token | {{kv_bytes:,}} |
# | $K$ | tokens that the decodes attend to, all together | |
# | $P,\ q$ | query-key pairs of the chunk, and the time of one [s] | q = {{pair_ns:.2f}} ns |
#
# The products of some {{knee_some:.0f}} tokens take as long as reading the weights. A smaller step takes the same time and computes
# less; in a larger one the time grows with the tokens. The pairs make the last step of a long prompt longer than the
# first.

# %%
lab07.attention_share()

# %% [markdown]
# ## Theory beside the recording
#
# On the left one step, at the beginning and at the end of the prompt; on the right the whole prompt, from chunks of 64
# to all of it in one step. Dots are recorded, dashes theory.

# %%
lab07.seconds_by_chunk()

# %%
lab07.chunks_recorded()

# %% [markdown]
# What is recorded takes {{ratio_low:.2f}} to {{ratio_high:.1f}} times as long as theory says. Decodes alone are near it, and so are large
# chunks: their attention runs at {{attention_rate:.0%}} of the rate of a large matrix product. The shape is right, and
# theory errs in one direction: **chunks of 256 and 512 cost more than it says**. Against chunks of 8,192
# they take {{longer_256:.0%}} and {{longer_512_8192:.0%}} longer, where theory says {{theory_256:.0%}} and {{theory_512:.0%}}. At 64 and 128, where reading the weights is nearly all,
# both say one and a half to three and a half times. One step for all 32,768 tokens gains {{gains_whole:.0%}}: beyond a few
# thousand tokens larger chunks gain nothing.
#
# The slider below launches each chunk on your device: the product with one matrix and the attention of one layer. These
# times are **measured**; beside them is the whole model, **recorded** on an H200. (A CPU gets a small matrix and two
# heads.) Halve the chunk again and again: down to which size does a step take half as long? A GPU needs hundreds of
# tokens to be bound by compute. A CPU needs a few, so that on it small chunks may cost nothing. In both, steps grow
# along the prompt, since a chunk attends to all before it.

# %%
lab07.launched_in_chunks()

# %% [markdown]
# Do the conclusions of this lab depend on the card's kernels? The same {{chats:,}} chats and the same policies, on theory and
# on the recording:

# %%
lab07.settings_in_theory()

# %%
lab07.settings_recorded()

# %% [markdown]
# They do not. Without a cap the p99 over tokens is worst at 512 in both, the longest gap follows the budget, a smaller
# budget makes newcomers wait longer, and the cap is what helps them. Two things differ. Small budgets cost more on the
# card: at 256 the long prompt waits {{small_256:.0%}} longer than at 8,192, in theory {{small_256_theory:.0%}}. And real steps are longer, so that 2,048
# breaks a promise of 100 ms, which 1,024 keeps.
#
# - **How many chats stall?** Those that stream when the long prompt comes. By Little's law (lab 03) their number is the
#   rate times the time a chat streams. In 20 s, rate times 20 s chats arrive. So the share that stalls is the time a
#   chat streams over 20 s.
# - **The cap has its price.** The long prompt pays: {{long_capped_ms:,.0f}} ms with a cap of 512 instead of {{long_uncapped_ms:,.0f}} ms, {{long_capped_1024_ms:,.0f}} ms with one
#   of 1,024. And so does the p99 of the gaps, which goes from {{itl_uncapped_ms:.0f}} to {{itl_capped_ms:.0f}} ms: the chunks are small and many, as with a
#   small budget, and they share their steps with the prompts of newcomers. Even so, nobody stalls.
#
# ## Chunks do not add pairs, they add readings
#
# A **pair** is one token that attends to one token, itself included. However a prompt is cut, each of its tokens
# attends once to all before it, so the pairs are the same. What does grow with the number of chunks is what is read:
# each chunk reads the weights again, and the K and V of all earlier chunks. And kernels are less efficient on small
# chunks: on the recorded card a pair takes longer in chunks of 256 and below.

# %%
lab07.readings()

# %% [markdown]
# ## Smaller is not safer: what the budget does to throughput
#
# All requests of the trace that the next section describes arrive at once. How many tokens a second does the card
# compute, prompts and answers together? There is a best budget: a step that holds both reads the weights once for both,
# and wastes nothing once computing its tokens takes as long as reading the weights. Below that everybody pays.

# %%
lab07.throughput()

# %% [markdown]
# ## Without contracts: the trace
#
# Nobody pastes 32,768 tokens in this trace (synthetic, with the statistics of the conversation trace that Azure
# published in 2023). Its longest prompt has {{trace_longest:,}}. Even so, one request in seven has more than 2,048 tokens, and these
# hold {{trace_long_tokens:.0%}} of all prompt tokens. At {{trace_rate}} requests a second:

# %%
lab07.the_trace()

# %% [markdown]
# A step with more than some {{trace_over:,}} prompt tokens takes over {{trace_ms}} ms on that card, and with a budget of 8,192 there are {{trace_heavy:.1f}}
# of them each second: an answer that streams for {{trace_streams_s:.1f}} s meets {{trace_met:.1f}}. A budget of 1,024 ends this. The cap is no
# replacement: it limits each prompt by itself, and several fit into one step.
#
# ## Who goes first
#
# | system | what a step holds |
# |---|---|
# | Orca, 2022 | whole prompts and decodes together: a long prompt makes a long step |
# | vLLM before V1 | whole prompts *or* decodes, prompts first; chunked prefill was an option |
# | DeepSpeed-FastGen, 2023 | **Dynamic SplitFuse**: a fixed number of tokens, long prompts split, short ones packed |
# | Sarathi-Serve, 2024 | **stall-free**: all decodes, then chunks of running prompts, then new ones, up to a budget |
# | {{vllm}} | those that run, in order of admission, up to budget and cap; then those that wait |
# | SGLang, default | chunks of prompts *or* decodes, prompts first; `--enable-mixed-chunk` puts both in a step |
#
# What protects those who stream is that chunks and decodes share a step. `PrefillFirst` computes prompts in chunks, and
# decodes only when no prompt is left:

# %%
lab07.who_goes_first()

# %% [markdown]
# In vLLM's order a decode may come behind a chunk in the list. Can it be left out when the budget is used up? Not
# without preemption: a request was admitted because those in front of it left room in the budget, and from then on they
# take less, not more. So no gap is longer than a step, as with the rule of Exercise 3.
#
# ## What is often said

# %%
lab07.claims()

# %% [markdown]
# - A step with fewer tokens is shorter, so the number of steps says little. Chunks and decodes share their steps.
# - A first token needs the whole prompt, however it was cut. "To give users a quick first token, do not chunk" is right
#   for that one prompt, and wrong for everybody else.
# - With 64 decodes, {{share_prefill:.0%}} of the tokens is a chunk of {{share_chunk}} tokens.
# - The scores of {{scores_tokens:,}} tokens need {{scores_mb:.0f}} MB a head only if somebody stores them. Kernels that work in tiles do not.
#
# ## A cap that is too small, and no chunks at all
#
# If 512 is good, {{tiny}} must be better?

# %%
lab07.small_caps()

# %% [markdown]
# Each step reads all weights, whether the long prompt gets 512 tokens of it or {{tiny}}. Below some {{knee_some:.0f}} a smaller cap only
# spares a step some attention, and the long prompt starves: {{starved_s:.1f}} s to its first token. And the cap holds for every
# prompt: at {{tiny}} a short one of 200 tokens takes {{tiny_steps}} steps as well.
#
# Without chunks a step must hold a whole prompt, so engines refuse what does not fit. vLLM refuses to start if
# `max_model_len` is above the budget, and once it runs it refuses each longer prompt:

# %%
lab07.chunking_off()

# %% [markdown]
# ## In a real engine
#
# | here | engine | knob | default |
# |---|---|---|---|
# | token budget | {{vllm}} | `--max-num-batched-tokens` | `vllm serve`: 8,192 on an H100 or H200, 2,048 on an A100 |
# | cap for one prompt | {{vllm}} | `--long-prefill-token-threshold` | 0: none; {{spares}} cut no prompt that is alone |
# | chunking at all | {{vllm}} | `--enable-chunked-prefill` | on |
# | prompts at a time | {{vllm}} | `--max-num-partial-prefills` | 1; V1 refuses to start with another |
# | long ones among them | {{vllm}} | `--max-long-partial-prefills` | the same; later versions dropped both |
# | chunk | SGLang 0.5 | `--chunked-prefill-size` | 8,192 on a card of {{sglang_gb}} GB; -1 turns chunking off |
# | chunks beside decodes | SGLang 0.5 | `--enable-mixed-chunk` | off: prompts first, decodes wait |
# | chunking at all | TensorRT-LLM 1.x | `enable_chunked_prefill` | off; in Triton's config: `enable_chunked_context` |
# | token budget | TensorRT-LLM 1.x | `max_num_tokens` | 8,192 |
#
# The 1 in "prompts at a time" is not what V1 does: it admits as many as budget, slots and memory allow. Sarathi-Serve's
# paper takes a budget of 512 tokens for a strict limit on ITL and 2,048 for a relaxed one, after timing the card.
#
# vLLM exports ITL as a histogram over tokens, `vllm:inter_token_latency_seconds`: its p99 does not show a stall. Its
# `_count` less the `_bucket` at your limit does: that many gaps were longer, and somebody waited through each.
#
# **Read next**
#
# - Agrawal et al., *Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve*, OSDI 2024,
#   arXiv:2403.02310: stall-free batching, and how to choose the budget.
# - Holmes et al., *DeepSpeed-FastGen*, arXiv:2401.08671: Dynamic SplitFuse.
# - Agrawal et al., *SARATHI*, arXiv:2308.16369: the first chunked prefills, and what a chunk's attention costs.
# - Zhong et al., *DistServe*, OSDI 2024, arXiv:2401.09670: another solution, prompts and decodes on different cards.
