// Attention of prompt chunks and of decodes in one launch, so that one computes while the other reads.
//
// It comes behind decode_attention.cu and prefill_attention.cu, which say what the arguments are; those of the decodes
// begin with `one_`. Both have the same cache, sizes of heads and WARPS. -DMIXED=1 leaves out their own launches.
//
// Launch: (heads, tiles * splits + item_count / G, rounded up) blocks of 32 * WARPS threads. A card starts blocks in
// their order, so the tiles, which compute for longest, come first, and the items fill what they leave free.
extern "C" __global__ void BOUNDS(THREADS, RESIDENT)
mixed_attention(const element* q, const element* k_cache, const element* v_cache, const int* table, const int* chunks,
                const int* tiles, element* out, float* sums, float2* weights, unsigned* counters, int max_blocks,
                int tile_count, int splits, const element* one_q, const int* one_table, const int* one_lengths,
                const int* one_items, const int* one_spans, element* one_out, float* one_sums, float2* one_weights,
                unsigned* one_counters, int item_count, float scale) {
    const int behind = blockIdx.y - tile_count * splits;
    if (behind < 0) {
        attend_tile(blockIdx.y % tile_count, blockIdx.x, blockIdx.y / tile_count, splits, q, k_cache, v_cache, table,
                    chunks, tiles, out, sums, weights, counters, max_blocks, scale);
    } else {
        const int item = behind * G + blockIdx.x / KV_HEADS;
        if (item < item_count)
            attend_item(item, blockIdx.x % KV_HEADS, one_q, k_cache, v_cache, 0, one_table, one_lengths, one_items,
                        one_spans, one_out, one_sums, one_weights, one_counters, max_blocks, scale);
    }
}
