"""Which options of vLLM 0.19 change batching or KV memory, and are not part of a policy or of KV settings here."""

WITHOUT_MODEL = {
    "--scheduling-policy": "order: the simulator's is first come first served",
    "--speculative-config": "drafted tokens: a step of the simulator emits one token per sequence",
    "--kv-transfer-config": "KV cache that comes from elsewhere",
    "--kv-offloading-size": "KV cache that moves to the host",
    "--cpu-offload-gb": "weights that are read over the bus, which frees the card and slows each step",
    "--offload-group-size": "weights that are read over the bus, which frees the card and slows each step",
    "--enable-lora": "adapters, which take memory and limit who may share a batch",
    "--scheduler-cls": "a scheduler of your own",
    "--enable-dbo": "overlapped micro-batches",
    "--ubatch-size": "micro-batches",
    "--async-scheduling": "whether a step is scheduled while the one before runs",
    "--disable-chunked-mm-input": "whether an image may be cut by the budget",
    "--max-long-partial-prefills": "several long prompts at once",
    "--kv-sharing-fast-prefill": "prompts that skip layers",
}
SHARDING = {
    "--pipeline-parallel-size": "pipeline stages, which divide layers and KV by the stage",
    "--data-parallel-size": "replicas",
}
MEMORY = {
    "--disable-hybrid-kv-cache-manager": "layers with a window then keep every token, so a token takes more KV memory",
    "--disable-sliding-window": "every layer then keeps every token, up to the window as the longest length",
    "--decode-context-parallel-size": "the KV of a token is then on one of this many ranks: more tokens fit",
    "--prefill-context-parallel-size": "prompts, and their KV, are then divided over this many ranks",
    "--quantization": "weights then take another number of bytes, and the KV pool is what they leave",
    "--mamba-cache-mode": "how many recurrent states a sequence keeps",
    "--mamba-cache-dtype": "bytes of a recurrent state",
    "--mamba-ssm-cache-dtype": "bytes of a recurrent state",
    "--mamba-block-size": "after how many tokens a recurrent state is kept",
    "--kv-cache-dtype-skip-layers": "layers whose KV keeps its own type",
    "--enable-expert-parallel": "whole experts per rank instead of a part of each, so a card may hold other weights",
    "--enable-eplb": "copies of experts take memory",
    "--skip-mm-profiling": "the peak of the encoder is then not kept free",
    "--limit-mm-per-prompt": "the peak of the encoder, which is kept free of KV",
    "--language-model-only": "no encoder, whose weights and peak leave room",
    "--hf-overrides": "keys of the config.json, from which KV and weights follow",
    "--num-gpu-blocks-override": "blocks, instead of what fits in the memory",
    "--max-cudagraph-capture-size": "graphs of so many sizes take memory",
    "--cudagraph-capture-sizes": "graphs of so many sizes take memory",
}
"""Options that change how much KV cache there is, or what a token takes of it: said beside the policy, for `course kv`
and the engine's own log to answer. None of them changes which tokens a step runs while the pool lasts."""
ONE_IS_NONE = frozenset(
    {"--decode-context-parallel-size", "--prefill-context-parallel-size", *SHARDING, "--ubatch-size"}
)
WIDE = {"float32": 4, "float": 4}  # --dtype: bytes an element, if it is not two


def on_memory(option: str, value: str | bool) -> str | None:
    """The sentence about an option that changes KV memory; None for one that does not, as it is given."""
    if option == "--dtype" and value in WIDE:
        return (
            "--dtype float32 takes four bytes an element of weights, and of KV unless --kv-cache-dtype says otherwise"
        )
    if option not in MEMORY or value is False or (option in ONE_IS_NONE and value in ("1", "0")):
        return None
    if option == "--mamba-cache-mode" and value == "none":
        return None
    return (
        f"{option} changes KV memory and is not counted here: {MEMORY[option]}. `course kv` has it, or the engine's log"
    )
