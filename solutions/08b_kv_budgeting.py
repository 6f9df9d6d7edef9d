# %% [markdown]
# # Lab 08, deeper: what else decides the pool

# %%
from course.lessons import lab08
from course.lessons.lab08 import card_memory

# %% [markdown]
# ## The question
#
# The core of lab 08 took the pool from a log, and its model has plain attention. **How far can you plan a card before
# you have it, and which of the usual rules of thumb fail?** Every part can be read alone.
#
# ## What one token keeps
#
# Neither the width of the model nor its number of query heads is in the formula. So a model of {{big_params}} billion parameters
# can store half as much for a token as one of {{small_params}} billion. (`course kv config.json --gpu H100` says the same of any model.)

# %%
for name in ("llama-2-7b", "qwen3-32b", "llama-3.1-8b", "qwen2-7b", "falcon-7b"):
    m = card_memory.spec(name)
    print(
        f"{name:13s} {m.num_layers} layers, {m.num_heads:2d} query heads, {m.num_kv_heads:2d} KV "
        f"heads of {m.head_dim:3d}: {m.kv_bytes_per_token:7,d} B a token"
    )

# %% [markdown]
# ## The ledger
#
# $$ K \ =\ u \cdot M - W - A - O \qquad N \ =\ \left\lfloor \frac{K}{16\,k} \right\rfloor $$
#
# | symbol | meaning | unit |
# |---|---|---|
# | $M$ | memory of the card, as the driver reports it: {{h100_gib:.2f}} GiB on an "{{h100_gb}} GB" H100 | bytes |
# | $u$ | `gpu_memory_utilization` | none |
# | $W$ | weights: parameters times bytes each, once, whatever the batch | bytes |
# | $A$ | activation: the most that a step needs beside them, found at start by running one | bytes |
# | $O$ | other: CUDA context, libraries, buffers of several cards | bytes |
# | $K$ | what is left for the KV pool | bytes |
# | $k$, $N$ | bytes a token; blocks of 16 tokens in the pool | bytes, blocks |
#
# $A$ is the larger of two peaks: the widest layer, over the most tokens that a step may hold, and the sampler, which
# sorts a row of the whole vocabulary for each sequence. That is why `max_num_seqs` costs memory: from 256 to 1,024 it
# takes {{slots_gib:.1f}} GiB of the pool below. The {{sampler_bytes}} bytes for each entry of such a row are an estimate, fitted to logs of five
# models. The size of a batch is the engine's default: `vllm serve` {{version}} takes 1,024 sequences and 8,192 tokens a step
# on cards of {{large_gib}} GiB and more (not on an A100), 256 and 2,048 on others.

# %%
h100 = card_memory.ledger("llama-3.1-8b", "H100")
for name, value, formula in card_memory.ledger_rows(h100):
    print(f"{name:16s} {value:>10s}  {formula}")

# %% [markdown]
# ## What real engines printed
#
# Five start-up logs that people have published, beside this ledger with its own estimates. "Rest" is activation and
# other as the engine found them, "estimated" the same as the ledger has it.

# %%
lab08.printed_and_estimated()

# %% [markdown]
# The pool is a small difference of large numbers. On a large card the estimate is good enough to plan with; on the A100
# of which the engine was given a quarter, 1 GiB too much for activation takes {{a100_off:.0%}} off the pool. Rule: take bytes a token
# from the config, where they are exact, and the pool from your own engine's log, where you have one.
#
# The log of the RTX 3090 explains what many have reported: *"the number of blocks depends on max_model_len, although
# the memory is the same"*. Before {{v1}} (its engine V0), vLLM profiled a step of `max_model_len` tokens, since prompts
# were not split. V1 profiles `max_num_batched_tokens`.
#
# ## Past the limit
#
# The same card with three kinds of K and V, and a pool of the same bytes: 2,000 requests, up to 256 slots, 2,048 tokens
# a step, without prefix caching. (With it a preempted request finds again what nobody has overwritten yet. In a full
# pool that is little.)

# %%
lab08.kinds_under_load()

# %% [markdown]
# With the K and V of 32 heads this card is hopeless at either rate: six or seven sequences at a time are too few for
# each reading of the weights. With 8 heads it reaches its limit between 1 and 2 requests/s, in fp8 it does not. (Where
# the queue grows to the end, the p95 says how long the run lasted, and nothing else: lab 03.)
#
# ## fp8 K and V
#
# `--kv-cache-dtype fp8` stores one byte for each element instead of two: twice the tokens in the same pool, and half
# the bytes to read in each step. What it does not do:
#
# - **It does not touch the weights.** Weight quantisation is another knob; it makes $W$ smaller, so that the pool grows
#   by what is saved, and leaves $k$ as it is.
# - **It is not free of loss.** Three bits of mantissa are left. Most models lose little with scales from a calibration,
#   and some lose a lot with the default scale of 1.0, above all in long contexts. Run your own evaluation first.
# - **Not every kernel does its arithmetic in fp8.** Where K and V are converted back in the kernel, memory is saved,
#   and time only as far as reading K and V took it.

# %%
for gpu in ("H100", "RTX 4090"):
    for bits, weights in ((16, h100.weights_bytes), (8, h100.weights_bytes / 2)):
        tokens = [
            card_memory.ledger(
                "llama-3.1-8b", gpu, kv_dtype=kv, weights_bytes=weights
            ).kv_tokens
            for kv in ("bfloat16", "fp8")
        ]
        print(
            f"{gpu:8s} {bits:2d}-bit weights: {tokens[0]:9,d} tokens, K and V in fp8 {tokens[1]:9,d}"
        )

# %% [markdown]
# On the large card fp8 K and V double the tokens, and fp8 weights add a seventh. On the small one the weights are
# most of the card, and halving them gives two and a half times the tokens. (All matrices are counted as fp8 here; real
# checkpoints leave the embedding and the head in 16 bits.)
#
# ## What is often said
#
# **"KV memory = batch x length x layers x 2 x d_model x bytes."** This takes the width of the model for the width of
# all KV heads. It is right for Llama-2-7B, and for nothing with fewer KV heads than heads: for {{wide_names}} it
# gives {{wide_heads}} times the right number. Somebody who planned Qwen2.5-7B with it, and took eight bits for
# eight bytes, arrived at {{a_token_mb:.1f}} MB a token.
#
# **"Best batch = memory / (model + max_len x KV a token)."** This adds a copy of the weights for every sequence. They
# are needed only once: on an H100, {{once_each}} sequences of {{once_length:,}} tokens fit, and not {{copies}}. And neither is the *best* batch:
# it need not be larger than the knee at which steps become compute-bound, and must not be larger than the SLO on TPOT
# allows. Take the least of the three.
#
# **"Continuous batching needs PagedAttention."** Orca did without: it reserved one piece of memory for each request,
# for the longest that it may become. What blocks change is how many fit, and with it the batch: {{speed_pieces:.0f}} tokens/s with
# {{by_limit}} pieces of 8,192 tokens, {{speed_24:.0f}} with 24 sequences in blocks.
#
# **"GQA is a setting of the server."** It is a property of the trained weights.
#
# **"Pages of {{page_kib}} to {{page_kib_most}} KB."** A block of 16 tokens is one page of K and one of V in every layer: here {{pages}} pages of
# {{page_is_kib:.0f}} KiB, {{block_mib:.0f}} MiB. Half of the last block is lost on average: {{lost_share:.1%}} of a sequence of the core.
#
# ## Models that do not keep everything
#
# - **Sliding windows.** Some layers keep only the last few tokens: bytes of a token while the window fills, and bytes
#   of a further token once it is full.
# - **Latent attention** (MLA). A layer keeps one short row for all heads. `num_key_value_heads` is in the file, and
#   means nothing.
# - **Recurrent hybrids.** Most layers keep a state of fixed size, and few have attention. Short sequences pay for the
#   state in full.

# %%
lab08.what_a_sequence_keeps()

# %% [markdown]
# If you count K and V for all {{hybrid_layers}} layers of Nemotron-H-56B, of which {{hybrid_attention}} have attention, you are wrong by an order of
# magnitude. If you leave out the state, you are wrong in the other direction.
#
# vLLM's printed *tokens* of such a model are no capacity up to {{graphs}}: they are counted as if all layers kept every token.
# From {{tool_tokens}} on they are the concurrency times `max_model_len`; the concurrency takes windows into account in both.
#
# ## A storm of preemptions
#
# 2 requests/s, and somebody raises the slots because "the queue is long and the GPU has room".
#
# The symptom: `vllm:num_preemptions_total` climbs, the pool is {{busy:.0%}} full, the number of running requests swings while all
# of them are slower (TPOT {{tpot_24_ms:.0f}} ms with 24 slots, {{tpot_48_ms:.0f}} with 48), and streams stop for seconds. Tokens/s look fine, since work
# that is done twice looks like work. Beyond {{most_running}} slots nothing changes any more: the pool decides.
#
# Does that depend on the card, whose times are modelled? The same pool with steps that were **recorded** on an H100, at
# a rate that is again too high:

# %%
lab08.two_cards()

# %% [markdown]
# ## A request that never fits, and the last per cent of the card
#
# A request may be within `max_model_len` and still larger than the whole pool. An engine that admits it waits for
# blocks that cannot come. Some engines did, and hung; `serve` refuses it. vLLM does not start when `max_model_len`
# tokens do not fit the pool, and says which length would: Qwen3-32B on one H100, as the ledger sees it, starts with
# {{fits_length:,}} tokens and not with {{refused_length:,}}.
#
# `gpu_memory_utilization` is a share of the *whole* memory of the card, not of what is free. The rest of the card must
# hold everything that nobody has counted: CUDA graphs (in vLLM before {{graphs}}), fragments, a second process. From there on an
# estimate of the graphs is taken off the pool, and the default is {{share_now:.2f}}. On the RTX 4090, from {{default_share:.2f}} to {{share_last:.2f}}, the
# pool grows by {{last_grows:.0%}}, and {{last_left_gib:.2f}} GiB are left; CUDA graphs alone were found to take up to {{graphs_gib:g}} GiB. The first long
# batch then ends in `CUDA out of memory`, and this one *is* an error: it takes the engine down with everybody in it.
#
# **The knobs in real engines**
#
# | {{vllm}} | in this lab |
# |---|---|
# | `--gpu-memory-utilization 0.9` | $u$: a share of the whole card; activation is taken off |
# | `--max-model-len` | the length behind the printed concurrency; a longer request is refused |
# | `--max-num-seqs` | slots; costs memory for sampling |
# | `--max-num-batched-tokens` | tokens a step; costs memory for the widest layer |
# | `--kv-cache-dtype fp8` | one byte an element; `auto` is the type of the model |
# | `--block-size 16` | tokens of a block |
# | `--enable-prefix-caching`, on | not here: blocks of equal beginnings are held once |
# | gauge `vllm:kv_cache_usage_perc` | pool in use, 0 to 1 |
# | counter `vllm:num_preemptions_total` | preemptions |
#
# | SGLang 0.5 | in this lab |
# |---|---|
# | `--mem-fraction-static` | share for weights **and** pool; activation comes out of the rest |
# | `--max-total-tokens`, `--max-running-requests` | tokens of the pool, slots |
# | `--kv-cache-dtype fp8_e4m3`, `--page-size` | type of K and V, tokens of a block |
#
# | TensorRT-LLM 1.0, `kv_cache_config` | in this lab |
# |---|---|
# | `free_gpu_memory_fraction: 0.9` | share of what is **free** once the weights are loaded |
# | `max_tokens` | tokens of the pool; the smaller of the two counts |
# | `dtype: fp8`, `tokens_per_block` | type of K and V, tokens of a block |
# | `capacity_scheduler_policy: GUARANTEED_NO_EVICT` | no preemption: admits only what fits to its end |
#
# The three memory shares are shares of three different things. Somebody who compared vLLM at {{default_share:g}} with SGLang at {{share_sglang:.2f}} on
# the same four H100s found {{tokens_vllm:,}} against {{tokens_sglang:,}} tokens. The bytes a token are the same in both; the difference comes
# from the rules, above all from the activation, which SGLang leaves outside of the share.
#
# **What to read next**
#
# - Kwon et al., *Efficient Memory Management for Large Language Model Serving with PagedAttention*, SOSP 2023,
#   arXiv:2309.06180: blocks, block tables, preemption.
# - Ainslie et al., *GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints*, EMNLP 2023,
#   arXiv:2305.13245; Shazeer, *Fast Transformer Decoding: One Write-Head is All You Need*, 2019, arXiv:1911.02150.
# - DeepSeek-AI, *DeepSeek-V2*, 2024, arXiv:2405.04434: latent attention.
