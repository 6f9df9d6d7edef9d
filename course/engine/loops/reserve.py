"""What a request-level batch reserves: its longest prompt and answer, in every slot."""

from course.memory.kvcache import KVCache, blocks_for


def check_batch_fits(cache: KVCache | None, width: int, prompt: int, output: int) -> int:
    """KV blocks that a padded batch reserves, 0 without a cache. Raises ValueError where there are not so many."""
    if cache is None:
        return 0
    blocks = width * blocks_for(prompt + output - 1, cache.block_size)
    if blocks > cache.num_blocks:
        raise ValueError(
            f"a batch of {width} requests padded to {prompt} prompt and {output} output tokens reserves {blocks} KV "
            f"blocks, and num_blocks is {cache.num_blocks}: lower max_num_seqs to at most "
            f"{cache.num_blocks * width // blocks}, or give the cache more blocks"
        )
    return blocks
