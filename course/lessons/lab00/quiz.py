"""Lab 00: the six questions that let those skip the primer who can."""

from course.exercises.spec import Question

QUIZ = (
    Question(
        "steps",
        "An engine computes a prompt of 500 tokens in one step. How many steps does it need in all for an answer of "
        "100 tokens?",
        (
            ("600", "The tokens of the prompt share one step; only those of the answer take one each."),
            ("101", "The step of the prompt already brings the first token of the answer."),
            ("100", "One prefill, which brings the first token, and 99 decodes."),
            ("5", "Each decode brings one token, so an answer takes as many steps as it has tokens."),
        ),
        "c",
    ),
    Question(
        "cache",
        "What does a decode add to the KV cache of its sequence?",
        (
            ("the keys and values of one token", "Those of the token that it computes; all others are kept."),
            ("those of the whole sequence again", "Not computing them again is what the cache is for."),
            ("nothing: only the prefill writes", "Later tokens look back at the answer too, not at the prompt alone."),
            ("one more copy of the weights", "The weights are the same for everybody and never change."),
        ),
        "a",
    ),
    Question(
        "weights",
        "Why does a decode step for sixteen sequences take hardly longer on an H100 than a step for one?",
        (
            ("The cache keeps all earlier answers.", "It keeps tokens of this sequence; nothing is answered from it."),
            ("It computes sixteen times less for each.", "It computes as much for each; that part is small."),
            ("A GPU has more cores than sixteen.", "They all work on one sequence too: what they wait for is memory."),
            ("It reads the weights once for all.", "Reading takes most of the step, and is shared."),
        ),
        "d",
    ),
    Question(
        "tail",
        "36,000 requests came in an hour. The p99 of TTFT is 2 s. How many of them waited longer than 2 s for their "
        "first token?",
        (
            ("about 36", "That would be one in a thousand: the p99.9."),
            ("about 360", "One in a hundred is above the p99."),
            ("about 1,800", "That would be one in twenty: the p95."),
            ("it depends on the mean", "A percentile counts requests, whatever the mean."),
        ),
        "b",
    ),
    Question(
        "log",
        "The ticks of a log axis are 10 ms, 100 ms and 1 s, equally far apart. A mark at 200 ms moves up by the "
        "distance between two ticks. Where is it now?",
        (
            ("at 220 ms", "Equal distances are equal ratios on a log axis, not equal differences."),
            ("at 400 ms", "The distance between two ticks is a factor of ten here, not of two."),
            ("at 1.1 s", "From 100 ms to 1 s is a difference of 900 ms, and a log axis shows ratios."),
            ("at 2 s", "One tick further is ten times as long, wherever you start."),
        ),
        "d",
    ),
    Question(
        "bursts",
        "Requests come at 10 a second, once with gaps of CV 1 and once with gaps of CV 3. What differs?",
        (
            ("how many come in an hour", "About 36,000 both times: the rate is the same."),
            ("how many come in some seconds", "Bursts bring many at a time, and calm seconds none."),
            ("how long the prompts are", "The CV here is that of the gaps between arrivals."),
            (
                "how long each step takes alone",
                "How long a step takes depends on what is in it, not on when requests come.",
            ),
        ),
        "b",
    ),
)
