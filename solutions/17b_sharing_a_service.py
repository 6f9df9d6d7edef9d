# %% [markdown]
# # Lab 17, deeper: Sharing a service

# %%
from course.lessons import lab17

# %% [markdown]
# ## The question
#
# Lab 17 shared a service among tenants. **Who pays when the shortest answer comes first, and what changes when a gateway does not
# let requests wait, but says when to come again?** This notebook is optional; nothing in it is asked elsewhere.
#
# ## The shortest answer first
#
# One service, {{deep_rate}} requests a second, and only {{deep_slots}} slots, so that there is a queue. Answers have {{deep_answer}} tokens on average, and
# their standard deviation is {{deep_spread:.0f}} times that. The engine does not know a length; a predictor guesses it (`Workload.with_guesses`).

# %%
lab17.shortest_first()

# %% [markdown]
# The median wait falls from {{deep_median_before:.1f}} to {{deep_median:.2f}} s: short answers are many, and none waits for a long one. Few pay for it. The
# longest wait is {{deep_longest:.0f}} s, not {{deep_longest_before:.0f}}, and it is that of a long answer: whoever asks for much is passed by all who come later.
#
# With a predictor half of whose guesses are wrong by a factor of two or more the gain hardly shrinks, since short and long are still told
# apart. But now somebody with {{deep_noisy_tokens}} tokens waits for {{deep_noisy_longest:.0f}} s, because of a guess. (No engine does this by itself: vLLM has
# no predictor. Ageing bounds the wait here as little as in the lab.)
#
# A cap is simpler: no answer is longer than {{deep_cap}} tokens (`max_tokens`, at the gateway). It cuts {{deep_cut:.0%}} of the answers, and the queue is gone:
# p95 is {{deep_capped:.2f}} s in the order of arrival. Whoever needed the rest asks again.
#
# ## Come again
#
# Many gateways let nobody wait. Who finds the bucket empty is answered `429 Too Many Requests` with `Retry-After`: seconds after which the bucket
# will hold enough. `policies.RateLimit` is such a gateway; the lab's, `policies.Bucket`, lets requests wait in line.

# %%
lab17.come_again()

# %% [markdown]
# The quiet tenants are protected either way. For N there is no line any more: whoever comes first after a refill takes it, and
# others are told again, up to {{deep_most_told}} times. The same tokens pass, the longest wait grows, and the gateway answers {{deep_told:,}} refusals. Clients
# that add a random time to `Retry-After` do not all come back at once.
#
# ## After a silence
#
# A tenant that was silent for {{silent_s}} s comes back with a counter far below all others, and keeps an equal one from every slot for
# {{stall_s:.0f}} s: the engine makes up for what nobody asked. With **lift** it starts level with the least of those who wait, and both share from the
# first second on.
#
# Orders and counters act before the slots. So does vLLM's `max_loras`: a request whose adapter is not among them waits beside free slots.
#
# ## Several engines
#
# Behind a router an engine's queue is only one of several. `course.engine.fleet.Fleet` routes each request when it comes: `RoundRobin`, `LeastLoaded`,
# `ByClass`, and `ByPrefix`, which sends a conversation to where its prefix is.

# %%
lab17.two_engines()

# %% [markdown]
# With an engine of their own the quiet tenants are protected as by no order. N waits, while the other card has little to do.
#
# ## Stretch: who may come in?
#
# A gateway may send away whoever would wait too long: it knows at once, and can ask elsewhere. `ahead` are the prompt tokens that the engine
# has to read before this request's own `prompt`, and it reads some {{deep_read:,}} a second (`per_second`) in the storm. Return the predicted TTFT
# in seconds. Above {{promised_ttft_s:g}} s the request is rejected.


# %%
def predicted(ahead, prompt, per_second):
    wait = None
    ### BEGIN SOLUTION
    wait = (ahead + prompt) / per_second
    ### END SOLUTION
    return wait


# %%
lab17.your_prediction(predicted)

# %% [markdown]
# {{deep_sent:.0%}} are sent away, and p95 of the others is {{deep_sent_p95:.2f}} s: a rule with one measured number keeps the first promise. It does not
# ask who fills the queue, so of A, B and C {{deep_sent_quiet:.0%}} are sent away too, and tokens still take {{deep_sent_tpot_ms:.0f}} ms: who is in shares steps with
# everybody. An order, a bucket and a door act at three places, and none replaces another.
