# %% [markdown]
# # Lab 13, deeper: Speculative batching

# %%
from course.lessons import lab13

# %% [markdown]
# ## The question
#
# In lab 13 drafts paid where they were accepted often and the batch was small. **How often is often enough, where does a free draft get
# its acceptance, and what does a step do with drafts?** This notebook is optional; nothing in it is asked elsewhere.
#
# ## Where they tie
#
# Four drafts of each kind, and the acceptance below which they lose.

# %%
lab13.ties()

# %% [markdown]
# Alone even a rarely accepted draft pays. With {{half}} sequences the 1B model needs {{deep_tie_model:.2f}}: its passes cost time whether or not
# they are right. And in the largest batch a draft **that costs nothing** needs {{deep_tie_free:.2f}}: five rows are computed where one was, and by then the
# step computes and no longer waits for memory. An engine that counts acceptance can know this while it runs.
#
# ## Many answers seen
#
# Suffix decoding looks up what followed the same words before. What it finds depends on how much it has seen. Here are texts of the same
# kinds as the small model's prompts, none of them asked twice.

# %%
lab13.answers_seen()

# %% [markdown]
# From {{deep_seen_from}} to {{deep_seen_to:,}} answers the acceptance doubles, and each further tenth takes several times as many. Alone the last row gains
# {{deep_free_seen:.1f}} times without a second model. Traffic that repeats itself (code that is edited, documents that are quoted) does far better
# than questions like these; traffic that never does gets the first row.
#
# ## Stretch: verify by hand
#
# `known` are the tokens so far, `drafts` the drafted ones. `after(tokens)` runs one pass of the model and returns a list: its own choice after
# each of `tokens`. Return the tokens that leave this step: the drafts up to the first wrong one, and the model's own token in its place or
# behind them. One pass is enough. The drafts come from suffixes of few answers, so most are wrong.


# %%
def step(known, drafts, after):
    tokens = None
    ### BEGIN SOLUTION
    said = after(known + drafts)[len(known) - 1 :]
    right = 0
    while right < len(drafts) and drafts[right] == said[right]:
        right += 1
    tokens = [*drafts[:right], said[right]]
    ### END SOLUTION
    return tokens


# %%
lab13.your_verification(step)

# %% [markdown]
# The words are the model's own whoever drafts, since each token that leaves is one that the model chose: a bad draft costs time, never
# words. That holds for greedy decoding. Where tokens are drawn, a draft is accepted with a probability, and what is drawn in its place comes
# from what the draft left over, so that the distribution stays the model's.
