"""Lab 07, chunked prefill: questions from earlier labs, the ticket of "Break it", and the quiz at the end."""

from course.exercises.spec import Question, Ticket

EARLIER = (
    Question(
        "share-a-step",
        "Ten chats stream with continuous batching. What does one step give them?",
        (
            ("one token to the chat whose turn it is", "All ten are in the batch, so nobody takes turns."),
            ("one token to each of the ten", "And each of them waits until the whole step is done."),
            ("tokens to those whose slot was refilled", "A refilled slot joins the others; they go on as well."),
        ),
        "b",
        lab="04",
    ),
    Question(
        "long-kv",
        "Llama-3.1-8B keeps 131,072 bytes a token. How much KV memory does a prompt of 32,768 tokens take?",
        (
            ("4.3 GB", "32,768 x 131,072 bytes. Chunks do not change that."),
            ("0.13 GB", "That is what 1,000 tokens take."),
            ("17 GB", "That is four times too much: the model has 8 KV heads for its 32 heads."),
        ),
        "a",
        lab="08",
    ),
)

TICKET = Ticket(
    story='From support: "Since this morning the text flows more evenly than ever. But the first word takes longer by '
    "the minute, although half of the slots are free. The GPU is busy at 100%, as always. Traffic is that of yesterday: "
    '12 questions a second, each with 1,000 tokens of documents."',
    questions=(
        Question(
            "cause",
            "What is the cause?",
            (
                ("The KV cache is full.", "30 requests of about 1,200 tokens are 5 GB: there is room for many more."),
                ("The slots are all taken.", "30 of 64 are, and yesterday up to 61 were."),
                ("The steps are too small.", "Each is full, and yet leaves the prompts less than what arrives."),
            ),
            "c",
        ),
        Question(
            "measure",
            "Which measurement do you take next, to be sure?",
            (
                (
                    "the tokens that a step computes",
                    "vllm:iteration_tokens_total: 125 on average, and never above 128.",
                ),
                ("the length of the prompts", "That is as yesterday, and yesterday nobody waited."),
                ("the longest gap of each request", "It has fallen to 9 ms: whoever streams is well."),
            ),
            "a",
        ),
        Question(
            "repair",
            "What do you change?",
            (
                ("double the slots, to let those in who wait", "Slots are free already. A step has no room."),
                (
                    "raise the budget of a step to 1,024 tokens",
                    "The p95 of the TTFT is then 0.08 s, and the longest gap 28 ms.",
                ),
                ("cap each prompt at 64 tokens a step", "A cap shares what a step has. It does not add to it."),
            ),
            "b",
        ),
    ),
    setting="It was --max-num-batched-tokens 128, set to make the gaps as short as possible. Yesterday it was 2,048.",
)

QUIZ = (
    Question(
        "slo",
        "You promise that no text stands still for more than 100 ms. Which number do you watch?",
        (
            (
                "the p99 of ITL, over all tokens",
                "A stop of 1.7 s every 20 s is 0.03% of the tokens: the p99 never sees it.",
            ),
            ("the mean of ITL, of each request", "A stop is spread over 300 tokens, and moves it little."),
            ("the p99 of each request's longest gap", "It counts people: one stop in an answer is one reader."),
        ),
        "c",
    ),
    Question(
        "short",
        "New chats wait for a second or two whenever a long prompt runs. The budget is 2,048. What helps them?",
        (
            (
                "--max-num-batched-tokens 512",
                "The long prompt still takes what the decodes leave, and for longer.",
            ),
            (
                "--long-prefill-token-threshold 512",
                "The long prompt leaves some 1,500 tokens of each step to others.",
            ),
            ("--max-num-seqs 128, twice as many as now", "Slots were free. What they lack is room in a step."),
        ),
        "b",
    ),
    Question(
        "small",
        "A colleague sets the budget of an H100 to 128 tokens, to be safe. What is the price?",
        (
            (
                "fewer tokens/s for everybody",
                "Below some 280 tokens a step takes as long as reading the weights, and computes less.",
            ),
            ("only a later answer to long prompts", "Short prompts pay as well: the ticket had no long ones."),
            ("more KV memory for the many chunks", "K and V of a token take the same room in any chunk."),
        ),
        "a",
    ),
    Question(
        "long",
        "A prompt of 32,768 tokens runs in 66 chunks beside 12 chats, not in one step. When does its answer begin?",
        (
            ("66 times as late, since each step must end first", "A step with fewer tokens is shorter."),
            ("earlier, since its answer is streamed by chunks", "A first token needs the whole prompt."),
            ("a third later, since small chunks cost more", "2.3 s in place of 1.74 s on the recorded card."),
        ),
        "c",
    ),
)
