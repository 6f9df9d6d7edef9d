# %% [markdown]
# # Lab 14, deeper: Parallelism and cost

# %%
from course.lessons import lab14

# %% [markdown]
# ## The question
#
# Lab 14 cut a model into shares of each layer. Two other cuts are on offer: **by phase**, prompts on some cards and answers on others, and
# **by layer**, a pipeline. **When is each of them worth it?** This notebook is optional; nothing in it is asked elsewhere.
#
# ## Prompts and answers apart
#
# A step that computes a prompt is long, and every answer in it waits. Chunks make these waits short and many. On cards of their own
# (`P` for prefill, `D` for decode) answers never wait for a prompt. This is called disaggregation. It has two prices: a card cannot help the
# other side, and K and V travel over a link, {{apart_kib:.0f}} KiB a token.
#
# Documents of {{apart_prompt:,}} tokens on average get answers of {{apart_answer}}; a TTFT of {{ttft_s:g}} s is promised. "4 mixed" computes at most {{apart_chunk}}
# tokens of a prompt in a step of at most {{apart_budget:,}}.

# %%
lab14.prefill_and_decode()

# %% [markdown]
# **Try it** before you read on. At {{apart_busy}} requests/s, which layout holds most with a TPOT of {{apart_tight:g}} ms, and which with {{apart_loose:g}} ms? What is
# the slowest link that does no harm?
#
# With {{apart_tight:g}} ms `3P1D` holds {{apart_3_tight:.0%}} and mixed cards {{apart_mixed_tight:.0%}}; with {{apart_loose:g}} ms {{apart_3_loose:.0%}} and
# {{apart_mixed_loose:.0%}}. `1P3D` holds {{apart_1_tight:.0%}} with either: one card computes {{apart_prompts:.1f}} such prompts a second, and its queue grows without end.
#
# That was one draw on one card. The least and the most over five draws:

# %%
lab14.five_draws()

# %% [markdown]
# The H100 reads more slowly, so an answer that waits for nobody is nearer to {{apart_tight:g}} ms, and there `2P2D` is ahead. **A tight promise wants the phases
# apart. A loose one is held by mixed cards as well, and those have no ratio that could be wrong.** So it is with a quarter and with twice the
# slots.
#
# ### The link
#
# Two H100s compute prompts, two answer, {{apart_link_rate}} requests/s come.

# %%
lab14.links()

# %% [markdown]
# A request waits for its K and V between the first token and the second; TPOT spreads that over the answer. Our transfers do not
# share the link, and none starts before its prompt is complete. Engines send layer by layer, while the prompt is still computed.
#
# ## How many cards for prompts?
#
# A card computes so many prompts a second, one after the other. It completes so many answers a second, with the largest batch whose step
# is as long as promised: batch / (TPOT x tokens). Both sides must keep up.
#
# **A stretch.** Write the ratio from these two rates: how many of the cards compute prompts, so that both sides together keep up with the most
# requests/s? Each side has one card at least; of equals take the fewest.


# %%
def prefill_cards(prompts, answers, cards):
    ### BEGIN SOLUTION
    best, most = 1, 0.0
    for count in range(1, cards):
        both = min(count * prompts, (cards - count) * answers)
        if both > most:
            best, most = count, both
    return best
    ### END SOLUTION


# %%
lab14.split_at_work(prefill_cards)

# %% [markdown]
# Three loads on four H200s, TPOT {{apart_tight:g}} ms. The ratio from the rates is the best of the three each time, and another one can be useless. When the mix of
# requests moves by day, so does the ratio.
#
# ## By layer: a pipeline
#
# Each card holds some of the layers, a **stage**. A token passes all stages, so a step of one user is no shorter. Several micro-batches
# keep all stages at work. With $p$ stages, $m$ micro-batches and $v$ pieces of each stage in turn (interleaved), a stage idles for a
# share of
#
# $$ \frac{p - 1}{p - 1 + v\,m} $$
#
# of a round. With {{bubble_stages}} stages that is {{bubble_few:.0%}} for {{bubble_few_batches}} micro-batches and {{bubble_many:.0%}} for {{bubble_many_batches}}; with {{bubble_few_batches}} and two pieces of each stage {{bubble_pieces:.0%}}. An engine that always has
# decodes begins the next round before this one ends, and has no such bubble. The table assumes that.

# %%
lab14.stages()

# %% [markdown]
# For one user two stages take {{stage_pp_1:.1f}} ms, as one card does, and shares of two {{stage_tp_1:.1f}}. With {{stage_some}} sequences it is {{stage_pp_some:.1f}} and {{stage_tp_some:.1f}} ms, with
# {{stage_many}} {{stage_pp_many:.1f}} and {{stage_tp_many:.1f}}: a full pipeline is nearly as fast. It sends one activation a stage, where shares add up twice a layer. So
# **shares go inside a host, stages between hosts**.
#
# | also cut | what it does |
# |---|---|
# | sequence parallel | an all-reduce is a reduce-scatter and an all-gather. Between them each card does norms and residuals for its share of the rows. The bytes sent are the same; the activations take $1/p$ of the memory |
# | a draft model | it is small, so its own sums would take most of its step. Put all of it on each card, or on one, and share only the target |
# | overlap | an all-reduce runs beside the products of other rows, which then take longer. It pays for long prompts, and hardly for decodes |
# | rendezvous of replicas | replicas of a dense model share no step, and nobody waits. With experts spread over replicas (MoE) all must step together |
#
# None of these four was measured here.
#
# ## What two cards took
#
# Decodes of {{measured_context:,}} tokens each, and in the last column one prompt.

# %%
lab14.speed_ups()

# %% [markdown]
# A 70B reads more between two sums than an 8B, so it gains more from shares. A prompt gains as much as a large batch; its sums are
# longer, too.
#
# ## Tokens a joule

# %%
lab14.power()

# %% [markdown]
# A step of one user makes {{joule_step_1:.1f}} tokens a joule, one of {{stage_many}} users {{joule_step_256:.0f}}. (`course profile` reads the watts, over half a second for each step;
# neighbours differ by up to a sixth.) Two cards spend more for each token, whatever the batch: {{joule_more_1:.0%}} more for one user, {{joule_more_256:.0%}} for {{stage_many}}. What a card draws
# for one user, {{watts_one:.0f}} of its {{watts_limit:.0f}} W, is mostly for reading weights, and a batch shares that.
#
# **Read next**
#
# - Zhong et al., *DistServe*, OSDI 2024, and Patel et al., *Splitwise*, ISCA 2024: prompts and answers apart.
# - Narayanan et al., *Efficient Large-Scale Language Model Training on GPU Clusters*, SC 2021: interleaved stages.
# - Korthikanti et al., *Reducing Activation Recomputation*, MLSys 2023: sequence parallel.
