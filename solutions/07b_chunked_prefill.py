# %% [markdown]
# # Lab 07, deeper: what chunks cost

# %%
from course.lessons import lab07

# %% [markdown]
# ## The question
#
# The lab says: choose the budget for chats that stream, and the cap for those that arrive. **Is that true of any card,
# or only of the recorded one? And what do chunks cost?** This notebook is optional. It puts the roofline beside the
# recording, counts what is read and computed, and looks at throughput and at how other engines order a step.
#
# The same {{chats:,}} chats with other limits:

# %%
lab07.settings()

# %% [markdown]
# Without a cap the p99 over tokens is worst at 512, the longest gap follows the budget, a smaller budget makes newcomers
# wait longer, and the cap is what helps them. On a roofline of the card all of this is the same. Two things differ. Small budgets cost more
# on the card: at 256 the long prompt waits {{small_256:.0%}} longer than at 8,192, in theory {{small_256_theory:.0%}}. And real steps are longer,
# so that 2,048 breaks a promise of 100 ms, which 1,024 keeps.
#
# **The cap has its price.** The long prompt pays: {{long_capped_ms:,.0f}} ms with a budget of 2,048 and a cap of 512 instead of {{long_uncapped_ms:,.0f}} ms,
# {{long_capped_1024_ms:,.0f}} ms with a cap of 1,024. And so does the p99 of the gaps, which goes from {{itl_uncapped_ms:.0f}} to {{itl_capped_ms:.0f}} ms: the chunks are
# small and many, as with a small budget, and they share their steps with the prompts of newcomers. Even so, nobody
# stalls.
#
# ## Why a p99 over tokens hides a stall
#
# By Little's law {{caught:.0f}} chats stream: {{chat_rate:.1f}} a second x 300 gaps of {{gap_mean_ms:.1f}} ms. One step makes {{caught:.0f}} long gaps among
# {{tokens_between:,.0f}} tokens in 20 s: {{caught_share:.2%}}. Some {{chunks}} chunks make {{caught_share_cut:.1%}}: now the p99 has a chunk.
#
# ## What a step with a chunk costs
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
lab07.chunks_recorded()

# %% [markdown]
# What is recorded takes {{ratio_low:.2f}} to {{ratio_high:.1f}} times as long as theory says. Decodes alone are near it, and so are large
# chunks: their attention runs at {{attention_rate:.0%}} of the rate of a large matrix product. The shape is right, and
# theory errs in one direction: **chunks of 256 and 512 cost more than it says**. Against chunks of 8,192
# they take {{longer_256:.0%}} and {{longer_512_8192:.0%}} longer, where theory says {{theory_256:.0%}} and {{theory_512:.0%}}. At 64 and 128, where reading the weights is nearly all,
# both say one and a half to three and a half times. One step for all 32,768 tokens gains {{gains_whole:.0%}}: beyond a few
# thousand tokens larger chunks gain nothing.
#
# However a prompt is cut, each of its tokens attends once to all before it, so the pairs are the same. What does grow
# with the number of chunks is what is read: each chunk reads the weights again, and the K and V of all earlier chunks:
# {{read_gb_512:,.0f}} GB and {{kv_gb_512:,.0f}} GB in chunks of 512, {{read_gb_8192:,.0f}} GB and {{kv_gb_8192:,.0f}} GB in chunks of 8,192.
#
# ## Smaller is not safer: what the budget does to throughput
#
# All requests of a trace arrive at once (synthetic, with the statistics of the conversation trace that Azure published
# in 2023; its longest prompt has {{trace_longest:,}} tokens). How many tokens a second does the card compute, prompts and answers
# together? There is a best budget: a step that holds both reads the weights once for both, and wastes nothing once
# computing its tokens takes as long as reading the weights. Below that everybody pays.

# %%
lab07.throughput()

# %% [markdown]
# ## Who goes first
#
# | system | what a step holds |
# |---|---|
# | Orca, 2022 | whole prompts and decodes together: a long prompt makes a long step |
# | vLLM before V1 | whole prompts *or* decodes, prompts first; chunked prefill was an option |
# | DeepSpeed-FastGen, 2023 | **Dynamic SplitFuse**: a fixed number of tokens, long prompts split, short ones packed |
# | Sarathi-Serve, 2024 | **stall-free**: all decodes, then chunks of running prompts, then new ones, up to a budget |
# | {{vllm}} | those that run, in order of admission, up to budget and cap; then those that wait |
# | SGLang 0.5, default | chunks of prompts *or* decodes, prompts first; `--enable-mixed-chunk` puts both in a step |
#
# What protects those who stream is that chunks and decodes share a step. Where they do not, and prompts go first, a chat
# waits for all chunks, whatever their size.
#
# In vLLM's order a decode may come behind a chunk in the list. Can it be left out when the budget is used up? Not
# without preemption: a request was admitted because those in front of it left room in the budget, and from then on they
# take less, not more. So no gap is longer than a step, as with the rule of Exercise 3.
#
# ## In a real engine
#
# | here | engine | knob | default |
# |---|---|---|---|
# | token budget | {{vllm}} | `--max-num-batched-tokens` | 8,192 on an H100 or H200, 2,048 on an A100; fewer than `--max-num-seqs` are refused |
# | cap for one prompt | {{vllm}} | `--long-prefill-token-threshold` | 0: none; {{spares}} cut no prompt that is alone |
# | chunking at all | {{vllm}} | `--enable-chunked-prefill` | on; without it a prompt above the budget is refused |
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
# - Zhong et al., *DistServe*, OSDI 2024, arXiv:2401.09670: another solution, prompts and decodes on different cards.
