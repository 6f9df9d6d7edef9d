# %% [markdown]
# # Lab 97: One small engine

# %%
from course.exercises import Lab
from tests.data import lab97

lab = Lab(lab97.SPEC)

# %%
lab.earlier()

# %% [markdown]
# ## The question
#
# A step of this engine takes 10 ms and {{each_ms}} ms for each sequence. It has 8 slots, and 6 requests/s come, each
# with an answer of 50 tokens. **What do more slots give?**

# %%
lab97.engine()

# %% [markdown]
# ## Predict

# %%
lab.predict("doubling")

# %%
lab.predict("each")

# %% [markdown]
# ## Explore

# %%
lab97.room()

# %%
lab97.line()

# %% [markdown]
# ## Measure
#
# Nothing is launched here: a toy has no device.
#
# ## Explain
#
# A full batch of 8 takes {{step}} ms, and brings {{tokens:.0f}} tokens/s.
#
# ## Exercises
#
# **Worked example.** One slot: a step takes 10 + 1 = 11 ms.
#
# **1.** How many tokens/s do 8 slots bring?

# %%
answer = None
### BEGIN SOLUTION
answer = 8 / 0.018
### END SOLUTION

# %%
lab.check("rate", answer)

# %% [markdown]
# **2.** How many slots do 6 requests/s need?

# %%
answer = None
### BEGIN SOLUTION
answer = next(n for n in range(1, 99) if n / (0.010 + 0.001 * n) >= 6 * 50)
### END SOLUTION

# %%
lab.check("slots", answer)

# %% [markdown]
# **3.** Write the requests/s of an engine.


# %%
def capacity(tokens_per_s, answer):
    ### BEGIN SOLUTION
    return tokens_per_s / answer
    ### END SOLUTION


# %%
lab.check("capacity", capacity)

# %% [markdown]
# ## Break it

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# More slots share the fixed part, and each answer takes longer.

# %%
lab.recap("doubling")

# %%
lab.recap("each")

# %%
lab.quiz()
