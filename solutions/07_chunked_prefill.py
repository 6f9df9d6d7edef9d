# %% [markdown]
# # Lab 07: Chunked prefill

# %%
from textwrap import fill

import numpy as np
from course import Workload, gpu, policies, serve, traces
from course.exercises import Lab
from course.explore import Choice, Explorer, Slider
from course.lessons.lab07 import figures as draw
from course.lessons.lab07 import long_prompt, prefill, prompt_chunks
from course.lessons.lab07.chunk_explorer import chunk_explorer, token_kernel
from course.lessons.lab07.long_prompt import DEFAULT, PROMPT, STEP, THEORY, WHOLE
from course.steptime import Step

lab = Lab("07")

# %% [markdown]
# ## The question
#
# A chat assistant streams its answers: Llama-3.1-8B on one H100, continuous batching with 64 slots. Eight chats arrive
# each second, with 200 tokens in and about 300 out, and while they stream a token comes every 5.3 ms. Last week a
# customer began to paste whole contracts into the window: a prompt of 32,768 tokens, once in 20 seconds. For them the
# token budget of a step was raised to 65,536, so that any prompt runs in one. Since then people complain that **the
# text stops for nearly two seconds, in the middle of a sentence**.
#
# You look at the dashboard. The p99 of the time between two tokens is 10 ms. It says that nothing is wrong.

# %%
load = long_prompt.requests()
today = long_prompt.outcome(load, long_prompt.engine(max_num_batched_tokens=WHOLE))
gap, ttft = today.itl, today.chat_ttft
middle, p99, longest = (gap[name] * 1e3 for name in ("p50", "p99", "max"))
print(f"gap between tokens: median {middle:.1f} ms, p99 {p99:.1f} ms, longest {longest:.0f} ms")
print(f"chats whose text stopped for over 100 ms: {today.stalled(0.1):.1%}")
print(f"TTFT of a chat: median {ttft['p50'] * 1e3:.0f} ms, p99 {ttft['p99'] * 1e3:.0f} ms")
print(f"TTFT of a long prompt: {today.long_ttft * 1e3:.0f} ms")
before = long_prompt.outcome(load, long_prompt.engine(max_num_batched_tokens=DEFAULT))
print(f"longest gap with a budget of {DEFAULT:,}: {before.itl['max'] * 1e3:.0f} ms")

# %% [markdown]
# The words, once:
#
# - A **step** is one forward pass. Whoever decodes gets one token a step, so everybody in a step waits for all of it.
#   **Prefill** computes a prompt, **decode** one further token of an answer.
# - The **token budget** is the most tokens that one step may compute, prompts and decodes together
#   (`max_num_batched_tokens`). A prompt that does not fit what is left of it runs in **chunks**, one a step.
# - **TTFT** is the time to the first token. **ITL** is the gap between two tokens of one answer. A **stall** is a gap
#   that a reader notices, here one above 100 ms.
# - **Head-of-line blocking**: everybody waits because the one in front takes long.
#
# A budget of 65,536 is no engine's default. `vllm serve` 0.19 takes 8,192 on this card, and then a prompt of 32,768
# runs in four chunks and a rest. The largest setting is here to show what chunks are for.
#
# Runs of this lab use *recorded* step times: those of an H100 with the course's own kernels, without scheduling,
# sampling or HTTP. *Theory* is a roofline of that card: what a step must read and compute, at the rates that kernels
# of a kind reach. *Measured* numbers come from the machine you sit at.

# %% [markdown]
# ## Predict
#
# Commit to an answer before you see one. Your answers are kept, and the lab comes back to them at the end.

# %%
lab.predict("p99")

# %%
lab.predict("newcomers")

# %%
lab.predict("long")

# %% [markdown]
# ## Explore
#
# ### One long prompt, step by step
#
# Some chats stream. At time 0 a long prompt arrives, and just after it three short ones. Each tick is a token that
# somebody gets; the shaded part is the longest time that a streaming chat went without one.
#
# 1. The budget holds any prompt at first. Lower it to 2,048, then to 512. What happens to the ticks, to the end of the
#    orange bar, and to the newcomers?
# 2. Why do the ticks move apart towards the end of the long prompt?
# 3. Set the budget to 2,048 and the cap to 512. Who gains, and who pays?
# 4. Go down to 128. What did that buy?

# %%
budget = Slider(
    "max_num_batched_tokens", "Token budget", 128, WHOLE, 2, WHOLE, "tokens", log=True
)
caps = [("none", 0), ("1,024 tokens", 1024), ("512 tokens", 512), ("256 tokens", 256)]
cap = Choice("long_prefill_token_threshold", "Cap for one prompt", caps, 0)

moment_explorer = Explorer(
    long_prompt.moment,
    controls=[
        budget,
        cap,
        Slider("prompt", "Long prompt", 4_096, PROMPT, 2, PROMPT, "tokens", log=True),
        Slider("streaming", "Chats that stream", 4, 32, 4, 12),
    ],
    figure=draw.moment,
    summary=long_prompt.moment_rows,
    title="One long prompt among streaming chats",
    badge=STEP.badge,
)
moment_explorer

# %% [markdown]
# ### The trade
#
# Now 1,600 chats and a long prompt every 20 s. Left are those who wait for a first token, right those who wait for the
# next one. The lines are all budgets; the marks are where the sliders stand.
#
# 1. Walk the budget down from 64k. What falls, and what does not? Where does p99 have its peak?
# 2. Below which budget does everything on the left get worse? (Hint: in theory, reading all weights once takes as
#    long as computing some 280 tokens.)
# 3. Set the cap to 512. Which line moves most? From which budget on, and why not below it?

# %%
long_prompt.compute_lines()  # the lines behind the marks, once
sizes = [(f"{size:,} tokens", size) for size in long_prompt.PROMPTS]
trade_explorer = Explorer(
    long_prompt.trade,
    controls=[budget, cap, Choice("prompt", "Long prompt", sizes, PROMPT)],
    figure=draw.trade,
    summary=long_prompt.trade_rows,
    title="Who waits, over the token budget",
    badge=STEP.badge,
)
trade_explorer

# %% [markdown]
# ### What a percentile hides
#
# The same gaps, counted in two ways: how many *tokens* came after a gap longer than that, and how many *chats* had one
# in their answer. A p99 is read where a line crosses 1%.
#
# 1. At the start one chat in eleven stops for nearly two seconds. Where is the p99 over tokens, and where the p99
#    over chats?
# 2. Make the long prompts more frequent. How often must they come until the p99 over tokens sees them?
# 3. Back to 20 s, and lower the budget to 512. Both lines moved; which p99 tells what a reader feels?

# %%
hidden_explorer = Explorer(
    long_prompt.hidden,
    controls=[
        budget,
        cap,
        Slider("every", "A long prompt every", 2, 60, 1, 20, "s"),
        Slider("limit_ms", "A stall is a gap above", 10, 1_000, 10, 100, "ms"),
    ],
    figure=draw.hidden,
    summary=long_prompt.hidden_rows,
    title="Gaps, by tokens and by chats",
    badge=STEP.badge,
)
hidden_explorer

# %% [markdown]
# ## Measure
#
# ### A long step makes everybody wait
#
# The policy object of the lab can drive real launches: `serve` accepts any callable that takes a step and returns its
# seconds. Here a step is one launch of the course's toy kernel with a block for each token, on the best device that
# this machine has: a GPU, or one CPU core. It has no attention and no weights; what it shares with a model is that more
# tokens take longer. Eight chats stream 40 tokens each, and a prompt of 4,096 tokens arrives in the middle.
#
# Badge: **measured** on the device named below. The numbers of steps are the same everywhere, the seconds are yours.

# %% tags=["nbval-ignore-output"]
device = gpu.device()
live = gpu.LiveStep(token_kernel(device, most=4_096 + 64))
small = Workload(
    arrival=[0] * 8 + [1e-9],
    prompt_tokens=[8] * 8 + [4_096],
    output_tokens=[40] * 8 + [4],
)
print(fill(device.badge, 90))
print("budget   chunks   median with one   decodes alone   longest gap of a chat")
with_chunk = {}
for size in (8_192, 512):
    engine = policies.Continuous(max_num_seqs=16, max_num_batched_tokens=size)
    run = serve(small, engine, lambda step: live(step.decodes + step.prefill_tokens))
    seconds, prefill_tokens = run.steps.seconds[1:], run.steps.prefill_tokens[1:]
    with_chunk[size] = seconds[prefill_tokens > 0]
    alone = np.median(seconds[prefill_tokens == 0])
    median, gap = np.median(with_chunk[size]), np.diff(run.token_times(0)).max()
    times = f"{median * 1e3:12.3f} ms {alone * 1e3:12.3f} ms {gap * 1e3:12.3f} ms"
    print(f"{size:6,d} {len(with_chunk[size]):11d} {times}")
    assert len(with_chunk[size]) == -(-4_096 // min(size - 8, 4_096))
assert np.median(with_chunk[8_192]) > 2 * np.median(with_chunk[512]), "more tokens take longer"

# %% [markdown]
# ### The same on a real model
#
# The slider launches. Below: a prompt of 8,192 tokens of the toy kernel, in chunks, on your device, each step timed.
# Above: the steps of all 32 layers of Llama-3.1-8B for a prompt of 32,768 tokens, with 32 decodes in each step,
# **recorded** on an H100 (random weights, the course's own kernels, one CUDA graph a step). They are different work
# on different machines, and each has its own clock.
#
# 1. Halve the chunk from 8,192 on. Up to which size are the halves half as long?
# 2. The recorded steps grow along the prompt, yours do not. What is missing in the toy?

# %%
chunk_explorer()

# %% [markdown]
# What does theory say of the same steps? On the left one step, at the beginning and at the end of the prompt; on the
# right the whole prompt, from chunks of 64 to all of it in one step. Dots are recorded, dashes theory.

# %%
sizes = prompt_chunks.CHUNKS
prefill.by_chunk(STEP, THEORY, PROMPT, sizes)

# %%
plain = Step(32, 32 * 1_024, ())
print(STEP.badge)
print(
    f"decodes alone: recorded {STEP(plain) * 1e3:.1f} ms, theory {THEORY(plain) * 1e3:.1f} ms"
)
print("                longest step          32,768 tokens")
print(" chunk  steps   recorded    theory     recorded    theory")
for chunk in sizes:
    took, theory = (prompt_chunks.seconds_of_steps(PROMPT, chunk, t) for t in (STEP, THEORY))
    longest = f"{took.max() * 1e3:7.1f} ms {theory.max() * 1e3:6.1f} ms"
    print(f"{chunk:6,d} {len(took):6d} {longest} {took.sum():10.2f} s {theory.sum():7.2f} s")

# %% [markdown]
# What is recorded takes 1.04 to 2.6 times as long as theory says: decodes alone are near it, the last chunks of a long
# prompt are not, since these kernels compute attention at a third of the rate of a large matrix product. The shape is
# right, and theory errs to one side: **small chunks cost more than it says**. Against chunks of 8,192, chunks of 512
# take 33% longer where theory says 14%, and chunks of 256 take 46% longer where it says 30%. One step for all 32,768
# tokens gains only 3%: beyond a few thousand tokens larger chunks buy nothing.
#
# Do the conclusions of this lab depend on the card's kernels? The same 1,600 chats and the same policies, first on
# theory, then on the recording:

# %%
settings = ((8_192, 0), (2_048, 0), (512, 0), (256, 0), (128, 0), (2_048, 512))


def table(step_time, settings):
    print("budget    cap  " + "".join(f"{head:>15s}" for head in long_prompt.HEADS))
    for size, cap in settings:
        found = long_prompt.outcome(load, long_prompt.engine(size, cap), step_time)
        name = f"{size:6,d} {cap or '-':>6}  "
        print(name + "".join(f"{cell:>15s}" for cell in long_prompt.row(found)))


print("theory:", THEORY)
table(THEORY, settings)
print("\n" + STEP.badge)
table(STEP, settings)

# %% [markdown]
# They do not: without a cap the p99 over tokens is worst at 512 in both, the longest gap follows the budget, a smaller
# budget makes newcomers wait longer, and the cap is what helps them. Two things differ. Small budgets cost more on the
# card: at 256 the long prompt waits 34% longer than at 8,192, in theory 12%. And real steps are longer, so that 2,048
# breaks a promise of 100 ms, which 1,024 keeps.

# %% [markdown]
# ## Explain
#
# ### What a step with a chunk costs, in theory
#
# $$ t = t_0 + \max\!\left(\frac{W}{B},\ p\,(b + c)\right) + \frac{m\,K}{B}
# + \max\!\left(q\,P,\ \frac{m\,(k + c)}{B}\right), \qquad P = c\,k + \frac{c\,(c + 1)}{2} $$
#
# | symbol | meaning | here |
# |---|---|---|
# | $t_0$ | launching the kernels of a step [s] | 0.28 ms |
# | $W / B$ | bytes of all weights over the bandwidth: reading them once [s] | 4.97 ms |
# | $p$ | matrix products of one token [s], a little more for a decode | 17.9 µs |
# | $b,\ c$ | decodes and prompt tokens in the step [tokens] | |
# | $k$ | tokens of that prompt already in the cache [tokens] | 0 to 32,768 - c |
# | $m$ | bytes of K and V of one token | 131,072 |
# | $K$ | tokens that the decodes attend to, all together | |
# | $P,\ q$ | query-key pairs of the chunk, and the time of one [s] | q = 0.67 ns |
#
# The products of some 280 tokens take as long as reading the weights. Below that a step is paid for in full and holds
# less; above it a step takes as long as its tokens. The pairs are what makes the last step of a long prompt longer than
# the first.

# %%
knee = THEORY.weights / THEORY.per_token
print(f"tokens whose products take as long as reading the weights: {knee:.0f}")
print("prompt   matrix products   attention   attention / products")
for tokens in (2_048, 8_192, 32_768, 131_072):
    products = THEORY.per_token * tokens
    attention = THEORY.per_pair * tokens * (tokens + 1) / 2
    share = attention / products
    print(f"{tokens:7,d} {products:14.3f} s {attention:9.3f} s {share:13.0%}")

# %% [markdown]
# ### Chunks do not add pairs, they add readings
#
# However a prompt is cut, each of its tokens attends once to all before it, so the pairs are the same. What grows with
# the number of chunks: the weights are read again, and the K and V of all earlier chunks too. And kernels want to be
# large: on the recorded card a pair takes longer in chunks of 512 and below.

# %%
print("                                          one pair")
print("chunk    pairs   weights read  K, V read    theory  recorded")
for chunk in (64, 256, 512, 2_048, 8_192):
    steps = prompt_chunks.chunk_steps(PROMPT, chunk)
    pairs = sum(step.prefill_pairs for step in steps)
    weights = len(steps) * THEORY.model.step_weight_bytes
    kv = sum(step.prefill_context for step in steps) * THEORY.model.kv_bytes_per_token
    one = prompt_chunks.seconds_a_pair(chunk)
    read = f"{weights / 1e9:9,.0f} GB {kv / 1e9:7,.0f} GB"
    took = f"{THEORY.per_pair * 1e12:6.0f} ps {one * 1e12:6.0f} ps"
    print(f"{chunk:5,d} {pairs / 1e6:6.1f} M {read} {took}")

# %% [markdown]
# ### The table that surprises
#
# The recorded card, more settings, 1,600 chats:

# %%
capped = ((2_048, 1_024), (2_048, 512), (2_048, 256))
table(
    STEP,
    ((WHOLE, 0), (8_192, 0), (2_048, 0), (1_024, 0), (512, 0), (256, 0), (128, 0), *capped),
)

# %% [markdown]
# - **The longest gap is the longest step**, and follows the budget. The p99 over tokens does not: without a cap it is
#   *worst* at 512. Why? Count the gaps. A long prompt finds some 15 chats streaming. One step of 1.7 s makes 15 long
#   gaps, 64 steps of 36 ms make 64 times as many. Of the 48,000 tokens of 20 s the first are 0.03%, the second 2%.
# - **How many chats stall?** Those that stream when the long prompt comes. By Little's law (lab 03) that is their rate
#   times the time they stream, out of rate times 20 s: the time they stream over 20 s.
# - **The newcomers** wait for the last chunk whatever the budget is, since the long prompt came before them and takes
#   all that the decodes leave. A smaller budget makes them wait *longer*. Only the cap leaves room for them.
# - **The cap has its price.** The long prompt pays: 2,313 ms with a cap of 512 instead of 1,866 ms, 1,896 ms with one
#   of 1,024. And so does the p99 of the gaps, which goes from 10 to 45 ms: the chunks are small and many, as with a
#   small budget, and they share their steps with the prompts of newcomers. Nobody stalls all the same.

# %%
streaming = (today.run.e2e - today.run.ttft)[today.chats].mean()
every, rate = long_prompt.EVERY, long_prompt.CHAT_RATE
print(
    f"a chat streams for {streaming:.2f} s, so {streaming / every:.1%} of them are caught",
    end="",
)
print(f" (simulated: {today.stalled():.1%})")
tokens, caught = rate * every * long_prompt.CHAT_ANSWER, rate * streaming
for name, gaps in (("in one step", caught), ("in 64 steps", 64 * caught)):
    share = gaps / tokens
    print(f"{name}: {gaps:3.0f} long gaps among {tokens:,.0f} tokens in 20 s, {share:.2%}")

# %% [markdown]
# ### Smaller is not safer: what the budget does to throughput
#
# All requests of the Azure-style trace at once, and how many tokens a second the card computes, prompts and answers
# together. There is a best budget: a step that holds both reads the weights once for both, and wastes nothing when its
# tokens are as many as one reading is worth. Below that everybody pays.

# %%
trace, saturated = traces.read(traces.example()), prompt_chunks.saturated_tokens_per_second
print("budget   tokens/s:   theory  recorded")
for size in (8_192, 2_048, 1_024, 512, 256, 128):
    engine = long_prompt.engine(size)
    theory, recorded = (saturated(trace, engine, times) for times in (THEORY, STEP))
    print(f"{size:6,d} {theory:19,.0f} {recorded:9,.0f}")

# %% [markdown]
# ### Without a monster: the trace
#
# Nobody pastes 32,768 tokens in this trace (synthetic, with the statistics of the conversation trace that Azure
# published in 2023). Its longest prompt has 7,651. Even so, one request in seven has more than 2,048 tokens, and these
# hold 40% of all prompt tokens. At 8 requests a second:

# %%
long = trace.prompt_tokens > 2_048
share = trace.prompt_tokens[long].sum() / trace.prompt_tokens.sum()
print(f"prompts above 2,048 tokens: {long.mean():.1%} of all, {share:.0%} of the tokens")
print("budget    cap   TTFT p99: long   short   ITL p99     max   answers that stop > 50 ms")
for size, cap in ((8_192, 0), (2_048, 0), (1_024, 0), (512, 0), (2_048, 512)):
    found = long_prompt.outcome(trace.scaled(8), long_prompt.engine(size, cap))
    waits = [np.percentile(found.run.ttft[group], 99) * 1e3 for group in (long, ~long)]
    times = [*waits, found.itl["p99"] * 1e3, found.itl["max"] * 1e3]
    stops = (found.gaps > 0.05).mean()
    print(f"{size:6,d} {cap or '-':>6} ", *(f"{ms:7.0f} ms" for ms in times), f"{stops:14.0%}")

# %% [markdown]
# Here nobody is a monster. But on that card a step with more than some 1,800 prompt tokens takes over 50 ms, and with
# a budget of 8,192 there are 1.4 of them each second: an answer that streams for 2.0 s meets three. A budget of 1,024
# ends it. The cap is no replacement: it holds for each prompt alone, and several fit into one step.
#
# ### Who goes first
#
# | system | what a step holds |
# |---|---|
# | Orca, 2022 | whole prompts and decodes together: a long prompt makes a long step |
# | vLLM before V1 | whole prompts *or* decodes, prompts first; chunked prefill was an option |
# | DeepSpeed-FastGen, 2023 | **Dynamic SplitFuse**: a fixed number of tokens, long prompts split, short ones packed |
# | Sarathi-Serve, 2024 | **stall-free**: all decodes, then chunks of running prompts, then new ones, up to a budget |
# | vLLM V1 (0.19) | those that run, in order of admission, up to budget and cap; then those that wait |
# | SGLang, default | chunks of prompts *or* decodes, prompts first; `--enable-mixed-chunk` puts both in a step |
#
# Mixing is the point, and not the chunks alone. `PrefillFirst` computes prompts in chunks, and decodes only when no
# prompt is left:

# %%
few = long_prompt.requests(num_chats=300)
orders = {
    "vLLM's order, budget 2,048": long_prompt.engine(2_048),
    "prompts first, chunks of 2,048": prompt_chunks.PrefillFirst(64, 2_048),
    "prompts first, chunks of 512": prompt_chunks.PrefillFirst(64, 512),
}
for name, order in orders.items():
    found = long_prompt.outcome(few, order)
    step, gap = found.run.steps.seconds.max(), found.itl["max"]
    print(f"{name:31s} longest step {step * 1e3:3.0f} ms, longest gap {gap * 1e3:5.0f} ms")

# %% [markdown]
# In vLLM's order a decode may stand behind a chunk in the list. Can it be left out when the budget is used up? No
# (without preemption): whoever runs was admitted into what those in front had left, and from then on those take less,
# not more. So no gap is longer than a step, which Exercise 4 shows in another way.
#
# ### What is often said
#
# Claims that you will meet, each next to a number. First: **"A prompt of 2,000 tokens in chunks of 512 takes four steps
# instead of one, so its TTFT is four times as long."** The steps are shorter.


# %%
def seconds_in_chunks(step_time, size, prompt=2_000):
    chunks = [((min(size, prompt - cached), cached),) for cached in range(0, prompt, size)]
    return sum(step_time(Step(0, 0, chunk)) for chunk in chunks)


for name, step_time in {"theory": THEORY, "recorded": STEP}.items():
    whole, cut = (seconds_in_chunks(step_time, size) for size in (2_000, 512))
    print(f"{name}: {cut / whole:.2f} times")

# %% [markdown]
# **"A prompt of 10,000 tokens takes 50 iterations."** It takes as many as the budget says. And **"chunks and decodes
# alternate, a step each"**: they share their steps.

# %%
print(
    "10,000 tokens:",
    ", ".join(f"{-(-10_000 // size)} steps of {size:,}" for size in (8_192, 2_048, 512)),
)
chunked = long_prompt.moment(512, 0, PROMPT, 12)
begins, ends = chunked.chunk_steps
inside = (chunked.run.steps.start >= begins[0]) & (chunked.run.steps.end <= ends[-1])
print(f"steps while the long prompt runs: {inside.sum()}, without a decode: ", end="")
print((chunked.run.steps.decodes[inside] == 0).sum(), end=", without a chunk: ")
print((chunked.run.steps.prefill_tokens[inside] == 0).sum())

# %% [markdown]
# **"Chunked prefill lowers TTFT, since the answer can begin early."** Never that of the prompt that is cut. And **"to
# give users a quick first token, do not chunk"**: right for that one prompt, wrong for everybody else.

# %%
whole = long_prompt.moment(WHOLE, 0, PROMPT, 12)
waits = whole.run.ttft[12], chunked.run.ttft[12]
print("the long prompt: whole {:.3f} s, in chunks of 512 {:.3f} s".format(*waits))
capped = long_prompt.outcome(load, long_prompt.engine(2_048, 512))
waits = ttft["p99"] * 1e3, capped.chat_ttft["p99"] * 1e3
print("chats, p99: whole {:.0f} ms, budget 2,048 with a cap of 512 {:.0f} ms".format(*waits))

# %% [markdown]
# **"For latency, keep prefill below 20% of the tokens of a step."** With 64 decodes that is a chunk of 16 tokens. And
# **"the scores of 10,000 tokens need 400 MB a head, so the prompt must be cut"**: only if somebody stored them. Kernels
# that work tile by tile never do.

# %%
halfway, many = STEP(Step(64, 64 * 700, ((16, PROMPT // 2),))), PROMPT // 16
print(f"chunks of 16: {many:,} steps, {many * halfway:.0f} s for the long prompt")
stored, tile = 10_000**2 * 4, 128 * 128 * 4
print(f"scores at 4 bytes: {stored / 1e6:.0f} MB; a tile of 128 x 128: {tile // 1024} KiB")

# %% [markdown]
# ## Exercises
#
# ### 1. The pairs of a chunk
#
# A prompt of 2,000 tokens runs in chunks of 512. How many query-key pairs does its **third** chunk compute? (Causal
# attention: a token attends to everything before it, and to itself.)

# %%
answer = None
### BEGIN SOLUTION
answer = 512 * 1024 + 512 * 513 // 2
### END SOLUTION

# %%
lab.check("pairs", answer)

# %% [markdown]
# ### 2. A prompt in chunks
#
# Write the time until a prompt is computed, alone on the card, in chunks. `step_time(Step(0, 0, ((tokens, cached),)))`
# gives the seconds of a step with one chunk: `tokens` prompt tokens, of a prompt that has `cached` tokens in the cache
# already. The prompt need not be a whole number of chunks.


# %%
def prefill_seconds(step_time, prompt, chunk):
    """Seconds of all steps of a prompt of `prompt` tokens in chunks of `chunk`."""
    ### BEGIN SOLUTION
    total = 0
    for cached in range(0, prompt, chunk):
        tokens = min(chunk, prompt - cached)
        total += step_time(Step(0, 0, ((tokens, cached),)))
    return total
    ### END SOLUTION


# %%
lab.check("ttft", prefill_seconds)

# %% [markdown]
# ### 3. The chunk that a limit allows
#
# You promise that no gap is longer than `limit` seconds while a prompt of `prompt` tokens is computed beside `decodes`
# chats, each with `context` tokens. Return the largest chunk, a multiple of 64, that keeps the promise. The longest
# step is the last one, in which the chunk attends to all the rest of the prompt; take it as a full chunk. As above,
# `Step(decodes, decode_context, ((tokens, cached),))`, with `decode_context` of all decodes together.


# %%
def largest_chunk(step_time, prompt, decodes, context, limit):
    """The largest multiple of 64 tokens whose last step takes at most `limit` seconds."""
    best = None
    ### BEGIN SOLUTION
    for chunk in range(64, prompt + 1, 64):
        last = Step(decodes, decodes * context, ((chunk, prompt - chunk),))
        if step_time(last) <= limit:
            best = chunk
    ### END SOLUTION
    return best


# %%
lab.check("chunk", largest_chunk)

# %%
chunk = largest_chunk(STEP, PROMPT, 32, 700, 0.050)
if chunk is not None:  # what the simulator says, with 28 chats and 3 newcomers
    before, after = long_prompt.moment(chunk + 32, chunk, PROMPT, 28).longest_gap
    print(f"chunk {chunk}, budget {chunk + 32}: longest gap {(after - before) * 1e3:.1f} ms")

# %% [markdown]
# ### 4. Share the step
#
# Write the order of Sarathi-Serve, with a cap. The engine calls your function before every step; it returns a
# dictionary: which request computes how many tokens.
#
# - Every running request that decodes gets its token first.
# - What is left of `state.max_num_batched_tokens` goes to prompts: those that run, in order, then waiting ones, as many
#   as there are free slots. Each gets at most `cap` tokens.
# - `state.running`, `state.waiting`: tuples of requests, first come first served. `state.max_num_seqs`: slots.
# - `request.remaining`: tokens to compute before the next one is emitted, 1 for a decode.
# - Leave out a request for which nothing is left; memory is not short.


# %%
def share(state, cap):
    tokens = None
    ### BEGIN SOLUTION
    tokens = {request: 1 for request in state.running if request.remaining == 1}
    left = state.max_num_batched_tokens - len(tokens)
    free = state.max_num_seqs - len(state.running)
    for request in (*state.running, *state.waiting[:free]):
        chunk = min(request.remaining, cap, left)
        if request not in tokens and chunk > 0:
            tokens[request] = chunk
            left -= chunk
    ### END SOLUTION
    return tokens


# %%
lab.check("share", share)

# %% [markdown]
# See your policy at work on the chats, beside the package's, which follows vLLM's order. (While your function is empty,
# the engine says so.)

# %%
few = long_prompt.requests(num_chats=150)
theirs = serve(few, long_prompt.engine(2_048, 512), STEP)
try:
    yours = policies.FromFunction(
        lambda state: share(state, 512), 64, max_num_batched_tokens=2_048
    )
    mine = serve(few, yours, STEP)
    gap = np.nanmax(long_prompt.longest_gaps(mine))
    print(
        f"yours: longest gap {gap * 1e3:.1f} ms; every answer when vLLM's order gives it:",
        end=" ",
    )
    print(np.array_equal(mine.response, theirs.response))
except ValueError as error:
    print(fill(str(error), 90))

# %% [markdown]
# ## Break it
#
# ### Chunking off
#
# Somebody turns chunking off, to give the customer with the contracts the quickest answer.

# %%
try:
    serve(load, policies.Continuous(64, 8_192, enable_chunked_prefill=False), STEP)
except ValueError as error:
    print(fill(str(error), 90))

# %% [markdown]
# Without chunks a step must hold any prompt, so engines refuse what does not fit (vLLM: at the start, if
# `max_model_len` is above the budget; then each longer prompt). With a budget that fits, the operator sees this: GPU
# utilisation at 100% as always, tokens/s with a notch of 1.7 s every 20 s, and tickets about "freezing".

# %%
off = serve(load, policies.Continuous(64, WHOLE, enable_chunked_prefill=False), STEP)
edges = 9.6 + np.arange(24) / 10
sent, _ = np.histogram(off.steps.end, edges, weights=off.steps.useful)
print("tokens sent in each tenth of a second from 9.6 s on (the long prompt comes at 10 s):")
print(" ".join(f"{count:.0f}" for count in sent))

# %% [markdown]
# ### A cap that is too small
#
# If 512 is good, 16 must be better.

# %%
print("cap    long TTFT   chat p99 TTFT   longest gap   steps of a long prompt")
for size in (512, 256, 128, 64, 16):
    found = long_prompt.outcome(load, long_prompt.engine(2_048, size))
    times = f"{found.long_ttft:10.1f} s {found.chat_ttft['p99'] * 1e3:12.0f} ms"
    print(f"{size:3d} {times} {found.itl['max'] * 1e3:10.1f} ms {PROMPT // size:14,d}")

# %% [markdown]
# Each step reads all weights, whether the long prompt gets 512 tokens of it or 16. Below some 280 a smaller cap only
# spares a step some attention, and the long prompt starves: 18 s to its first token. And the cap holds for every
# prompt: at 16 a short one of 200 tokens takes 13 steps as well.
#
# ### A budget below the decodes
#
# And if the budget is smaller than one token for each slot?

# %%
try:
    policies.Continuous(max_num_seqs=64, max_num_batched_tokens=32)
except ValueError as error:
    print(fill(str(error), 90))

# %% [markdown]
# Refused, here as in vLLM: some decodes would have to sit out. A budget barely above is allowed, and has a price too.
# With 22 chats a second and 72 tokens a step, the decodes leave too little for the prompts:

# %%
crowd = Workload.poisson(rate=22, num_requests=900, prompt_tokens=200, output_tokens=300)
for size in (72, 2_048):
    run = serve(crowd, long_prompt.engine(size), STEP)
    rate = run.workload.output_tokens.sum() / run.makespan
    p99 = np.percentile(run.ttft, 99)
    print(f"budget {size:5,d}: p99 TTFT {p99:5.2f} s, {rate:,.0f} tokens/s")

# %% [markdown]
# ## Take away
#
# 1. **Everybody in a step waits for all of it.** The budget bounds the step, and with it the longest gap; chunks help
#    only because they share their steps with decodes.
# 2. **A percentile over tokens does not see a stall, and gets worse when you repair it.** Watch the longest gap of each
#    request.
# 3. **The budget protects those who stream, the cap those who come.** Neither makes the long prompt quicker. A small
#    budget costs everybody tokens/s: on the recorded card below 512.
#
# What you predicted, beside what the lab showed:

# %%
lab.recap("p99")

# %%
lab.recap("newcomers")

# %%
lab.recap("long")

# %% [markdown]
# ### Quiz

# %%
lab.quiz()

# %% [markdown]
# ### In a real engine
#
# | here | engine | knob | default |
# |---|---|---|---|
# | token budget | vLLM 0.19 | `--max-num-batched-tokens` | `vllm serve`: 8,192 on an H100, 2,048 on an A100 |
# | cap for one prompt | vLLM 0.19 | `--long-prefill-token-threshold` | 0: none |
# | chunking at all | vLLM 0.19 | `--enable-chunked-prefill` | on |
# | prompts at a time | vLLM 0.19 | `--max-num-partial-prefills` | 1; V1 refuses to start with another |
# | long ones among them | vLLM 0.19 | `--max-long-partial-prefills` | the same; later versions dropped both |
# | chunk | SGLang 0.5 | `--chunked-prefill-size` | 8,192 on a card of 80 GB; -1 turns chunking off |
# | chunks beside decodes | SGLang 0.5 | `--enable-mixed-chunk` | off: prompts first, decodes wait |
# | chunking at all | TensorRT-LLM 1.x | `enable_chunked_prefill` | off; in Triton's config: `enable_chunked_context` |
# | token budget | TensorRT-LLM 1.x | `max_num_tokens` | 8,192 |
#
# The 1 in "prompts at a time" is not what V1 does: it admits as many as budget, slots and memory allow. Sarathi-Serve's
# paper takes a budget of 512 tokens for a strict limit on ITL and 2,048 for a relaxed one, after timing the card.
#
# vLLM exports ITL as a histogram over tokens, `vllm:inter_token_latency_seconds`: its p99 is the one that sees nothing.
# Its `_bucket` series above your limit do: any growth there is a stall that somebody read.
#
# **Read next**
#
# - Agrawal et al., *Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve*, OSDI 2024,
#   arXiv:2403.02310: stall-free batching, and how to choose the budget.
# - Holmes et al., *DeepSpeed-FastGen*, arXiv:2401.08671: Dynamic SplitFuse.
# - Agrawal et al., *SARATHI*, arXiv:2308.16369: the first chunked prefills, and what a chunk's attention costs.
# - Zhong et al., *DistServe*, OSDI 2024, arXiv:2401.09670: the other way out, prompts and decodes on different cards.
