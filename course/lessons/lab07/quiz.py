"""Lab 07, chunked prefill: the quiz at its end."""

from course.exercises.spec import Question

QUIZ = (
    Question(
        "slo",
        "You want to promise that no stream stands still for more than 100 ms. Which number do you watch?",
        (
            (
                "the p99 of ITL, over the tokens of all requests",
                "A stop of 1.7 s every 20 s is 0.03% of the tokens: the p99 never sees it.",
            ),
            ("the mean TPOT, over all requests", "It moves by a few per cent: a stop is spread over 300 tokens."),
            (
                "the p99 of the longest gap of each request",
                "Count people, not tokens: one stop in an answer is one reader who noticed.",
            ),
        ),
        "c",
    ),
    Question(
        "short",
        "Short requests wait for a second whenever a long prompt is in progress. The budget is 2,048. What helps them?",
        (
            (
                "--max-num-batched-tokens 512",
                "The long prompt still takes every step, for longer: they wait a little more.",
            ),
            (
                "--long-prefill-token-threshold 512",
                "The long prompt leaves some 1,500 tokens of each step to others: their prompts start at once.",
            ),
            (
                "--max-num-seqs 128, for more of them at a time",
                "Slots were free; what was missing is room in the step.",
            ),
        ),
        "b",
    ),
    Question(
        "small",
        "A colleague sets the budget of an H100 to 128 tokens, to be safe. What is the price?",
        (
            (
                "Fewer tokens/s, for everybody.",
                "Below some 280 tokens a step takes as long as reading the weights, and computes less: on this lab's "
                "trace a third of the tokens/s on the recorded card, and a quarter in theory.",
            ),
            ("None but a longer TTFT of the long prompt.", "Short prompts pay as well: the capacity falls for all."),
            ("More KV memory.", "Chunks need no more KV, and smaller ones need less room for activations."),
        ),
        "a",
    ),
    Question(
        "order",
        "An engine computes prompts in chunks of 2,048, one a step, and decodes only when no prompt is left. Does that"
        " protect the streams?",
        (
            (
                "Yes: no step is longer than one chunk.",
                "True, but none of them holds a decode: the stop is as long as before.",
            ),
            ("Only if the chunks are small.", "More steps without a decode: the sum stays the same or grows."),
            (
                "No: no decode runs beside a chunk.",
                "Chunking bounds a step. Sharing it is what lets a token out of each.",
            ),
        ),
        "c",
    ),
    Question(
        "attention",
        "A prompt of 32,768 tokens runs in 64 chunks instead of one step. What happens to the work of its attention?",
        (
            (
                "The query-key pairs stay the same.",
                "537 million pairs either way. K and V of earlier chunks are read again for each: on the recorded "
                "card a pair takes 1.3 times as long in chunks of 256 as "
                "in chunks of 2,048.",
            ),
            (
                "It grows 64 times: each chunk attends to all earlier ones.",
                "In one step as well each token attends to all before it, once.",
            ),
            ("It shrinks, since chunks are small.", "Only causality saves work, and it does so in one step too."),
        ),
        "a",
    ),
    Question(
        "partial",
        "Somebody starts vLLM 0.19 with --max-num-partial-prefills 4. What happens?",
        (
            (
                "Up to four prompts are computed at a time.",
                "That was the engine before V1. V1 admits whoever budget, slots and memory allow.",
            ),
            (
                "It refuses to start.",
                "The option is left over from the engine before V1; later versions dropped it. What caps a prompt is "
                "--long-prefill-token-threshold.",
            ),
            ("Nothing: it is ignored.", "V1 checks it, and stops: better than a knob that does nothing."),
        ),
        "b",
    ),
)
