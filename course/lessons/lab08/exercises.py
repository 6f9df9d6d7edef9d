"""Lab 08, KV budgeting: what it asks. Values are computed from the scenario and stay true if its constants change."""

from math import ceil, sqrt

import numpy as np

from course.exercises.spec import Exercise, LabSpec, Mistake, Prediction
from course.lessons.lab08 import card_memory, kv_pool
from course.lessons.lab08.quiz import QUIZ

GIB = 2**30
LLAMA = card_memory.spec("llama-3.1-8b")
TOKEN = LLAMA.kv_bytes_per_token
LENGTH = 8_192

_card = card_memory.ledger("llama-3.1-8b", "H100", max_model_len=LENGTH)
_each = LENGTH * TOKEN
_fits = _card.max_sequences(LENGTH)
_resident = kv_pool.PROMPT + kv_pool.ANSWER * (1 + kv_pool.ANSWER_CV**2) / 2
_residents = round(kv_pool.TOKENS / _resident)


def token_bytes(config, element_bytes):
    """2 x layers x KV heads x head dimension x bytes an element; what a config leaves out follows from the rest."""
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    return 2 * config["num_hidden_layers"] * (config.get("num_key_value_heads") or heads) * head_dim * element_bytes


def _width_of_the_model(config, element_bytes):
    return 2 * config["num_hidden_layers"] * config["hidden_size"] * element_bytes


def _one_tensor(config, element_bytes):
    return token_bytes(config, element_bytes) // 2


def _one_layer(config, element_bytes):
    return token_bytes(config, element_bytes) // config["num_hidden_layers"]


def _always_two_bytes(config, element_bytes):
    return token_bytes(config, 2)


def _in_bits(config, element_bytes):
    return 8 * token_bytes(config, element_bytes)


def _all_heads(config, element_bytes):
    return token_bytes({**config, "num_key_value_heads": config["num_attention_heads"]}, element_bytes)


def _head_from_the_width(config, element_bytes):
    return token_bytes({**config, "head_dim": config["hidden_size"] // config["num_attention_heads"]}, element_bytes)


def _no_head_dim(config, element_bytes):
    return 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * config["head_dim"] * element_bytes


CONFIGS = (
    # Llama-3.1-8B, then one whose heads are wider than its width says, then one that leaves out two keys.
    {
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
    },
    {
        "num_hidden_layers": 64,
        "hidden_size": 5120,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,
    },
    {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32},
)


def slots(num_blocks, block_size, tokens):
    """The most slots whose sequences need at most `num_blocks`, two standard deviations above their mean."""
    blocks = np.ceil(np.asarray(tokens) / block_size)
    mean, deviation, n = blocks.mean(), blocks.std(), 1
    while (n + 1) * mean + 2 * sqrt(n + 1) * deviation <= num_blocks:
        n += 1
    return n


def _forgets_the_spread(num_blocks, block_size, tokens):
    return int(num_blocks / np.ceil(np.asarray(tokens) / block_size).mean())


def _without_the_root(num_blocks, block_size, tokens):
    blocks = np.ceil(np.asarray(tokens) / block_size)
    return int(num_blocks / (blocks.mean() + 2 * blocks.std()))


def _for_the_longest(num_blocks, block_size, tokens):
    return max(1, int(num_blocks / ceil(max(tokens) / block_size)))


def _without_rounding(num_blocks, block_size, tokens):
    parts = np.asarray(tokens) / block_size
    n = 1
    while (n + 1) * parts.mean() + 2 * sqrt(n + 1) * parts.std() <= num_blocks:
        n += 1
    return n


def _rounds_down(num_blocks, block_size, tokens):
    blocks = np.asarray(tokens) // block_size
    n = 1
    while (n + 1) * blocks.mean() + 2 * sqrt(n + 1) * blocks.std() <= num_blocks:
        n += 1
    return n


def _one_too_many(num_blocks, block_size, tokens):
    return slots(num_blocks, block_size, tokens) + 1


PROBES = (
    (kv_pool.BLOCKS, 16, kv_pool.residents().tolist()),
    (500, 64, [10, 20, 70, 130] * 25),
    (200, 16, [33, 33, 33, 40]),
)

LAB = LabSpec(
    number="08",
    title="KV budgeting",
    predictions=(
        Prediction(
            "five",
            "The engine prints: Maximum concurrency for 8,192 tokens per request: 5.05x. Your requests have 1,024 "
            "prompt tokens and answers of 512 on average. How many of them can this card work on at once?",
            (
                (
                    "five",
                    "printed-concurrency-is-a-limit",
                    "The printed figure divides the pool by the longest request allowed. It limits nobody.",
                ),
                (
                    "about ten",
                    "half-length-requests",
                    "Go by what a request really holds at a random moment, and not by a share of the longest allowed.",
                ),
                "about 27",
                (
                    "as many as it has slots, 256",
                    "slots-decide",
                    "Slots are what may run. The pool is what can.",
                ),
            ),
            "c",
            "The 5.05 is for requests of 8,192 tokens, and none of yours is so long. A sequence of the batch holds "
            "about 1,536 tokens at a random moment, and 41,408 / 1,536 is 27. In the run at 1 request/s up to 26 ran "
            "at once, and nobody was preempted.",
        ),
        Prediction(
            "slots",
            "2 requests/s come, more than the card can do, and its 24 slots are always taken. You double them to 48. "
            "What happens to the tokens/s?",
            (
                "they fall a little",
                (
                    "they rise by a fifth or so",
                    "more-slots-some-gain",
                    "There was hardly a free block left, so more slots only admit what has to be thrown out again.",
                ),
                (
                    "they nearly double",
                    "slots-are-speed",
                    "The pool was nearly full already. A slot without blocks computes nothing.",
                ),
            ),
            "a",
            "From 826 to 820 tokens/s, and preemptions from 63 to 907. The pool was nearly full already. More slots "
            "admit requests that it cannot hold to their end, and what they had computed is computed again: a quarter "
            "of all the work.",
        ),
        Prediction(
            "fp8",
            "Still 2 requests/s. You store K and V in fp8, which halves the bytes a token. The p95 of TTFT was 202 s "
            "over 2,000 requests. And now?",
            (
                (
                    "about the same: the GPU is no faster",
                    "memory-is-not-speed",
                    "Where the pool limits the batch, room in it is speed.",
                ),
                (
                    "about half",
                    "halves-carry-over",
                    "A queue does not scale with the bytes: it grows without end, or it is hardly there.",
                ),
                "less than one second",
            ),
            "c",
            "0.31 s, and no preemption. 16-bit K and V allowed a batch of about 27, which is not enough for 2 "
            "requests/s, so the queue grew for as long as the run lasted. With twice the room the batch is as large as "
            "Little's law asks for, and there is no queue.",
        ),
    ),
    exercises=(
        Exercise(
            "token",
            "bytes a token",
            solution=token_bytes,
            probes=tuple((config, size) for config in CONFIGS for size in (2, 1)),
            rtol=1e-6,
            mistakes=(
                Mistake(
                    _width_of_the_model,
                    "That takes the width of the model, as if every query head had its own K and V. How many KV heads "
                    "are there, and how wide is one?",
                ),
                Mistake(_one_tensor, "A factor of two is missing: K and V are two tensors."),
                Mistake(_one_layer, "That is one layer. Every layer keeps its own K and V."),
                Mistake(_always_two_bytes, "element_bytes says how many bytes an element has; in fp8 it is one."),
                Mistake(_in_bits, "That counts bits. Give bytes."),
                Mistake(_all_heads, "Queries are not kept. Count the KV heads, where the config gives them."),
                Mistake(
                    _head_from_the_width,
                    "Where head_dim is given, it counts: heads may be wider than hidden_size / num_attention_heads.",
                ),
                Mistake(
                    _no_head_dim,
                    "It works as long as every key is there. Without num_key_value_heads each head has its own K and "
                    "V; without head_dim the heads share the width of the model.",
                ),
            ),
            hint="Multiply: two tensors, layers, KV heads, elements of a head, bytes of an element.",
            plain="Multiply K and V, the layers, the KV heads, the elements of a head, and the bytes of an element."
            " Where the config leaves heads or their size out, they follow from the attention heads and the "
            "hidden size.",
        ),
        Exercise(
            "fits",
            "sequences of 8,192 tokens on an H100",
            solution=_fits,
            rtol=5e-3,
            mistakes=(
                Mistake(
                    int(_card.usable_bytes / (_card.weights_bytes + _each)),
                    "That pays for the weights once a sequence. All sequences share one copy: take it off first.",
                ),
                Mistake(
                    int(_card.usable_bytes / _each),
                    "Those are sequences in the whole share of the engine. The weights are in there too.",
                ),
                Mistake(
                    int((_card.usable_bytes - _card.weights_bytes) / _each),
                    "Weights are off, but a step needs room to work in: see the other two lines.",
                ),
                Mistake(
                    int((_card.total_bytes - _card.weights_bytes - _card.activation_bytes - _card.other_bytes) / _each),
                    "That takes the whole card. The engine may have gpu_memory_utilization of it.",
                ),
                Mistake(
                    _card.kv_bytes / _each,
                    "The last one does not fit to its end. Give whole sequences, rounded down.",
                ),
                Mistake(
                    card_memory.ledger("llama-3.1-8b", "H100", kv_dtype="fp8").max_sequences(LENGTH),
                    "That is with K and V in fp8. Here they have 16 bits.",
                ),
            ),
            hint="Which bytes are left once everything else is paid for, and how many does one such sequence take?",
            plain="Take weights, activations and the rest off the usable share. Divide what is left by the bytes of"
            " a token times the tokens of a sequence, and round down.",
        ),
        Exercise(
            "residents",
            "how many at once",
            solution=_residents,
            rtol=5e-3,
            mistakes=(
                Mistake(
                    kv_pool.TOKENS / LENGTH,
                    "That is the printed number: as if every request were 8,192 tokens long.",
                ),
                Mistake(kv_pool.TOKENS // LENGTH, "That is the printed number, for requests of 8,192 tokens."),
                Mistake(
                    kv_pool.TOKENS / kv_pool.PROMPT,
                    "That is prompts alone. What has been said so far is in the cache as well.",
                ),
                Mistake(kv_pool.TOKENS // kv_pool.PROMPT, "That is prompts alone. Answers are in the cache as well."),
                Mistake(
                    kv_pool.TOKENS / kv_pool.ANSWER, "That is answers alone. Their prompts are in the cache as well."
                ),
                Mistake(
                    kv_pool.TOKENS / (kv_pool.PROMPT + kv_pool.ANSWER / 2),
                    "Half an answer is right for answers of equal length. Long ones stay longer, so at a random moment "
                    "one meets more of them: with a CV of 1 a batch holds a whole mean answer each.",
                ),
                Mistake(
                    kv_pool.TOKENS // int(_resident),
                    "The number in the batch goes up and down; it is a mean, so round to the nearest.",
                ),
            ),
            hint="How many tokens does a sequence hold at a random moment: its prompt, and how much of its answer?",
            plain="A sequence holds its prompt and what it has said so far. At a random moment long answers are met"
            " more often: the answer that is met has the mean length times the sum of a whole and the squared"
            " CV, and is in its middle on average. Divide the pool by that and the prompt together.",
        ),
        Exercise(
            "slots",
            "as many slots as the pool holds",
            solution=slots,
            probes=PROBES,
            rtol=1e-6,
            mistakes=(
                Mistake(
                    _forgets_the_spread,
                    "That many fit on average, so half of the time they do not. Leave two standard deviations.",
                ),
                Mistake(
                    _without_the_root,
                    "You give every sequence two standard deviations. Long and short ones make up for each other: the "
                    "deviation of a sum of n grows with the root of n.",
                ),
                Mistake(_for_the_longest, "That is the worst case: every sequence as long as the longest."),
                Mistake(
                    _without_rounding,
                    "A sequence takes whole blocks: round each one up to blocks before you average.",
                ),
                Mistake(_rounds_down, "The last block of a sequence is taken even if it is not full: round up."),
                Mistake(_one_too_many, "One too many: with that number the blocks do not suffice any more."),
            ),
            hint="Turn each length into blocks, then find the largest n by trying.",
            plain="Turn the tokens of each sequence into blocks, rounded up. Take mean and standard deviation of "
            "the blocks. Count n up while the left side of the formula is within the pool.",
        ),
    ),
    quiz=QUIZ,
)
