"""Lab 07, chunked prefill: questions from earlier labs, the ticket of "Break it", and the quiz at the end."""

from course.exercises.spec import Question, Ticket

EARLIER = (
    Question(
        "share-a-step",
        "Ten chats stream. What does a step give them?",
        (
            ("a token to one of them", "All ten are in the batch: nobody takes turns."),
            ("a token to each of them", "And each waits until the whole step is done."),
            ("a token to those just admitted", "They join the others, and all of them get one."),
        ),
        "b",
        lab="04",
    ),
    Question(
        "long-kv",
        "How much KV memory do 32,768 tokens take, at 131,072 bytes each?",
        (
            ("4.3 GB", "32,768 x 131,072 bytes, in chunks or not."),
            ("0.13 GB", "That is what 1,000 tokens take."),
            ("17 GB", "That is four times too much: the model has 8 KV heads for its 32 heads."),
        ),
        "a",
        lab="08",
    ),
)

TICKET = Ticket(
    story='"Since this morning text flows better, but the first word takes longer every minute. '
    'Half of the slots are free. Traffic is as yesterday: 12 requests a second, prompts of 1,000 tokens, 300 out."',
    questions=(
        Question(
            "cause",
            "What is the cause?",
            (
                ("The KV cache is full.", "30 requests of about 1,150 tokens are 4.5 GB: there is room for many more."),
                ("The slots are all taken.", "30 of 64 are taken. Yesterday up to 61 were."),
                ("The steps are too small.", "Fewer prompt tokens fit into them than arrive."),
            ),
            "c",
        ),
        Question(
            "measure",
            "What do you measure next?",
            (
                (
                    "the tokens of a step",
                    "vllm:iteration_tokens_total: 125 on average, at most 128.",
                ),
                ("the length of prompts", "It is the same as yesterday, when nobody waited."),
                ("the longest gaps", "The longest has fallen to 9 ms: answers stream well."),
            ),
            "a",
        ),
        Question(
            "repair",
            "What do you change?",
            (
                ("double the slots", "Slots are free already. It is the step that has no room."),
                (
                    "raise the budget to 1,024 tokens",
                    "The p95 of the TTFT is then 0.08 s.",
                ),
                ("cap each prompt at 64 tokens", "A cap shares what a step has. It does not add to it."),
            ),
            "b",
        ),
    ),
    setting="--max-num-batched-tokens 128, for the shortest gaps; yesterday 2,048.",
)

QUIZ = (
    Question(
        "slo",
        "You promise 99 of 100 readers no gap above 100 ms. What do you watch?",
        (
            (
                "the p99 of ITL over all tokens",
                "A stall of 1.7 s every 20 s is 0.03% of the tokens: the p99 never shows it.",
            ),
            ("the mean ITL of each request", "One stall among 300 tokens hardly moves it."),
            ("the p99 of each request's longest gap", "It counts people, not tokens."),
        ),
        "c",
    ),
    Question(
        "short",
        "New chats wait while a long prompt runs. The budget is 2,048. What helps?",
        (
            (
                "--max-num-batched-tokens 512",
                "The long prompt still takes what the decodes leave, and for longer.",
            ),
            (
                "--long-prefill-token-threshold 512",
                "It leaves some 1,500 tokens of each step to others.",
            ),
            ("--max-num-seqs 128", "Slots were free. What new chats lack is room in a step."),
        ),
        "b",
    ),
    Question(
        "small",
        "What is the price of a budget of 128?",
        (
            (
                "the card computes fewer tokens a second",
                "A recorded step of 128 tokens takes half as long as one of 512.",
            ),
            ("only long prompts are answered later", "Short prompts pay as well: the ticket had no long ones."),
            ("more KV memory for the chunks", "K and V take the same memory, whatever the chunks."),
        ),
        "a",
    ),
    Question(
        "long",
        "A contract runs in 66 chunks, not in one step. When does its answer begin?",
        (
            ("66 times as late", "A step with fewer tokens is shorter."),
            ("earlier, since it is streamed", "A first token needs the whole prompt."),
            ("about a third later", "2.3 s, not 1.74 s: attention is less efficient in short chunks."),
        ),
        "c",
    ),
)
