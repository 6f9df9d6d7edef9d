# %% [markdown]
# # Lab 06, deeper: Mixed batches

# %%
from course.lessons import lab06

# %% [markdown]
# ## The question
#
# Lab 06 read its answers off whole runs, most of them of one draw. **What do the steps hold from second to second, how many draws
# does it take until two orders can be told apart, and which other orders are there?** This notebook is optional; nothing in it
# is asked elsewhere.
#
# ## What the steps hold
#
# A batch composition analyser: for each second, the time in mixed steps, in steps of prompts alone and of decodes alone, and how
# many decodes there are for each prompt token. Move the budget, then the order.

# %%
lab06.what_steps_hold()

# %% [markdown]
# {{deep_mixed_steps:.0%}} of the steps are mixed, and {{deep_mixed_time:.0%}} of the time, since these are the long ones. A budget of {{deep_small}} cuts the prompts
# into more steps: {{deep_small_steps:.0%}} of them, {{deep_small_time:.0%}} of the time.
#
# The ratio goes from {{deep_ratio_least:.2f}} to {{deep_ratio_most:.2f}} in a second, and is {{deep_ratio:.2f}} over the run: {{deep_prompt_share:.0%}} of the tokens are of prompts.
# **No knob moves that.** It is the traffic's, so a rule such as "more than half prompts, for throughput" can be wished for, and not
# set. An engine's own log has both: vLLM's prints prompt and generation throughput on each line.
#
# ## How many draws?
#
# A draw is other arrivals and other answers at the same rate. Is the mean TTFT lower with prompts first?

# %%
lab06.told_apart()

# %% [markdown]
# The last columns: the fewest draws $n$ whose {{deep_confidence:.0%}} interval of the mean difference $d$ leaves out 0, $|d| > t\,s / \sqrt{n}$, with the
# spread $s$ that these {{deep_draws}} draws have and Student's $t$. Two lessons:
#
# - **Serve the same requests in both orders.** What a draw does to both then cancels: at {{deep_over}} requests/s {{deep_over_paired}} draws do, where
#   {{deep_over_apart}} would be needed if each order had draws of its own. At {{deep_clear}}, where draws differ little, it is {{deep_clear_paired}} and {{deep_clear_apart}}.
# - **Five that agree may be luck.** At {{deep_luck}} requests/s {{deep_luck_later}} of {{deep_draws}} draws says the opposite of the others, since in that one
#   all slots are taken. At {{deep_over}} the first {{deep_few}} agree, and {{deep_over_later}} of {{deep_draws}} do.
#
# ## Why the order turns

# %%
lab06.slots_taken()

# %% [markdown]
# With {{deep_wide:,}} slots nobody has to wait for one, and prompts first has the earlier first tokens: {{deep_wide_first_ms:.0f}} ms, not {{deep_wide_mixed_ms:.0f}}. With 256 all are
# taken, and a newcomer waits until an answer **ends**. Answers that are stopped for prompts hold their slots {{deep_holds:.0%}} longer, so
# slots come free later. Whoever goes first wins the step and loses the line.
#
# ## Prompts in every k-th step

# %%
lab06.every_kth_step()

# %% [markdown]
# The lab found nothing that prompts in every fourth step buy. With every {{deep_every}}th prompts pile up until they fill a step, and fewer steps are long:
# nine gaps in ten are then below {{deep_late_p90_ms:.1f}} ms, not {{deep_each_p90_ms:.1f}}. The longest is as long as before, the p99 longer, and the mean TTFT {{deep_late_ttft_ms:.0f}} ms
# in place of {{deep_each_ttft_ms:.0f}}. A share of the budget buys short gaps for far less.
#
# ## Long prompts that yield
#
# Short questions, and every few seconds a document of {{deep_long:,}} tokens, in steps of {{deep_step:,}}. The notes' reference policy preempts a
# long prompt when the queue gets deep: once more than {{deep_depth}} short prompts wait, it is sent back behind them.

# %%
lab06.long_prompts_yield()

# %% [markdown]
# Over five draws the documents are sent back {{deep_sent_back}} times, and each time computed from the start. They wait {{deep_long_yield}} s, not {{deep_long_order}} s. And
# the **short** ones wait longer as well, {{deep_short_yield}} ms instead of {{deep_short_order}}: the card computes the same tokens again and again. (Their p99 hardly moves.)
#
# vLLM's `--long-prefill-token-threshold`, here {{deep_cap:,}} tokens, takes nothing back. It leaves a part of each step to others: {{deep_short_cap}} ms, and {{deep_long_cap}} s for
# a document. (Where K and V are kept or copied, yielding is cheap. Here they are thrown away, as in vLLM V1.)
#
# ## Answers that give way
#
# The lab's traffic on a busy day, {{deep_busy}} requests/s, and {{deep_seats}} slots, so that there is a queue. Which order is best for the mean time
# to the last token?

# %%
lab06.answers_give_way()

# %% [markdown]
# - **Shortest answer first** lets a short one pass in the queue, and stops nobody: {{deep_e2e_shortest}} s over five draws instead of {{deep_e2e_order}}. It
#   has to know the lengths; here it does.
# - **Shortest remaining first** (SRPT) also takes the slot of who has most left. No order has a lower mean, where an exchange
#   costs nothing. Here {{deep_again_left}} of all tokens are computed again, and it is {{deep_e2e_left}} s: worse than the order of arrival.
# - **Multi-level feedback** knows no length. Who has been given least goes first, a level down after {{deep_quantum}} tokens, then twice as
#   many. First tokens come after {{deep_ttft_levels}} s, not {{deep_ttft_order}}, and last ones after {{deep_e2e_levels}}. FastServe, whose idea it is, keeps
#   the K and V of who was sent away on the host; lab 09 has the bandwidth that this needs.
#
# **Read next**
#
# - Wu et al., *FastServe*, arXiv:2305.05920: multi-level feedback with K and V that are kept.
# - Agrawal et al., *Sarathi-Serve*, OSDI 2024, arXiv:2403.02310: what shares a step, and how large it is.
# - Schrage, *A Proof of the Optimality of the Shortest Remaining Processing Time Discipline*, 1968.
