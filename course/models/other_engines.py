"""What SGLang and TensorRT-LLM take if an option is left out: `engine_defaults` is vLLM's."""

from course.models.gpus import GPU

SGLANG = "SGLang 0.5.9"
SGLANG_SLOTS = 2_048  # model_executor/model_runner.py: from 2,048 to 4,096, by the pool over the context length
SGLANG_PREFILL_TOKENS = 16_384  # server_args.py: --max-prefill-tokens
SGLANG_PAGE = 1  # tokens of a KV block
SGLANG_CHUNKS = ((35, 2_048), (60, 4_096), (160, 8_192))
"""server_args.py: GiB of the card, as nvidia-smi prints it, below which --chunked-prefill-size is so many tokens;
16,384 from the last one on."""

TENSORRT_LLM = "TensorRT-LLM 1.2"
TENSORRT_LLM_SLOTS = 2_048  # llmapi/llm_args.py: max_batch_size
TENSORRT_LLM_TOKENS = 8_192  # max_num_tokens
TENSORRT_LLM_BLOCK = 32  # tokens_per_block


def sglang_chunk(gpu: GPU | None) -> int:
    """--chunked-prefill-size of SGLang 0.5.9 by the memory of the card; that of 60 to 160 GiB if none is named."""
    if gpu is None or (gpu.driver_memory_mib is None and gpu.memory_bytes is None):
        return 8_192
    mib = gpu.driver_memory_mib or (gpu.memory_bytes or 0) / 2**20
    return next((tokens for gib, tokens in SGLANG_CHUNKS if mib < gib * 1_024), 16_384)
