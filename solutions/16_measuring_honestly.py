# %% [markdown]
# # Lab 16: Measuring honestly

# %%
from course.exercises import Lab
from course.lessons import lab16

lab = Lab("16")

# %%
lab.earlier()

# %% [markdown]
# ## The question
#
# You tested your service, Llama-3.1-8B on one H100: 12 requests a second, at most 16 in flight. {{percent}} of
# {{hundred}} requests got their first token within {{written_ms:.0f}} ms. Now users wait for seconds. In the test and today, one document of
# 65,536 tokens stalls the engine for {{stall_s:.1f}} seconds: nobody else gets a first token. **How can a test meet this and
# not report it?**
#
# - A **client** sends the requests of a test.
# - **In flight** are requests sent and not answered (`--max-concurrency 16`). The engine has 256 slots
#   ({{engine}}'s default here: {{default_slots:,}}), never all taken.

# %%
lab16.report_and_users()

# %% [markdown]
# ## Predict

# %%
lab.predict("stall")

# %%
lab.predict("weights")

# %% [markdown]
# ## Explore
#
# 2,000 requests, the document in the middle. "Written down" is TTFT from sending. "No limit" is what users feel.

# %%
lab16.one_test_two_clocks()

# %% [markdown]
# The token times of 300 requests, read by every tool. A **piece** is what a stream brings at once. The dotted line is
# our TPOT, (E2E - TTFT) / (tokens - 1).

# %%
lab16.one_run_many_tools()

# %% [markdown]
# vLLM's benchmark wrote this. In {{file_pieces}} of {{file_answers}} answers two tokens came in one piece:

# %%
lab16.vllms_own_file()

# %% [markdown]
# ## Measure
#
# A small language model answers 30 questions on your CPU, 20 a second, with one stall. Beside it:
# simulated on recorded steps of a larger model.

# %%
lab16.a_client_that_waits()

# %% [markdown]
# A good place for a break.
#
# ## Explain
#
# A client keeps one request in flight and plans one a second. Answers of one token take 0.5 s, the second 2.5 s.

# %%
lab16.a_client_by_hand()

# %% [markdown]
# Requests {{third}} and {{fourth}} [waited in the client](#see:waits-in-the-client), in no record. This is **coordinated omission**: a client that waits for the
# server leaves out requests that would have waited.
#
# $$\text{TTFT}_{\text{plan}} = (\text{sent} - \text{planned}) + \text{TTFT}_{\text{written}}$$
#
# The p99 of 2,000 leaves out the slowest {{slowest:.0f}}: with 16 in flight, it cannot show one such stall.
#
# If the limit is always reached, a request is sent only when another is answered: a **closed loop**. By Little's law,
#
# $$\text{rate} = C / \text{E2E}$$
#
# | symbol | meaning | unit | value | simulated |
# |---|---|---|---|---|
# | sent - planned | wait in the client | s | {{third_wait_s:.1f}}, request {{third}} | |
# | TTFT written | from sending | s | {{third_took_s:.1f}}, request {{third}} | |
# | TTFT plan | what a user feels | s | {{third_felt_s:.1f}}, request {{third}} | |
# | C | limit in flight | requests | 16 | {{in_flight:.1f}} |
# | E2E | mean, from sending | s | {{e2e_s:.3f}} | {{e2e_s:.3f}} |
# | rate | sent, of {{asked}} asked for | requests/s | {{formula_rate:.1f}} | {{sent_rate:.1f}} |
#
# Users are an **open loop**: each is sent as planned.
#
# **Requests or gaps.** One answer has {{few_gaps}} gaps of {{few_ms}} ms, another {{more_gaps}} of {{more_ms}} ms. The mean TPOT counts answers:
# ({{few_ms}} + {{more_ms}}) / {{two}} = {{by_answers_ms:g}} ms. The mean ITL counts gaps: ({{few_gaps}} x {{few_ms}} + {{more_gaps}} x {{more_ms}}) / {{all_gaps}} = {{by_gaps_ms:g}} ms.

# %% [markdown]
# ## Exercises
#
# **Worked example.** In the figure the second request is answered at 1 + 2.5 = 3.5 s. The third is sent then and
# answered at 4 s, 2 s after its plan. A tool that divides the 270 ms from first to last token by 10 tokens says 27 ms;
# with 9 gaps TPOT is 30 ms.
#
# **1.** The same plan; the client writes down {{took}} s. How many seconds after its plan
# does the fourth request get its first token?

# %%
answer = None  # the second request is answered at 1 + 3.25
### BEGIN SOLUTION
answer = (1 + 3.25) + 0.5 + 0.25 - 3
### END SOLUTION

# %%
lab.check("late", answer)

# %% [markdown]
# **2.** llmperf divides E2E by all tokens, and says {{told_ms}} ms for {{told_tokens}} tokens with a TTFT of {{told_ttft_ms}} ms. What is
# TPOT, in ms?

# %%
answer = None  # ms
### BEGIN SOLUTION
answer = (50 * 20 - 525) / 19
### END SOLUTION

# %%
lab.check("ours", answer)

# %% [markdown]
# **3.** Write the correction for one request in flight. `planned` has the planned moments, `seconds` what was written
# down. Return a list: seconds from plan to answer.


# %%
def from_the_plan(planned, seconds):
    ### BEGIN SOLUTION
    found, free = [], 0.0  # free: when the client is free again
    for moment, took in zip(planned, seconds, strict=True):
        free = max(free, moment) + took
        found.append(free - moment)
    return found
    ### END SOLUTION


# %%
lab.check("felt", from_the_plan)

# %% [markdown]
# ## Break it

# %%
lab16.ticket_graphs()

# %%
lab.ticket()

# %% [markdown]
# ## Take away
#
# 1. Count from the plan.
# 2. A limit that is always reached makes a closed loop: the engine sets the rate.
# 3. Compare under one definition: over answers or gaps, by token or piece.

# %%
lab.recap("stall")

# %%
lab.recap("weights")

# %% [markdown]
# **Decide.** "At {{peak_rate:g}} requests/s the p99 of TTFT is {{peak_p99_ms:g}} ms", writes a colleague, from
# `vllm bench serve --request-rate 40 --num-prompts 2000 --max-concurrency 32 --percentile-metrics ttft,e2el`
# (made up in its form):
#
# ```
# Request throughput (req/s):              16.00
# P99 TTFT (ms):                           33.00
# Mean E2EL (ms):                          1980.00
# ```
#
# Choose one flag and the smallest power of two that reaches the rate, with E2E as it is.

# %%
decision = None  # {"--flag": value}
### BEGIN SOLUTION
# 40 x 1.98 = 79 would be in flight. Had 40 requests/s been reached, I would believe the claim.
decision = {"--max-concurrency": 128}
### END SOLUTION

# %%
lab.check("decision", decision)

# %%
lab.quiz()
