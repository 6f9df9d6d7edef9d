# %% [markdown]
# # Lab 09: Paged KV

# %%
from course.exercises import Lab
from course.lessons import lab09

lab = Lab("09")

# %% [markdown]
# ## The question

# %%
lab.earlier()

# %% [markdown]
# A newsletter goes out, and 1,000 questions reach your Llama-3.1-8B on an H200 at once: prompts of {{prompt_mean:.0f}} tokens on
# average, answers of {{answer_mean:.0f}}, CV near 1. Slots (1,024) and token budget (8,192) are the engine's own. The pool is a tenth
# of what that card has, so that it binds. Its log:

# %%
print(lab09.start_up_log())

# %% [markdown]
# With **paging** a request takes a block of 16 tokens when it needs one, wherever one is free, until there is none left. **What
# happens then, and what do you change?**
#
# ## Predict

# %%
lab.predict("lost")

# %%
lab.predict("pages")

# %% [markdown]
# ## Explore
#
# **Contiguous reservation** gives each request one piece: for the longest there may be, or for its answer, if somebody knew
# its length.

# %%
lab09.reserved_or_paged()

# %% [markdown]
# ### Whom to send away?
#
# Out of blocks, somebody has to give way: the **victim**.

# %%
lab09.whom_to_send_away()

# %% [markdown]
# vLLM sends away whoever was admitted last, and **recomputes** what is lost. A **watermark** (vLLM 0.33) leaves a share of
# blocks free when somebody joins. **Offloading** copies blocks to the host and back; vLLM's first engine could, with victims.

# %%
lab09.out_of_blocks()

# %% [markdown]
# A good place for a break.
#
# ## Measure
#
# A **block table** says where the blocks of a sequence lie. Attention of one layer, launched on your machine, and **recorded** on an
# H200. On a CPU, NumPy copies scattered blocks together first.

# %%
lab09.blocks_together_or_scattered()

# %% [markdown]
# ## Explain
#
# Memory for {{hand_places}} tokens; A holds {{hand_a}}, B {{hand_b}}, C {{hand_c}}.

# %%
lab09.three_requests()

# %% [markdown]
# With {{hand_piece}} tokens reserved for each, {{hand_empty}} places of two pieces are empty, and C waits: **internal fragmentation**. In
# blocks of {{hand_block}} all three hold {{hand_blocks_empty}} empty places, and eight more are free. Pieces of unlike lengths also leave holes
# that nobody fits in: **external fragmentation**. Blocks of one size have none.
#
# **To remember**: on average half of the last block is empty. **To look up**: from which bandwidth on copying is faster.
#
# $$ \text{empty} = (s - 1)/2 \qquad B = 2\,k\,R $$
#
# | symbol | meaning | here | simulated |
# |---|---|---|---|
# | $s$ | tokens of a block | 16 | |
# | empty | of each sequence, tokens | {{half_block}} | |
# | | of all that is taken | {{waste_formula:.1%}} | {{waste_simulated:.1%}} |
# | $k$ | KV bytes of a token | {{a_token:,}} | |
# | $R$ | prompt tokens/s | {{prefill_alone:,.0f}} | |
# | $B$ | bandwidth | {{even:.1f}} GB/s | {{even_below:g}} to {{even_above:g}} GB/s |
#
# Recomputing rides along with decodes, which read the weights anyway: beside a batch it costs the time of {{beside:,.0f}} tokens/s. So
# copying must beat {{even_beside:.0f}} GB/s there, and {{again:.0%}} more tokens cost only {{slower:.0%}}. Prefix caching, on by default in
# vLLM, finds {{found_again:.0%}} of them again: {{speed_on:,.0f}} tokens/s instead of {{speed:,.0f}}.
#
# **Who gives way?** Whoever has computed least: {{few_lost:,}} preemptions instead of {{lost:,}}, and fewer tokens lost. **When to let
# in?** A watermark of 0.05 leaves {{mark_lost}} preemptions, and {{mark_speed:,.0f}} tokens/s.

# %% [markdown]
# ## Exercises
#
# **Worked example.** {{worked}} tokens in blocks of 16 take 32 + 112 + 48 = {{worked_taken}} places: {{worked_taken}} - {{worked_sum}} = {{worked_empty}} are empty. Reserved
# at {{piece}} each, {{worked_reserved}} are. A token of {{example_bytes:,}} bytes, {{example_rate:,}} prompt tokens/s: copying wins from {{example:.1f}} GB/s on.
#
# **1.** Sequences of {{held}} tokens, blocks of 16. How many places are empty?

# %%
answer = None
### BEGIN SOLUTION
answer = (48 - 37) + (80 - 70) + (16 - 3)
### END SOLUTION
lab.check("waste", answer)

# %% [markdown]
# **2.** This model ({{a_token:,}} bytes a token), {{prefill:,}} prompt tokens/s: from which bandwidth [GB/s] on is copying a victim out and back
# faster than computing it again, if nothing else runs?

# %%
answer = None
### BEGIN SOLUTION
answer = 2 * 131_072 * 40_000 / 1e9
### END SOLUTION
lab.check("crossover", answer)

# %% [markdown]
# **3.** `computed` has the tokens that each running request has computed, in order of admission. Return the place (from 0) of the
# victim: whoever has computed least, of equal ones the last, and never the place `spared`.


# %%
def victim(computed, spared):
    """The place of the request that gives way."""
    ### BEGIN SOLUTION
    place = None
    for other in range(len(computed)):
        if other != spared and (place is None or computed[other] <= computed[place]):
            place = other
    return place
    ### END SOLUTION


lab.check("victim", victim)

# %%
lab09.at_work(victim)

# %% [markdown]
# ## Break it

# %%
lab09.ticket_graph()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. Blocks waste half a block each: {{times_running:.1f}} times as many run as with pieces for the longest, at {{times_speed:.1f}} times the tokens/s.
# 2. What is computed again costs less than it seems. Readers feel the stops.
# 3. A watermark ends most preemptions. Fewer slots end the stops.

# %%
lab.recap("lost")

# %%
lab.recap("pages")

# %% [markdown]
# **Decide.** Such an evening after {{moment:.0f}} s, simulated, as vLLM's page:

# %%
print(lab09.page_of_the_evening())

# %%
lab09.draws()

# %% [markdown]
# No answer may stop for more than {{promise}} s. Choose `--max-num-seqs` or `--watermark`, and the value of the table with the
# most tokens/s.

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# Requests that come one by one would change my mind: then fewer begin with their prompts alone, and a watermark is enough.
decision = {"--max-num-seqs": 80}
### END SOLUTION
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Read next:** Kwon et al., *PagedAttention*.
