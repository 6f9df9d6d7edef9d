# %% [markdown]
# # Lab 10, deeper: Prefix caching

# %%
from course.lessons import lab10

# %% [markdown]
# ## The question
#
# In lab 10 all prompts began alike, or a chat came back. **Whose turn is it when prompts begin in many ways, and on which of several
# cards?** This notebook is optional; nothing in it is asked elsewhere.
#
# ## Sixty documents
#
# Each prompt is one of {{docs}} documents of {{pages:,}} tokens and a short question, {{docs_rate:g}} requests/s, some documents more popular than others. The pool holds
# {{docs_fit}} of them. The same questions in three orders:

# %%
lab10.sixty_documents()

# %% [markdown]
# In order of arrival the pool is turned over before a document comes up again. **Longest prefix first** (SGLang's `lpm`) takes
# those together that ask about the same one: over five seeds {{lpf_hits}} of the prompt tokens are found in place of {{fcfs_hits}}, and the mean TTFT is
# {{lpf_ttft}} s, not {{fcfs_ttft}} s. Nothing else has changed; prompts that are not computed are the whole gain.
#
# Does it starve the questions about rare documents? They wait {{lpf_ratio}} times as long as those about the {{docs_popular}} popular ones. But they wait far
# less than before, {{lpf_rare}} s on average. Who would be worse off is a document that nobody else asks about, as long as others come.
#
# The usual medicine is **ageing**: who has waited {{ageing:g}} s goes first. Here it takes nearly all of the gain away, {{aged_ttft}} s. Once the queue is longer
# than that everybody is old, the order is that of arrival again, and the queue stays long, since hits are gone. A limit on waiting
# must lie well above the waits of a good day.
#
# ## Four cards
#
# {{tenants}} tenants with a system prompt of {{tenant_prompt:,}} tokens each, {{fleet_rate:g}} requests/s, {{replicas}} replicas. A pool holds {{tenants_fit}} of the prompts.

# %%
lab10.four_replicas()

# %% [markdown]
# Sent around in turn, each replica sees all tenants and finds {{robin_hits}}. Sent to where the same beginning was sent before, each sees a
# quarter of them, which fits: {{prefix_hits}} in each of five seeds. **A router that looks at prefixes is worth more than pools
# {{replicas}} times as large**, which find {{large_hits:.0%}}: there each card computes each prompt once. It need not know what the pools hold: this one remembers what it sent where, and passes over a replica that
# has far more to do than the others, or one popular prompt would fill a single card.
#
# ## Agents that fork
#
# An agent thinks once ({{fork_system:,}} tokens of system prompt, {{fork_text}} of its own, an answer of {{fork_answer}}), then {{fork_branches}} branches go on from there at the same time.

# %%
lab10.one_agent()

# %% [markdown]
# The branches find {{fork_found:.0%}} of their prompts, the answer of the first request included, and up to {{fork_spared:,}} blocks are spared because
# they hold them together. Several samples of one prompt, and the beams of a search, are the same case: copies of one beginning.
#
# ## Who may share
#
# - A block's key is made of its tokens, the key before it, and what else changes K and V: with an **adapter** (LoRA) its name is part of
#   the key, so two adapters never share, though their tokens are equal; with an image, the image's hash.
# - Whoever can measure TTFT can tell whether somebody else has sent the same beginning. A request's **`cache_salt`** goes into the key of its first
#   block: only requests with the same salt share.
# - A salt for each of {{salted}} tenants costs lab 10's traffic ({{light:g}} requests/s, one system prompt) {{salt_points:.0f}} points of its hit rate, and {{salt_times:.1f}} times the blocks
#   at most: the prompt is kept {{salted}} times.
#
# **Read next**
#
# - Zheng et al., *SGLang*, NeurIPS 2024, arXiv:2312.07104: a tree of prefixes, and longest prefix first.
# - Srivatsa et al., *Preble*, arXiv:2407.00023: routing by prefix against balance.
# - vLLM's documentation, "Automatic Prefix Caching": keys, salts, the queue of free blocks.
