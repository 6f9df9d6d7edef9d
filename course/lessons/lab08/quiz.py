"""Lab 08, KV budgeting: questions from earlier labs, and the quiz at its end."""

from course.exercises.spec import Question

EARLIER = (
    Question(
        "blame",
        "A TTFT of 500 ms: 60 ms outside, an admission window of 100 ms that the request opened, 40 ms of "
        "prefill. How long did it queue?",
        (
            ("440 ms", "That takes off only the time outside."),
            ("350 ms", "A request that opens a window waits for all of it."),
            ("300 ms", "The parts add up."),
        ),
        "c",
        lab="01",
    ),
    Question(
        "little",
        "1 request/s arrives, and each stays 11 s. How many are in the system on average?",
        (
            ("11 requests", "L = λ W."),
            ("1 request", "That is the arrival rate. Each stays for 11 s."),
            ("that depends on bursts", "L = λ W holds for any arrivals."),
        ),
        "a",
        lab="03",
    ),
)

QUIZ = (
    Question(
        "limit",
        "The log says 1.26x for 32,768 tokens per request. Yours hold 1,500 tokens. How many fit at once?",
        (
            ("only one of them", "That is how many of full length fit. Yours are shorter."),
            ("as many as max_num_seqs", "Slots allow that; the pool may not."),
            ("about 27 of them", "1.26 x 32,768 / 1,500."),
        ),
        "c",
    ),
    Question(
        "full",
        "All blocks are taken and an answer needs one more. What does vLLM V1 do?",
        (
            ("it ends that answer with an error", "No request fails; the pool was allocated at start."),
            ("it waits until another ends", "Then all might wait for each other."),
            ("it copies its blocks to the CPU", "V0 could do that. V1 computes them again instead."),
            ("it preempts the last one admitted", "That one is computed again."),
        ),
        "d",
    ),
    Question(
        "gqa",
        "Somebody wants to turn on GQA for Llama-2-7B, for a KV cache four times smaller. What do you answer?",
        (
            ("do it, with --num-kv-heads 8", "There is no such flag."),
            ("that is another checkpoint", "KV heads are trained weights."),
            ("it saves time, not memory", "Fewer KV heads first of all take fewer bytes."),
        ),
        "b",
    ),
    Question(
        "weights",
        "Weights in fp8, --kv-cache-dtype at auto: what happens to the KV bytes a token?",
        (
            ("they halve", "Weights and KV each have their own type."),
            ("nothing, but the pool grows", "It grows by what the weights save."),
            ("nothing, and the pool stays too", "The weights leave more room for it."),
        ),
        "b",
    ),
)
