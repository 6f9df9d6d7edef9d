# %% [markdown]
# # Lab 14: Parallelism and cost

# %%
from course.exercises import Lab
from course.lessons import lab14

lab = Lab("14")

# %%
lab.earlier()

# %% [markdown]
# ## The question
#
# You have four H200s and one model, Llama-3.1-8B. One colleague starts four **replicas**, an engine on each card, behind a router.
# Another wants `--tensor-parallel-size 4`: **tensor parallelism** gives each card a share of every layer. The notes say: keep it small for
# interactive use.
#
# After attention and after the MLP each card has only a part of the sum, so two **all-reduces** a layer add the parts up.
# One layer:

# %%
lab14.one_layer()

# %% [markdown]
# **Four replicas, two pairs, or one four?**
#
# ## Predict

# %%
lab.predict("step")

# %%
lab.predict("layout")

# %% [markdown]
# ## Explore
#
# ### A step on several cards
#
# Each sequence attends to 1,000 tokens. **Symmetric memory** lets a kernel read the other card's numbers, as engines' own all-reduces do. *Stays* is
# what does not shrink.

# %%
lab14.step_on_cards()

# %% [markdown]
# ### Four cards
#
# A chat, with prompts of 1,024 and answers of 256 tokens on average. A TTFT of {{ttft_s:g}} s is promised. 1,024 slots and 8,192 tokens a step are
# vLLM's defaults. Requests go to the engines one after the other.

# %%
lab14.four_cards()

# %% [markdown]
# ## Measure
#
# Our small model computes here in two halves, one after the other: half of the heads and of the MLP each. Their sum is the all-reduce.

# %% tags=["nbval-ignore-output"]
lab14.two_halves()

# %% [markdown]
# A step has {{small_sums}} sums of {{small_bytes:,}} bytes, and the words are the same. Here a sum takes hardly any time; between two H200s
# {{sum_us:.1f}} µs, however few the bytes. There PyTorch's layer of the 8B took {{layer_one:.0f}} µs on one card, {{layer_half:.0f}} in halves, {{layer_sums:.0f}} with its sums, and {{layer_nccl:.0f}} with NCCL's.
#
# A good place for a break.
#
# ## Explain
#
# By hand: a step takes 8 ms, of which 1 ms stays. On two cards it is 1 + 7 / 2 = 4.5 ms, and 64 all-reduces of 0.01 ms make {{example:.2f}} ms.
#
# $$ t_p = t_0 + \frac{t - t_0}{p} + 2 L a $$
#
# To look up: the bytes of an all-reduce of $b$ rows, and dollars for a million tokens.
#
# $$ n = 2 \, b \, h \qquad \text{cost} = \frac{p \, d}{3600} \cdot \frac{t_p}{b} \cdot 10^6 $$
#
# | symbol | meaning | here, one user on two cards |
# |---|---|---|
# | $t$, $t_p$ | a step on one card, on $p$ | {{step_1:.2f}}, {{step_2:.2f}} ms |
# | $t_0$ | what does not shrink: small kernels, their beginnings and ends | {{t0_ms:.2f}} ms |
# | $L$, $h$ | layers, numbers a token | {{layers}}, {{hidden:,}} |
# | $a$ | one all-reduce | {{sum_us:.1f}} µs; NCCL {{sum_nccl_us:.1f}} |
# | $n$ | its bytes | 8 KiB; {{size_64_kib:.0f}} with 64 users |
# | $d$ | dollars an hour of a card, **assumed** | {{price:g}}: {{cost_1:.2f}} a million tokens on one; {{cost_1_64:.2f}} with 64 users |
#
# **The same step is shorter on more cards, and each token dearer**, by $p$ over the speed-up, which is {{gain_2:.1f}} on two cards for one user, {{gain_64:.1f}} with 64. A layer of a 70B model
# gains {{gain_70b:.1f}} (measured): it reads more between two sums.
#
# **One engine holds everybody.** At 100 requests/s one four has {{together_four:.0f}} sequences in a step, a replica {{together_replica:.0f}}, and all
# prompts: more than four times the batch, in a step that shrinks by less than four. With few requests, shares help everybody.
#
# **Power**: one card makes {{joule_alone:.1f}} tokens a joule for one user, {{joule_1:.1f}} for 256, where two make {{joule_2:.1f}} (measured).
#
# **How sure is this?** Layers, halves and sums on two cards are measured; steps on two are modelled from them, on four and eight
# extrapolated.

# %% [markdown]
# ## Exercises
#
# **Worked example.** Two cards at 3.6 dollars an hour make 1,000 tokens/s together: 7.2 / 3,600 = 0.002 dollars a second, and 2 dollars for a million tokens.
#
# **1.** A step takes `t` ms on one card; `t0` ms of it stay, and an all-reduce takes `a` ms. What do a million tokens cost on `cards` cards, one
# included, of `price` dollars an hour each? Write the step first. A 70B (if it fitted) with {{shared_t:g}}, {{shared_t0:g}}, {{shared_cards}} cards, {{shared_layers}} layers and {{shared_a:g}}
# takes {{shared_step:.1f}} ms; a batch of {{shared_batch}} at {{shared_price:g}} dollars makes {{shared_cost:.2f}} dollars.


# %%
def cost(t, t0, cards, layers, a, batch, price):
    ### BEGIN SOLUTION
    step = t0 + (t - t0) / cards
    if cards > 1:
        step += 2 * layers * a
    return cards * price / 3600 * step / 1000 / batch * 1e6
    ### END SOLUTION


# %%
lab.check("cost", cost)

# %% [markdown]
# **2.** Route to the least loaded engine: `waiting` and `running` have a count for each. One that waits counts like {{route_weight}} that run, as in
# vLLM. Return its place in the lists, of equals the first.


# %%
def route(waiting, running):
    ### BEGIN SOLUTION
    loads = [4 * queue + active for queue, active in zip(waiting, running, strict=True)]
    return loads.index(min(loads))
    ### END SOLUTION


# %%
lab.check("route", route)

# %%
lab14.at_work(route)

# %% [markdown]
# ## Break it

# %%
lab14.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. A share of every layer makes a step shorter by less than the number of cards: something stays, and sums come on top.
# 2. Each token is then dearer, by the cards over the speed-up.
# 3. Few requests and a tight promise want **shares**; many requests want **replicas**.

# %%
lab.recap("step")

# %%
lab.recap("layout")

# %% [markdown]
# **Decide.** The chat of "Four cards" runs on four H200s, one engine on each. 30 requests/s come, and you now promise a p95 of TPOT of {{decision_goal_ms:g}} ms. As
# an engine started, it wrote (our ledger's numbers, vLLM's words):

# %%
print(lab14.log())

# %% [markdown]
# The engines always fill the four cards. Choose a flag, and give the smallest value that keeps the promise. What would change your mind?

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# A load that grows to 100 requests/s would, and cards without NVLink.
decision = {"--tensor-parallel-size": 2}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Next:** Shoeybi et al., *Megatron-LM*; vLLM, *Parallelism and scaling*; lab 18.
