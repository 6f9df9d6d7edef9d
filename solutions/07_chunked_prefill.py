# %% [markdown]
# # Lab 07: Chunked prefill

# %%
from course.exercises import Lab
from course.lessons import lab07

lab = Lab("07")

# %% [markdown]
# ## The question

# %%
lab.earlier()

# %% [markdown]
# Llama-3.1-8B streams chats on one H200. Eight arrive each second, with 200 tokens in and about 300 out; once a
# minute a class of {{class}} asks at once. Every 20 seconds somebody pastes a contract of 32,768 tokens; at times three.
# The **token budget**, the most tokens that a step may compute, was raised from {{vllm}}'s 8,192 to 65,536. Now
# **the text stops for a second or two**, yet the p99 of the gaps is {{p99_ms:.0f}} ms. (64 slots, of {{engines_slots:,}} by
# default, suffice; vLLM refuses smaller budgets.)

# %%
lab07.people_and_dashboard()

# %% [markdown]
# - **ITL**, inter-token latency: the gap between two tokens.
# - **Stall**: a gap that a reader notices, here above 100 ms.
# - **Chunk**: what one step computes of a prompt.

# %% [markdown]
# ## Predict

# %%
lab.predict("p99")

# %%
lab.predict("newcomers")

# %% [markdown]
# ## Explore
#
# ### Hand out tokens

# %%
lab07.hand_out_tokens()

# %% [markdown]
# ### One long prompt
#
# The **cap for one prompt** is the most tokens of it in a step.

# %%
lab07.one_long_prompt()

# %% [markdown]
# ### What a percentile hides

# %%
lab07.what_a_percentile_hides()

# %% [markdown]
# ## Measure
#
# Four stories, and a long prompt. Play, halve the budget, play again. This is **measured**; beside it is a
# contract, **simulated** on an H200's recorded steps with {{on_the_card}} times the budget.

# %%
lab07.words_that_stop()

# %% [markdown]
# In vLLM a chat stops too, while two prompts of over {{vllm_over}} tokens are read.

# %%
lab07.vllm_stops()

# %% [markdown]
# ## Explain
#
# Chats A and B stream. A prompt of {{hand_prompt}} tokens arrives, and {{hand_later:.0f}} ms later a new chat with {{hand_new}}. A step takes 1 ms a token,
# {{hand_least:.0f}} ms at least.

# %%
lab07.four_by_hand()

# %% [markdown]
# - **Head-of-line blocking**: the [prompt in front](#see:a-chunk-of-a-long-prompt) stops A and B for {{hand_stop:.0f}} ms.
# - With a budget of {{hand_budget}} the longest gap is {{hand_gap:.0f}} ms, but the new chat [waits](#see:waiting) for the last chunk.
#
# Decodes first, then
#
# $$ \text{chunk} = \min(\text{cap},\ \text{budget} - \text{decodes}), \qquad
# \text{steps} = \lceil \text{prompt} / \text{chunk} \rceil $$
#
# | symbol | unit | by hand | first explorer |
# |---|---|---|---|
# | budget | tokens a step | {{hand_budget}} | 512 |
# | decodes | tokens a step | {{hand_decodes}} | 12 |
# | chunk | tokens | {{hand_chunk}} | {{chunk_of_512}} |
# | prompt | tokens | 12 | 32,768 |
# | steps | | {{hand_steps}} | {{chunks}} |
#
# A budget of 512 makes the contract's TTFT {{longer_512:.0%}} longer: each step reads the weights. Below some {{floor}} tokens a step is hardly shorter.

# %% [markdown]
# ## Exercises
#
# **Worked example.** 12 chats, a budget of 512: a chunk has 512 - 12 = 500 tokens, a prompt of 2,000 takes
# 2,000 / 500 = 4 steps.
#
# **1.** {{steps_decodes}} chats, the same budget, a prompt of {{steps_prompt:,}} tokens. How many steps?

# %%
answer = None
### BEGIN SOLUTION
answer = 21  # 10_000 / 480 is 20.8
### END SOLUTION

# %%
lab.check("steps", answer)

# %% [markdown]
# A contract's last step beside {{beside}} decodes with {{beside_tokens}} tokens each, in ms (recorded):

# %%
chunk = 512  # tokens, behind all others of the prompt
last = lab07.Step(32, 32 * 700, ((chunk, 32_768 - chunk),))
round(lab07.STEP(last) * 1e3, 1)

# %% [markdown]
# **2.** What is the largest chunk, a multiple of 64, that keeps it within {{limit_ms:.0f}} ms?

# %%
answer = None
### BEGIN SOLUTION
answer = 320
### END SOLUTION

# %%
lab.check("chunk", answer)

# %% [markdown]
# **3.** Write the rule. `decoding` lists requests, `prompts` is {request: tokens left}, oldest first.
# Return {request: tokens in the next step}, without zeros. `share([1, 3], {5: 40, 6: 7, 7: 30}, 12, 5)` is {1: 1, 3: 1,
# 5: 5, 6: 5}.


# %%
def share(decoding, prompts, budget, cap):
    tokens = None
    ### BEGIN SOLUTION
    tokens = dict.fromkeys(decoding, 1)
    for request, left in prompts.items():
        chunk = min(left, cap, budget - sum(tokens.values()))
        if chunk > 0:
            tokens[request] = chunk
    ### END SOLUTION
    return tokens


# %%
lab.check("share", share)

# %%
lab07.at_work(share)

# %% [markdown]
# ## Break it

# %%
lab07.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. Everybody in a step waits for all of it: the budget bounds the longest gap.
# 2. The cap leaves room for those who arrive.
# 3. A p99 over tokens hides a stall: count people.

# %%
lab.recap("p99")

# %%
lab.recap("newcomers")

# %% [markdown]
# **Decide.** The budget is {{budget_now:,}}. You promise gaps of at most {{gap_promised_ms:.0f}} ms, also when contracts meet,
# and a p99 TTFT of chats below {{first_ms:.0f}} ms:

# %%
lab07.metrics_page()

# %% [markdown]
# Choose `--max-num-batched-tokens` (budget), `--long-prefill-token-threshold` (cap) or `--max-num-seqs` (slots), and a
# value that keeps both in the second explorer.

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# A cap of 256 keeps both as well, but contracts begin later. Eight contracts at once would fill the budget again.
decision = {"--long-prefill-token-threshold": 512}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()

# %% [markdown]
# **Read next:** *Sarathi-Serve*, OSDI 2024.
