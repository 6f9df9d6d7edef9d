# %% [markdown]
# # Lab 08, deeper: what else decides the pool

# %%
from textwrap import fill

from course import KVCache, Workload, memory, policies, serve
from course.lessons import lab08
from course.lessons.lab08 import card_memory, kv_pool, reports
from course.lessons.lab08 import figures as draw
from course.lessons.lab08.config_picker import ConfigPicker
from course.lessons.lab08.engine_prints import PRINTS

GIB = 2**30

# %% [markdown]
# ## The question
#
# The core of lab 08 took the pool from a log, and its model has plain attention. **How far can you plan a card before
# you have it, and which of the usual rules of thumb fail?** Every part can be read alone.
#
# ## What one token keeps
#
# The dashed line is the whole pool of the RTX 4090.
#
# 1. Go from 8 KV heads to 32, then to 1. What happens to the bytes of a token, and to those of a sequence of 8,192?
# 2. How long is a sequence that fills the pool alone, with 8 KV heads? With 32?
# 3. Set K and V to fp8. Which number of KV heads would save as much?

# %%
lab08.one_token()

# %% [markdown]
# The width of the model is not in the formula, nor is its number of query heads. So a model of {{big_params}} billion parameters
# can store half as much for a token as one of {{small_params}} billion:

# %%
print("model          layers  query heads  KV heads  head   bytes a token   8,192 tokens")
for name in ("llama-2-7b", "qwen3-32b", "llama-3.1-8b", "qwen2-7b", "falcon-7b"):
    m = card_memory.spec(name)
    kind = {m.num_heads: "MHA", 1: "MQA"}.get(m.num_kv_heads, "GQA")
    print(
        f"{name:14s} {m.num_layers:5d} {m.num_heads:12d} "
        f"{m.num_kv_heads:5d} {kind} {m.head_dim:5d}"
        f" {m.kv_bytes_per_token:13,d} B {8192 * m.kv_bytes_per_token / GIB:10.3f} GiB"
    )

# %% [markdown]
# Written as a function of a config, where keys may be missing:


# %%
def token_bytes(config, element_bytes):
    """KV bytes that one token keeps, in all layers."""
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    kv_heads = config.get("num_key_value_heads") or heads
    return 2 * config["num_hidden_layers"] * kv_heads * head_dim * element_bytes


token_bytes({"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}, 2)

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
# sorts a row of the whole vocabulary for each sequence. That is why `max_num_seqs` costs memory. The {{sampler_bytes}} bytes for each
# entry of such a row, below, are an estimate, fitted to logs of five models. The size of a batch is the engine's
# default: `vllm serve` {{version}} takes 1,024 sequences and 8,192 tokens a step on cards of {{large_gib}} GiB and more (not on an A100),
# 256 and 2,048 on others.

# Read the bar of Llama-3.1-8B on an H100 from the bottom up. Set `max_num_seqs` to 256, then to 1,024: where do {{slots_gib:.1f}} GiB
# go, before a single request has come? Change `max_model_len`: which lines of the table move?

# %%
lab08.how_many_fit()

# %%
h100 = card_memory.ledger("llama-3.1-8b", "H100", max_model_len=4_096)
for name, value, formula in card_memory.ledger_rows(h100):
    print(f"{name:16s} {value:>10s}  {formula}")
seqs = h100.max_num_seqs
print(
    f"sampler: 38 B x {seqs:,} sequences x 128,256 entries = {38 * seqs * 128_256 / GIB:.2f} GiB"
)

# %% [markdown]
# ## What real engines printed
#
# Five start-up logs that people have published, beside this ledger with its own estimates. "Rest" is activation and
# other as the engine found them, "estimated" the same as the ledger has it.

# %%
print("engine     model         card      KV printed   ledger     off    rest  estimated")
for log in PRINTS:
    card = log.ledger
    rest = (card.activation_bytes + card.other_bytes) / GIB
    print(
        f"{log.engine:10s} {log.model_name:13s} {log.card:9s} {log.kv_gib:6.2f} GiB "
        f"{card.kv_bytes / GIB:8.2f} {card.kv_bytes / GIB / log.kv_gib - 1:+7.1%} "
        f"{log.engine_rest_gib:7.2f} {rest:7.2f}"
    )

# %% [markdown]
# The second row is the ledger shown before. The pool is a small difference of large numbers. On a large card the
# estimate is good enough to plan with; on the A100 of which the engine was given a quarter, 1 GiB too much for
# activation takes {{a100_off:.0%}} off the pool. Rule: take bytes a token from the config, where they are exact, and the pool from
# your own engine's log, where you have one.
#
# The log of the RTX 3090 explains what many have reported: *"the number of blocks depends on max_model_len, although
# the memory is the same"*. Before {{v1}} (its engine V0), vLLM profiled a step of `max_model_len` tokens, since prompts
# were not split. V1 profiles `max_num_batched_tokens`; with `--no-enable-chunked-prefill` that is `max_model_len`
# again:

# %%
for batched in (2_048, 8_192, 20_000):
    card = memory.ledger(
        "llama-3.1-8b",
        memory_bytes=23.58 * GIB,
        max_model_len=4_096,
        max_num_batched_tokens=batched,
    )
    print(
        f"a profiled step of {batched:6,d} tokens: "
        f"activation {card.activation_bytes / GIB:.2f} GiB, {card.num_blocks:,} blocks"
    )

# %% [markdown]
# ## Past the limit
#
# Nothing fails when the pool is full. When a running sequence needs a block and there is none, the one admitted last
# gives back all of its own and goes to the head of the queue. Once blocks are free, its prompt and its answer so far
# are computed again, and its reader sees nothing until that is done. The table shows the same card with three kinds of
# K and V, and a pool of the same bytes. 2,000 requests, up to 256 slots, 2,048 tokens a step. (This is without prefix
# caching, which vLLM has on by default: with it, a preempted request finds again what nobody has overwritten yet. In a
# full pool that is little.)

# %%
print(
    "K and V             blocks  requests/s   p95 TTFT   tokens/s  preemptions  twice  longest gap"
)
for kind in (kv_pool.MHA, kv_pool.GQA, kv_pool.FP8):
    for rate in (1.0, 2.0):
        found = kv_pool.under_load(kind, rate)
        print(
            f"{kind:18s} {found.run.cache.num_blocks:7,d} {rate:9.0f} {found.p95_ttft:12.2f} s"
            f" {found.tokens_per_second:8.0f} {found.preemptions:11,d} {found.recomputed:8.0%}"
            f" {found.longest_gap:9.1f} s"
        )

# %% [markdown]
# With the K and V of 32 heads this card is hopeless at either rate: six or seven sequences at a time are too few for
# each reading of the weights. With 8 heads it reaches its limit between 1 and 2 requests/s, in fp8 it does not. (Where
# the queue grows to the end, the p95 says how long the run lasted, and nothing else: lab 03.)
#
# ## Reading K and V
#
# A decode step reads the K and V of all its sequences. The slider runs the attention of one layer here, **measured**,
# beside steps **recorded** on an H100.

# %%
lab08.reading_kv()

# %% [markdown]
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
print(
    "Llama-3.1-8B on                                weights    pool  bytes a token     tokens"
)
for gpu in ("H100", "RTX 4090"):
    for name, weights, dtype in (
        ("16-bit weights, 16-bit K and V", 1, "bfloat16"),
        ("16-bit weights, fp8 K and V", 1, "fp8"),
        ("fp8 weights, 16-bit K and V", 2, "bfloat16"),
        ("fp8 weights, fp8 K and V", 2, "fp8"),
    ):
        card = card_memory.ledger(
            "llama-3.1-8b", gpu, kv_dtype=dtype, weights_bytes=h100.weights_bytes / weights
        )
        print(
            f"{gpu:9s} {name:32s} {card.weights_bytes / GIB:8.2f} GiB "
            f"{card.kv_bytes / GIB:6.2f} {card.spec.kv_bytes_per_token:11,d} {card.kv_tokens:13,d}"
        )

# %% [markdown]
# On the large card fp8 K and V double the tokens, and fp8 weights add a seventh. On the small one the weights are
# most of the bar, and halving them gives two and a half times the tokens. (All matrices are counted as fp8 here; real
# checkpoints leave the embedding and the head in 16 bits.)
#
# ## What is often said
#
# **"KV memory = batch x length x layers x 2 x d_model x bytes."** This takes the width of the model for the width of
# all KV heads. It is right for Llama-2-7B, and for nothing with fewer KV heads than heads. Somebody who planned
# Qwen2.5-7B with it, and took eight bits for eight bytes, arrived at {{a_token_mb:.1f}} MB a token:

# %%
m = card_memory.spec("qwen2-7b")  # the same sizes as Qwen2.5-7B
wide = 2 * m.hidden_size * m.num_layers
print(f"KV heads alone:     2 x 28 x 4 x 128 x 2 = {m.kv_bytes_per_token:9,d} B")
print(f"the model's width:  2 x 28 x 3,584 x 2   = {wide * 2:9,d} B")
print(f"and bits as bytes:  2 x 28 x 3,584 x 8   = {wide * 8:9,d} B")
for name in ("llama-2-7b", "llama-3.1-8b", "qwen2-7b", "falcon-7b"):
    m = card_memory.spec(name)
    ratio = 2 * m.num_layers * m.hidden_size * 2 / m.kv_bytes_per_token
    print(f"{name:13s} the formula gives {ratio:4.1f} times the right number")

# %% [markdown]
# **"Best batch = memory / (model + max_len x KV a token)."** This adds a copy of the weights for every sequence. They
# are needed only once:

# %%
sequence = 4_096 * h100.spec.kv_bytes_per_token
for_each = int(h100.usable_bytes / (h100.weights_bytes + sequence))
print(f"weights for each: {for_each} sequences of 4,096 tokens")
print(f"weights once:     {int(h100.kv_bytes / sequence)} sequences")

# %% [markdown]
# And neither is the *best* batch: memory is one of three limits. The batch also need not be larger than the knee at
# which steps become compute-bound, and must not be larger than the SLO on TPOT allows. Take the least of the three.
#
# **"Continuous batching needs PagedAttention."** Orca did without: it reserved one piece of memory for each request,
# for the longest that it may become. What blocks change is how many fit, and with it the batch:

# %%
for name, number in (
    ("one piece of 8,192 each", kv_pool.TOKENS // 8_192),
    ("blocks as they go", 24),
):
    found = kv_pool.under_load(slots=number)
    print(
        f"{name:24s} {number:2d} slots: {found.tokens_per_second:.0f} tokens/s, "
        f"pool filled with tokens {found.pool_used.mean():.0%} on average"
    )

# %% [markdown]
# **"GQA is a setting of the server."** It is a property of the trained weights. **"GQA makes it four times smaller."**
# True for 8 of 32 heads; the table above has {{wide_heads}}.
#
# **"Pages of {{page_kib}} to {{page_kib_most}} KB."** A block of 16 tokens is one page of K and one of V in every layer:

# %%
page = 16 * 8 * 128 * 2
print(f"one page {page / 1024:.0f} KiB")
print(f"a block, which is 32 layers of K and V: {64 * page / 2**20:.0f} MiB")
print(f"lost in the last block, on average: 7.5 of 1,536 tokens, {7.5 / 1536:.1%}")

# %% [markdown]
# ## Any config.json
#
# Pick one that comes with the course, type the path of one, or load a file from the machine your browser runs on. What
# cannot be understood is refused in a sentence: a wrong number would be worse. `picker.spec` is the model in later
# cells.

# %%
picker = ConfigPicker("llama-3.1-8b", card="H100")
picker

# %% [markdown]
# ## Optional: models that do not keep everything
#
# Three ways to keep less of a long sequence, each with a trap for whoever counts bytes.
#
# - **Sliding windows.** Some layers keep only the last few tokens. There are two honest numbers: bytes a token while
#   the window fills, and bytes of a further token once it is full.
# - **Latent attention** (MLA). A layer keeps one short row for all heads. `num_key_value_heads` is in the file, and
#   means nothing.
# - **Recurrent hybrids.** Most layers keep a state of fixed size, and few have attention. Short sequences pay for the
#   state in full.
#
# 1. Which model keeps the least of 1,024 tokens, and which of {{longest_context:,}}? Where do lines cross?
# 2. gpt-oss-120b: one tool says {{oss_token:,}} bytes a token, another {{oss_token_later:,}}. Which line of the table is which?

# %%
lab08.one_sequence()

# %% [markdown]
# **"Why does my engine say {{oss_tokens:,}} tokens and {{oss_times}}x?"** vLLM, gpt-oss-120b over four A100s, {{oss_pool_gib:.2f}} GiB of pool on each,
# `max_model_len` {{oss_length:,}}. But {{oss_tokens:,}} / {{oss_length:,}} is {{oss_wrong:.0f}}.
#
# Up to vLLM 0.20 the printed *tokens* are counted as if all {{oss_layers}} layers kept every token; from {{tool_tokens}} on they are the
# concurrency times `max_model_len`. The *concurrency* takes into account, in both, that {{oss_windowed}} of them have a window of {{oss_window}}
# tokens. A windowed group of layers holds {{oss_kept}} tokens and those of one step (2,048), in whole blocks and one more, since
# a window may begin inside a block:

# %%
oss = card_memory.spec("gpt-oss-120b")
pool = memory.pool(oss, 45.32 * GIB, tp=4, max_num_batched_tokens=2_048)
print(f"bytes a token on one of four cards: {oss.kv_bytes_per_token // 4:,}")
charged = pool.num_blocks // len(pool.groups) * pool.block_size
print(f"tokens {charged:,}, over 16,384: {charged / 16_384:.1f}")
for group in pool.groups:
    print(
        f"{group.kind:6s} {group.num_layers} layers: "
        f"{group.blocks(16_384):5,d} blocks for 16,384 tokens"
    )
print(
    f"{pool.num_blocks:,} blocks / {pool.blocks_for(16_384):,} = {pool.concurrency(16_384):.1f}x"
)
print(f"tokens as vLLM 0.21 prints them: {int(pool.concurrency(16_384) * 16_384):,}")

# %% [markdown]
# The log rounds its GiB to two digits, which is where {{oss_off}} tokens have gone.
#
# And the hybrid: if you count K and V for all {{hybrid_layers}} layers of Nemotron-H-56B, of which {{hybrid_attention}} have attention, you are wrong
# by an order of magnitude. If you leave out the state, you are wrong in the other direction:

# %%
hybrid = card_memory.spec("nemotron-h-56b")
all_layers = hybrid.num_layers * 2 * hybrid.num_kv_heads * hybrid.head_dim * 2
print(
    f"all layers {all_layers:,} B a token, those with attention {hybrid.kv_bytes_per_token:,} B"
)
print(
    f"state {hybrid.state_bytes / 2**20:,.0f} MiB a sequence: as much as "
    f"{hybrid.state_bytes // hybrid.kv_bytes_per_token:,} tokens"
)

# %% [markdown]
# ## Six reports
#
# Six questions that people have put to the authors of engines, shortened. Answer each with a number:
#
# - `concurrency`: vLLM prints *{{printed_461:.2f}}x* for 8,192 tokens. "Is that a hard limit?" How many requests of {{report_request}} tokens fit?
# - `qwen`: "Qwen2.5-7B takes {{a_token_mb:.2f}} MB a token." It has {{qwen_layers}} layers, {{qwen_heads}} heads, 4 KV heads of 128, a width of {{qwen_width:,}}, and 16
#   bits an element. What is the right number of bytes?
# - `tensorrt`: "TensorRT-LLM takes {{trt_gb}} GB for KV, and I send one request." It takes {{default_share:g}} of the free memory, whatever is
#   sent. The log says {{trt_tokens:,}} tokens; the model has 32 layers, 32 KV heads of 128, 16 bits. How many GB (10⁹ bytes)?
# - `a10`: "vLLM has {{a10_blocks:,}} blocks of 16 tokens for Llama-2-7B on my A10 with {{a10_gb}} GB." How many GiB would those take, at
#   {{a10_token:,}} bytes a token?
# - `llama.cpp`: `--ctx-size 4096 --parallel 2`, each slot with its own part. How many tokens does a slot have?
# - `never`: a prompt of {{never_prompt:,}} tokens, `max_tokens` {{never_answer:,}}, and a pool of {{never_blocks:,}} blocks of 16: the request hangs. How
#   many blocks does it need at its end?

# %%
answers = {}
### BEGIN SOLUTION
answers = {
    "concurrency": int(4.61 * 8_192 / 800),
    "qwen": 2 * 28 * 4 * 128 * 2,
    "tensorrt": 132_608 * 2 * 32 * 32 * 128 * 2 / 1e9,
    "a10": 8_348 * 16 * 524_288 / 2**30,
    "llama.cpp": 4_096 // 2,
    "never": (99_000 + 1_000) // 16,
}
### END SOLUTION

# %%
reports.check(answers)

# %% [markdown]
# ## A storm of preemptions
#
# 2 requests/s, and somebody raises the slots because "the queue is long and the GPU has room".

# %%
sweep = kv_pool.sweep()
for found in sweep:
    if found.slots >= 16:
        print(
            f"{found.slots:3d} slots: {found.tokens_per_second:.0f} tokens/s, "
            f"{found.preemptions:3d} preemptions, "
            f"{found.recomputed:3.0%} computed twice, longest gap {found.longest_gap:.1f} s"
        )
draw.slots(sweep)

# %% [markdown]
# The symptom: `vllm:num_preemptions` climbs, the pool is {{busy:.0%}} full, the number of running requests swings while all of
# them are slower (TPOT {{tpot_24_ms:.0f}} ms with 24 slots, {{tpot_48_ms:.0f}} with 48), and streams stop for seconds. Tokens/s look fine, since work
# that is done twice looks like work. Beyond {{most_running}} slots nothing changes any more: the pool decides.
#
# Does that depend on the card, whose times are modelled? The same pool with steps that were **recorded** on an H100, at
# a rate that is again too high:

# %%
lab08.two_cards()

# %% [markdown]
# Is this only one draw? Four others, 24 slots against 48:

# %%
for seed in range(1, 5):
    a, b = (kv_pool.under_load(slots=n, seed=seed) for n in (24, 48))
    print(
        f"seed {seed}: {a.tokens_per_second:.0f} and {b.tokens_per_second:.0f} tokens/s, "
        f"{a.preemptions} and {b.preemptions} preemptions"
    )

# %% [markdown]
# ## A request that never fits
#
# A request may be within `max_model_len` and still larger than the whole pool. An engine that admits it waits for
# blocks that cannot come. Some engines did, and hung. The check belongs before the first step:

# %%
huge = Workload.fixed(rate=1, num_requests=1, prompt_tokens=41_000, output_tokens=2_000)
try:
    serve(huge, policies.Continuous(256, 2_048), kv_pool.step_time(), KVCache(kv_pool.BLOCKS))
except ValueError as error:
    print(fill(str(error), 96))

# %% [markdown]
# The same check on the command line of vLLM: it refuses to start when `max_model_len` tokens do not fit the pool, and
# says which length would. Qwen3-32B on one H100, as the ledger sees it:

# %%
for length in (16_000, 32_000):
    card = card_memory.ledger("qwen3-32b", "H100", max_model_len=length)
    fits = "starts" if card.max_sequences(length) else "refused"
    print(
        f"max_model_len {length:,}: {card.concurrency(length):.2f}x, {fits}; "
        f"longest {card.longest_sequence:,}"
    )

# %% [markdown]
# ## The last per cent of the card
#
# `gpu_memory_utilization` is a share of the *whole* memory of the card, not of what is free. The rest of the card must
# hold everything that nobody has counted: CUDA graphs (in vLLM before {{graphs}}), fragments, a second process. From there on an
# estimate of the graphs is taken off the pool, and the default is {{share_now:.2f}}.

# %%
for share in (0.90, 0.95, 0.98, 0.99):
    card = card_memory.ledger("llama-3.1-8b", "RTX 4090", gpu_memory_utilization=share)
    print(
        f"{share:.2f}: pool {card.kv_bytes / GIB:.2f} GiB, {card.kv_tokens:6,d} tokens; "
        f"not counted: {(card.total_bytes - card.usable_bytes) / GIB:.2f} GiB"
    )

# %% [markdown]
# From {{default_share:.2f}} to {{share_last:.2f}} the pool grows by {{last_grows:.0%}}, and {{last_left_gib:.2f}} GiB are left. CUDA graphs alone were found to take up to {{graphs_gib:g}} GiB.
# The first long batch then ends in `CUDA out of memory`, and this one *is* an error: it takes the engine down with
# everybody in it. Two engines on one card have the same problem. In vLLM's V0 (the default before {{v1}}) the second one
# counts the first one's memory as its own, so a share of {{share_second:g}} is less than nothing:

# %%
first = 68 * GIB  # in use by another process on an 80 GB card
print("a second engine, where the first one's memory counts as its own:")
for share in (0.20, 0.95):
    usable = share * card_memory.CARDS["H100"] - first
    print(
        f"gpu_memory_utilization {share:.2f}: {usable / GIB:+.1f} GiB for weights and all else"
    )

# %% [markdown]
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
# from the rules:

# %%
per_rank = 2 * 94 * 1 * 128 * 2  # Qwen3-235B on four ranks: 94 layers, 4 KV heads of 128
more = (367_404 - 178_880) * per_rank
print(f"{per_rank:,} B a token and card; {more / GIB:.1f} GiB more of each card,")
print(f"of which {(0.93 - 0.90) * 79.18:.1f} GiB are the larger share;")
print("the rest is activation, which SGLang leaves outside of the share")

# %% [markdown]
# **What to read next**
#
# - Kwon et al., *Efficient Memory Management for Large Language Model Serving with PagedAttention*, SOSP 2023,
#   arXiv:2309.06180: blocks, block tables, preemption.
# - Ainslie et al., *GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints*, EMNLP 2023,
#   arXiv:2305.13245; Shazeer, *Fast Transformer Decoding: One Write-Head is All You Need*, 2019, arXiv:1911.02150.
# - DeepSeek-AI, *DeepSeek-V2*, 2024, arXiv:2405.04434: latent attention.
