# %% [markdown]
# # Lab 00: How a language model answers

# %%
from textwrap import fill

from course import lm
from course.exercises import Lab
from course.lessons import lab00
from course.lessons.lab00 import machines

lab = Lab("00")

# %% [markdown]
# ## A model speaks
#
# A small language model tells you a story, on your machine. Run the cell, then put another animal and another thing in:

# %%
model = lm.load()
story = "Tell a short sad story about Mia, a fox. It happens in the garden, and there is a red kite."
print(fill(model.answer(story), 88))

# %% [markdown]
# How did it do that, and what does it cost when many people ask at once? This primer says so in two parts of
# {{part_minutes}} minutes. You may stop after the first. (Have you served language models before? Then try the
# [six questions](#Six-questions) at the end. With five right, take the next lab.)
#
# ## Part 1: How a model answers
#
# A language model reads text as **tokens**: words or pieces of words, each with a number. It does one thing. Given some
# tokens, it computes which token comes next. It makes an answer by doing that again and again.
#
# Below, the model of {{weights_millions:.1f}} million weights (the numbers that it learned) answers again. Choose a question,
# click on the *Step* slider, and press the right arrow key. A dot in a token is a space; filled tokens have been
# computed. `[user]` and `[model]` are tokens too, which say who speaks, and `[end]` ends an answer.

# %%
lab00.one_answer()

# %% [markdown]
# What you saw has names:
#
# - A **sequence** is a prompt, here a question, with its answer so far. A **step** is one pass through the model; it
#   brings each sequence in it one token.
# - The first step is the **prefill**. It computes all tokens of the prompt at once, and brings the first token of the
#   answer.
# - Each later step is a **decode**. It computes the newest token alone, and brings the next one.
# - The **KV cache** keeps what the model has computed for each token (its keys and values), so that no step computes it
#   again. It grows by {{kv_here:,}} bytes a token here, and by {{kv_h100:,}} with Llama-3.1-8B, a model of {{billions}} billion weights.
#
# So an answer of $N$ tokens takes one prefill and $N - 1$ decodes. With Llama-3.1-8B on an H100, a GPU for data
# centres, the prefill of 512 tokens takes {{prefill_ms:.1f}} ms and a decode {{decode_ms:.2f}} ms. (An engine adds some host work.)

# %%
lab.predict("sixteen")

# %% [markdown]
# A step may hold several sequences. That does not change a word of any answer:

# %%
questions = ["Spell hedgehog.", "What is 17 plus 25?", "Count from 3 to 9."]
together = model.answers(questions)
assert together == [model.answer(question) for question in questions]
together

# %% [markdown]
# It does change the time. One task comes with the next figure; it is judged once the slider stops moving.

# %%
lab00.a_step_together()

# %% [markdown]
# **Why.** In each step the machine reads all weights of the model from memory, and multiplies them with the numbers of
# every token in the step. It reads them once, for one sequence or for sixteen. On the H100 reading takes {{reading_ms:.2f}} ms, and
# multiplying {{multiply_ms:.2f}} ms for each sequence: fifteen more hardly show. A CPU multiplies slowly compared with how fast it
# reads, so there multiplying soon takes longer than reading. Where this was written, a step for sixteen took about four
# times as long as a step for one. That is still far less than sixteen steps.
#
# ### Check 1
#
# A prompt has 512 tokens and its answer 21. With the times above, how many **seconds** pass from the start of the
# prefill to the last token of the answer, if no other request is there?

# %%
seconds = None
### BEGIN SOLUTION
seconds = 0.0134 + (21 - 1) * 0.00504
### END SOLUTION

# %%
lab.check("answer", seconds)

# %%
lab.recap("sixteen")

# %% [markdown]
# ## Part 2: Reading a serving graph
#
# Requests come to a server at a **rate**, in requests a second. They do not come evenly. The **CV** (coefficient of
# variation) of the gaps between them says how unevenly: 0 is as even as a clock, 1 is what comes about when people ask
# independently of each other, and more than 1 means bursts.
#
# **TTFT**, the time to first token, is how long somebody waits from the request to the first token. A **percentile** is
# a value that a given share of people stays within: a p99 of {{tail_s}} s means that all but one in a hundred wait {{tail_s}} s at most. The p50 is the
# **median**: half wait less, half longer.

# %%
lab.predict("mean")

# %% [markdown]
# Here a step holds {{slots}} requests at most. That is a choice of this primer: {{engine}} takes up to {{default_slots:,}} on this card.

# %%
lab00.requests_and_waits()

# %% [markdown]
# **Log axes.** On a log axis equal distances are equal ratios: from {{tick_a}} to {{tick_b}} ms is as far as from {{tick_b}} ms to 1 s. It
# shows short and long waits in one picture. What looks twice as far is not twice as much: read the ticks.
#
# ### Check 2
#
# At 12 requests a second and a CV of 1 the p99 of TTFT is {{check_p99_ms:.0f}} ms. How many people wait longer than that in **one
# hour**?

# %%
people = None
### BEGIN SOLUTION
people = 12 * 3600 / 100
### END SOLUTION

# %%
lab.check("people", people)

# %%
lab.recap("mean")

# %% [markdown]
# ### Bandwidth against FLOPs
#
# **Bandwidth** is how many bytes a machine reads from memory in a second. A **FLOP** is one floating-point operation; a
# step needs two for each weight and sequence. The H100's column comes from measurements on such a card; yours is
# measured now.

# %% tags=["nbval-ignore-output"]
h100, here = machines.h100(), machines.here()
assert here.sequences < h100.sequences
machines.side_by_side([h100, here])

# %% [markdown]
# With fewer sequences than in the last row, a step takes as long as reading does, and one more sequence is nearly free:
# the step is **bound by memory**. With more it is **bound by compute**, and each sequence adds the time of its
# products. Curves of throughput bend there: first steep, then flat.
#
# ### Badges
#
# The **badge** beside a title says where its numbers come from. Do not compare numbers under two badges as if they were
# of one kind.
#
# | badge | the numbers come from |
# |---|---|
# | recorded | the clock of a real card, earlier |
# | simulated on recorded steps | a simulator that takes those times for its steps |
# | measured | the clock of your machine, just now |
# | modelled | a model of a card: bytes by bandwidth, FLOPs by peak |
# | theory | a formula |
#
# ### How to use a lab
#
# - Commit to each prediction before you move anything.
# - Solve the tasks of a figure in order. After two misses "Show me" moves the controls.
# - A wrong answer brings a hint. After three, `lab.solution("people")` shows the solution; "people" is the name of the
#   exercise.
# - What you do is kept. Stop anywhere; after a restart, choose *Run > Run All Cells*.
#
# ## Six questions
#
# The start page says which lab comes next.

# %%
lab.quiz()
