# %% [markdown]
# # Lab 18: The capstone

# %%
from course.exercises import Lab
from course.lessons import lab18
from course.lessons.lab18 import Design

lab = Lab("18")

# %% [markdown]
# ## The question

# %%
lab.earlier()

# %% [markdown]
# You run Llama-3.1-8B for six assistants and for people who read documents. **Which cards, how many, and under which
# flags?** There are two promises and a price list (under Measure). One day was recorded for you: {{requests}} requests in
# {{seconds:.0f}} seconds, with
# bursts. Your design will serve other days.
#
# Its **score**: requests within their promise for a dollar, and 0 if a class has less than {{need:.0%}} of its
# requests within.
# You are advised to score {{runs}} designs on that day, no more. They are counted while the kernel runs, a repeated one as well.

# %%
lab18.promises()

# %% [markdown]
# ## Predict

# %%
lab.predict("cards")

# %%
lab.predict("other")

# %% [markdown]
# ## Explore
#
# Both explorers show the day before; it is not scored. Curves: how many requests are within so many times their
# promise.
#
# ### How many of which card?
#
# {{vllm}}'s defaults on an H100, here for all cards: 1,024 slots, 8,192 tokens a step. An engine has one card.

# %%
lab18.how_many_cards()

# %% [markdown]
# ### Which flags?
#
# Two H100 with four drafts a step and fp8 KV. A **router** in front of the engines decides who serves a request: in
# turn
# (`round_robin`), where its prefix was computed before (`cache_aware`), or documents and chats `apart`.

# %%
lab18.which_flags()

# %% [markdown]
# ## Measure
#
# No button here launches two H100: a fleet is not at hand. What stands behind the explorers was recorded on one H100
# and
# one H200; all else is modelled, and prices and the acceptance of drafts are assumed. `course serve` and `course bench` measure an engine that
# you have.

# %%
lab18.where_from()

# %% [markdown]
# ## Explain
#
# **By hand.** {{hand_cards}} cards at {{hand_price:.2f}} dollars an hour; the last answer ends after {{hand_s}} seconds:
# {{hand_cents:.1f}} cents. {{hand_kept}} requests within their promise give a score of
# {{hand_score:,.0f}}.
#
# $$ \text{score} = \frac{\text{requests within their promise}}{\text{cards} \times \text{price} \times \text{hours}} $$
#
# | symbol | unit | by hand |
# |---|---|---|
# | requests within | - | {{hand_kept}} |
# | cards | - | {{hand_cards}} |
# | price | dollars an hour | {{hand_price:.2f}} |
# | hours | h | {{hand_s}} / 3,600 |
#
# Cards are paid until the last answer ends, so slow ones pay longer for the same day.
# More cards divide it. A better flag lets fewer cards do. What is within its promise is a share and hardly moves, until
# it falls off an edge: below {{need:.0%}} of one class the score is 0. **Headroom** is how much busier a day may be
# before that.
# Three designs, on the seen day and on busier ones:

# %%
lab18.other_days()

# %% [markdown]
# - **Tuned on one day**: five L40S, one of them for documents, {{tuned_seen:,.0f}}. {{tuned_chat:.0%}} of the chats and
#   {{tuned_docs:.0%}} of the documents were in time: that day shows no danger. It holds on {{tuned_held}} of {{days}} busier days,
#   a mean of {{tuned_mean:,.0f}}. The day before would have shown it: {{tuned_before:.0%}} of the documents.
# - **With headroom**: two H100 that serve both, {{reference_seen:,.0f}} with {{reference_chat:.0%}} of the chats. It holds on
#   {{reference_held}} of them, a mean of {{reference_mean:,.0f}}.
# - **{{vllm}}'s defaults**: {{default_cards}} H100, {{defaults_seen:,.0f}}. They hold on {{defaults_held}}, a mean of {{defaults_mean:,.0f}} requests.
#
# Whoever picks the highest of many scores on one day also picks what was luck on that day. So find what limits,
# change that
# one flag, and stop while both classes have room. The [playbook](../docs/playbook.md) has the order: promises,
# memory, cards,
# batch, prompts, cache, drafts, and then days that you have not seen.
#
# | what limits | what helps here |
# |---|---|
# | TPOT | fewer in a step, drafts, fp8 KV, a card with more bandwidth |
# | TTFT of all | prefix cache, routing, more engines |
# | TTFT behind long prompts | a cap for one prompt |
# | price | what is left over: fewer cards |

# %% [markdown]
# ## Exercises
#
# **Worked example.** 95 of 100 chats and 19 of 20 documents on one card for 36 s at 3.50 dollars an hour: both have
# 95%,
# so 114 / (3.5 x 36 / 3,600) = 3,257.
#
# **1.** Write the score. `kept` and `asked` are {class: requests}, `price` is dollars an hour of one card.


# %%
def score(kept, asked, cards, price, seconds):
    result = None
    ### BEGIN SOLUTION
    enough = min(kept[name] / asked[name] for name in asked) >= 0.95
    result = sum(kept.values()) / (cards * price * seconds / 3_600) if enough else 0
    ### END SOLUTION
    return result


# %%
lab.check("score", score)

# %% [markdown]
# **2.** Write a design that keeps both promises on the seen day and scores {{margin}} times what the defaults do. Its
# flags:
# `card` (H100, H200, A100, L40S), `replicas`, `tensor_parallel_size`, `max_num_seqs`, `max_num_batched_tokens`,
# `long_prefill_token_threshold`, `enable_prefix_caching`, `routing`, `kv_cache_dtype`, `num_speculative_tokens`.

# %%
design = None  # Design(card="H100", replicas=3)
### BEGIN SOLUTION
design = Design(
    replicas=2, max_num_seqs=256, max_num_batched_tokens=2_048, long_prefill_token_threshold=512,
    routing="cache_aware", kv_cache_dtype="fp8", num_speculative_tokens=4,
)  # fmt: skip
### END SOLUTION

# %%
lab18.scored(design)

# %%
lab.check("design", design)

# %% [markdown]
# **3.** A stretch, a policy of your own. vLLM has no flag for it. `waiting` lists (arrival, seconds promised, prompt
# tokens); return its places in the order of
# admission. Those who can still make it come first, first due first; those who are too late come last. A prompt takes
# its tokens / {{speed:,}} seconds. On one H200, too little for the day, it takes
# chats in time from {{order_before:.0%}} to {{order_after:.0%}}; documents pay, {{order_docs:.0%}}.


# %%
def order(waiting, now):
    places = None

    ### BEGIN SOLUTION
    def key(place):
        arrival, promised, prompt = waiting[place]
        due = arrival + promised
        return now + prompt / 20_000 > due, due

    places = sorted(range(len(waiting)), key=key)
    ### END SOLUTION
    return places


# %%
lab.check("order", order)

# %%
lab18.at_work(order)

# %% [markdown]
# ## Break it

# %%
lab18.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. A promise is an edge: a design is cheap up to it, and worth nothing behind it.
# 2. Find what limits, then change the flag that moves it.
# 3. Choose on one day, judge on others.

# %%
lab.recap("cards")

# %%
lab.recap("other")

# %% [markdown]
# **Decide.** Hand in the design that is to serve {{few_days}} busier days, which are drawn now. It may fail on one of
# them, and must
# earn {{margin}} times what the defaults earn on the seen day. (Twelve designs drawn at random, the best one taken,
# earn less than
# a thought-out one by a factor of {{chance}} and more in nine of ten tries: `make capstone-check`.) The report keeps the
# design for whoever teaches: `course progress --export` has its flags, and `course class` serves them again.

# %%
decision = None  # a Design
### BEGIN SOLUTION
decision = design
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab18.report(decision)

# %%
lab.quiz()

# %% [markdown]
# **Read next:** the [playbook](../docs/playbook.md), each of its rows with the lab and a command that shows it.
