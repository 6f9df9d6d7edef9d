# %% [markdown]
# # Lab 09, deeper: Paged KV

# %%
from course.lessons import lab09

# %% [markdown]
# ## The question
#
# In lab 09 blocks were best, and running out of them was the question. **How good can reserved pieces get, from which bandwidth on does
# a copy on the host pay, and who else wants the memory: sessions that pause, and other classes?** This notebook is optional;
# nothing in it is asked elsewhere. Steps, card and the thousand questions are the lab's.
#
# ## Pieces, as good as they get
#
# An engine that reserves contiguous pieces can round a guessed answer up to a **power of two**, put each piece into the first
# hole that holds it (**first fit**) or into the smallest (**best fit**, as in the rows without a word), and push pieces together
# when none does (**compaction**). The guesses are the true lengths, which no engine knows.

# %%
lab09.rivals()

# %% [markdown]
# First fit wears out large holes: {{deep_first_wins}} of {{deep_first_all}} draws lose by it, {{deep_first_high:.1%}} of the tokens/s at most. Even best fit leaves {{deep_holes:.0%}} of the pool in holes that nobody in the line fits into: **external fragmentation**. Compaction makes that {{deep_packed_holes:.0%}}.
# It reads and writes K and V within the card, {{deep_move_s:.1f}} s in a run of {{deep_whole_s:.0f}} s, and gains {{deep_packed_gain:.0%}}.
#
# It cannot touch the {{deep_inside:.0%}} that are empty **inside** pieces, the ends of answers that are still to come ({{deep_pow2_inside:.0%}} with powers of two). Blocks
# are {{deep_paged_gain:.0%}} faster than the best pieces, although they preempt and pieces never do. Compaction repairs the smaller of the two losses.
#
# ## What to watch
#
# The notes name four numbers: bytes of K and V in use, free pages, compaction debt (what is free and cannot be used), and the
# rate of evictions.

# %%
lab09.telemetry()

# %% [markdown]
# In pieces memory looks free, {{deep_free_tokens:,.0f}} tokens after {{deep_moment:.0f}} s, while requests wait. In blocks there is no debt, and shortage shows in
# preemptions: {{deep_paged_lost:.0f}} a second. vLLM exports `vllm:kv_cache_usage_perc` and `vllm:num_preemptions_total`; a full pool alone is no
# alarm, since that is what it is for.
#
# ## Copy or compute again?
#
# One request by itself: copying out and back beats computing again from {{deep_alone:.1f}} GB/s on. And in a full engine? Everybody is there from
# the start, so how long a copy takes changes no decision. The run's length is then a straight line over the seconds of a copy, and
# two runs give the **crossover**.

# %%
lab09.crossovers()

# %% [markdown]
# - The lab's questions need {{deep_chats}} GB/s in five draws: what they lose is computed beside decodes, which read the weights anyway.
# - Long prompts need {{deep_documents}} GB/s, about as one request by itself: a step that computes thousands of tokens is limited by
#   computing, whoever decodes in it.
#
# A link that is faster than that is worth using. But look at the third column first: what computing again costs in all. A
# watermark saves most of it without a copy.
#
# ## A watermark, draw by draw

# %%
lab09.watermarks()

# %% [markdown]
# {{deep_best:g}} is the best in each draw: {{deep_best_speed}} tokens/s instead of {{deep_none_speed}}. Below it newcomers take the blocks that those inside are about to
# need. Above it memory lies empty. But what readers feel is another column: with {{deep_best:g}} there are {{deep_best_lost}} preemptions, and somebody
# still stops for {{deep_best_gap}} s. Only {{deep_calm:g}} ends that, {{deep_calm_gap_ms}} ms, at {{deep_calm_speed}} tokens/s. `docs/calibration.md` has the same curve as
# vLLM's authors measured it.
#
# ## Sessions that pause
#
# Chats of {{deep_turns}} turns; between two turns somebody reads and types, {{deep_pause:.0f}} s on average. Whose memory is that meanwhile?

# %%
lab09.idle_sessions()

# %% [markdown]
# **Kept for sure**, by Little's law the histories of chats that pause are {{deep_idle:,.0f}} tokens on average, {{deep_idle_times:.0f}} times this pool: nobody new
# could begin. **Given back at once**, each turn computes all that was said. **Oldest evicted**, only when somebody needs the room: that is
# what prefix caching does (lab 10). Who comes back within {{deep_short:.0f}} s finds {{deep_found_short:.0%}}, who takes more than a minute {{deep_found_long:.0%}}. Running requests
# are never evicted for it; idle memory is free memory that may still be useful.
#
# ## One pool or several
#
# "Separate pools by type, class and page size", say the notes. Take questions and documents of which some come in bursts. In
# **one** pool documents hold up to {{deep_class_document}} of it in five draws, and at times nothing; questions up to {{deep_class_question}}. With half of the pool for each
# class documents would have to wait at {{deep_half}} of the moments looked at, while all would fit. A share for a class protects
# it, and costs what it does not use.
#
# - **By type**: an engine keeps K and V of a model in one type (`--kv-cache-dtype`), since attention is one launch for all.
# - **By page size**: one size for all, or blocks of one could not serve the other. Models whose layers differ have groups of
#   layers, each with a block table of its own (lab 08, deeper).
#
# ## Attention sinks
#
# Must all be kept? In a long text attention goes to the latest tokens and, whatever they say, to the very first: **attention
# sinks**. Drop those, and the model breaks. StreamingLLM keeps the first {{deep_sinks}} tokens and the latest {{deep_recent:,}}: {{deep_kept:,}} of a sequence of {{deep_sequence:,}}, so
# that {{deep_fit_kept}} of them fit into this pool and not {{deep_fit_all}}. The chat can go on for ever; what left the window is forgotten. It is no way to
# read a long document, and a model must be made or tuned for it.
#
# **Read next**
#
# - Kwon et al., *PagedAttention*, SOSP 2023, arXiv:2309.06180: pieces as they were, and swapping against
#   recomputing.
# - Xiao et al., *Efficient Streaming Language Models with Attention Sinks*, ICLR 2024, arXiv:2309.17453.
# - vLLM's documentation: "Automatic Prefix Caching" and "Hybrid KV Cache Manager".
