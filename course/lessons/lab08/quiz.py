"""Lab 08, KV budgeting: the quiz at its end."""

from course.exercises.spec import Question

QUIZ = (
    Question(
        "limit",
        "The log says: Maximum concurrency for 32,768 tokens per request: 1.26x. Your requests have 1,500 tokens. How "
        "many run at once?",
        (
            (
                "one: the engine says so, and queues a second",
                "That is how many requests of full length fit. It limits nobody.",
            ),
            ("as many as max_num_seqs allows", "Slots allow it; the pool may not."),
            (
                "about 27, if there are slots for them",
                "1.26 x 32,768 is about 41,000 tokens, whoever holds them; 1,500 for each request.",
            ),
        ),
        "c",
    ),
    Question(
        "full",
        "All blocks are taken and a running answer needs one more. What does vLLM V1 do?",
        (
            ("it fails that request with an out-of-memory error", "No request fails. The pool was allocated at start."),
            ("it swaps the answer's blocks to the CPU", "V0 could. V1 computes again instead."),
            ("it waits until some answer ends", "Everybody might wait for everybody: nothing would ever end."),
            (
                "it takes the blocks of the request admitted last",
                "Preemption by recompute: the request is computed again later. Its reader sees a pause of seconds, and "
                "a counter goes up by one.",
            ),
        ),
        "d",
    ),
    Question(
        "gqa",
        "An engineer proposes to turn on GQA on the Llama-2-7B service, since it makes the KV cache four times "
        "smaller. What do you answer?",
        (
            (
                "that would be another checkpoint",
                "KV heads are the model's, not the server's, which can choose the type of K and V, the card, the "
                "sharding and the model.",
            ),
            ("do it: --num-kv-heads 8, at the next start", "There is no such flag: the heads are trained weights."),
            ("it changes the speed, not the memory", "It is about memory first: K and V of fewer heads."),
        ),
        "a",
    ),
    Question(
        "weights",
        "You load the weights in fp8 (--quantization fp8) and leave --kv-cache-dtype at auto. What happens to the "
        "bytes a token?",
        (
            ("they halve", "That is another knob. Weights and KV have a type each."),
            (
                "nothing, but the pool grows",
                "By what the weights no longer take: the same bytes a token in a larger pool. "
                "fp8 KV would halve the bytes themselves.",
            ),
            ("nothing at all changes for the KV cache", "The weights leave more room for it."),
        ),
        "b",
    ),
    Question(
        "utilization",
        "Which of these makes --gpu-memory-utilization 0.98 a bad idea on a card with nothing else on it?",
        (
            (
                "memory that nobody counted at the start",
                "Graphs, fragments, another process, a larger batch than profiled. "
                "The pool takes everything up to the line at start. What comes later has only the rest.",
            ),
            ("the KV pool could become too large for the model", "A large pool harms nobody."),
            ("the GPU clocks down when its memory is full", "Memory in use does not change the clock."),
        ),
        "a",
    ),
    Question(
        "state",
        "A hybrid model keeps 40,960 bytes a token in its attention layers, and 438 MiB a sequence of recurrent state. "
        "Chats of 1,000 tokens: what fills the pool?",
        (
            ("the K and V of the attention layers", "1,000 tokens come to 39 MiB."),
            ("neither: hybrids keep nothing", "The state is kept, and so are K and V of the attention layers."),
            (
                "the recurrent state of the sequences",
                "It is eleven times as much, and short requests pay for it in full. The advantage begins where "
                "sequences are long.",
            ),
        ),
        "c",
    ),
)
