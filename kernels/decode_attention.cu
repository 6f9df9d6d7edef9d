// Attention of the newest tokens of each sequence over its paged KV cache, with grouped query heads (GQA): one launch.
//
//   out[s, r, h] = sum over t of softmax_t(scale q[s, r, h] . k[t]) v[t],   t = the tokens of s up to its new token r
//
// A decode has one new token; where drafts are verified, each sequence has NEWEST, the drafts behind the token that is
// sure, and its keys and values are read once for all of them. q, out: [sequences][NEWEST][KV_HEADS * G][HEAD_DIM]; query
// heads G h ... G h + G - 1 share KV head h. k_cache, v_cache: [blocks][KV_HEADS][16][HEAD_DIM]. table:
// [sequences][max_blocks], the blocks of each sequence in order. lengths: tokens a sequence, the new ones included.
//
// Sequences are cut into items of some blocks each, since one thread block cannot read a long one alone (split-K, as in
// FlashDecoding). items: (sequence, first block, blocks) of each, 0 blocks for a place that is not used; spans: (first
// item, items) of each sequence, whose items stand side by side. Each item leaves a sum that is not divided yet, with
// its largest score and its weight (online softmax: Milakov and Gimelshein, arXiv:1805.02867). The last of a sequence
// to finish, which a counter tells, adds them up. sums, weights: room for that, [items][KV_HEADS][LINES * HEAD_DIM] floats
// and [items][KV_HEADS][LINES] pairs; counters: [sequences][KV_HEADS], zero before the first launch and after every one.
// Launch: (places for items, KV_HEADS) blocks of 32 * WARPS threads.
//
// -DCLUSTER=n cuts every sequence into n parts of about equal size instead, which are the blocks of a cluster (compute
// capability 9.0) and add up out of each other's shared memory: two meetings in place of a trip to memory. items, spans,
// sums, weights and counters are not looked at. Launch: (sequences * CLUSTER, KV_HEADS) blocks. For few sequences.
// -DSHARERS=n: n clusters share the new tokens of a sequence, NEWEST each; then there are so many times more blocks.
//
// -DE4M3=1: the caches have 8-bit numbers, a sign, 4 bits of exponent and 3 of mantissa, in units of scales: [2][KV_HEADS],
// of keys and of values. Without it scales is not looked at.
//
// scale: log2(e) / sqrt(HEAD_DIM), since exp2 is what the hardware has. -DOUT_GROUPS=n writes `out` as the packed
// activations of skinny_gemm.cu with room for 8 n rows.
//
// -DTENSOR=1 computes with tensor cores: at 8 queries a KV head the plain form has more to compute than a card can hide
// behind its reads. Both are one loop over blocks of 16 tokens; the plain one comes first, and walks once for every eight
// lines.
// What one thread block does: item `item` of KV head `kv`.
DEVICE void attend_item(int item, int kv, const element* q, const cached* k_cache, const cached* v_cache,
                        const float* scales, const int* table, const int* lengths, const int* items, const int* spans, element* out,
                        float* sums, float2* weights, unsigned* counters, int max_blocks, float scale) {
    __shared__ float4 part[WARPS][HELD * QUADS];
    __shared__ float part_most[WARPS][HELD], part_weight[WARPS][HELD];
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES;
#if CLUSTER > 1
    // Where clusters share the new tokens of a sequence, each counts as a sequence with fewer of them.
    const int sequence = item / CLUSTER, rank = item % CLUSTER, sharer = sequence % SHARERS;
    const int of = sequence / SHARERS, length = lengths[of] - (SHARERS - 1 - sharer) * NEWEST;
    const int need = (length + BLOCK - 1) / BLOCK, first = need * rank / CLUSTER;
    const int blocks = need * (rank + 1) / CLUSTER - first, span = CLUSTER;
#if defined(CPU_SHIM)
    __shared__ float4 all_wholes[CLUSTER][LINES * QUADS];
    __shared__ float2 all_its[CLUSTER][LINES];
    float4* whole = all_wholes[rank];
    float2* its = all_its[rank];
#else
    __shared__ float4 whole[LINES * QUADS];
    __shared__ float2 its[LINES];
#endif
    START_NEXT();
#else
    const int sequence = items[3 * item], first = items[3 * item + 1], blocks = items[3 * item + 2];
    START_NEXT();
    if (blocks == 0) {
        AWAIT_PREVIOUS();
        return;
    }
    const int length = lengths[sequence], span = spans[2 * sequence + 1], of = sequence, sharer = 0;
#endif
    Blocks at;
    at.k_cache = (const uint4*)k_cache, at.v_cache = (const uint4*)v_cache;
    at.table = table, at.mine = of * max_blocks + first + warp, at.fresh = (sharer + 1) * NEWEST;
    at.kv = kv, at.rounds = (blocks - warp + WARPS - 1) / WARPS, at.last = length - 1 - BLOCK * (first + warp);
    at.ahead = at.newest = 0, at.k = at.v = 0;
#if E4M3
    const float unit = TENSOR ? E4M3_UNIT : 1.0f, v_scale = scales[KV_HEADS + kv] * unit;
    scale *= scales[kv] * unit;
#else
    (void)scales;
#endif
#if TENSOR
    const int row = lane / 4, quarter = lane % 4;
    float sum[OCTETS][SUMS][4], most[OCTETS], weight[OCTETS];
    walk_tensor(at, q, sequence, scale, lane, sum, most, weight);
#pragma unroll
#else
    AWAIT_PREVIOUS();
#pragma unroll 1
#endif
    for (int o = 0; o < OCTETS; ++o) {
#if !TENSOR
        walk_plain(at, o, q, sequence, scale, lane, part[warp], part_most[warp], part_weight[warp]);
#else
        weight[o] += SHUFFLE_XOR(weight[o], 1);
        weight[o] += SHUFFLE_XOR(weight[o], 2);
        if (quarter == 0 && row < HELD) part_most[warp][row] = most[o], part_weight[warp][row] = weight[o];
#pragma unroll
        for (int e = 0; e < 2; ++e)
            if (2 * quarter + e < HELD) {
                float4* to = part[warp] + (2 * quarter + e) * QUADS;
#pragma unroll
                for (int t = 0; t < SUMS / 2; ++t) {
                    const float *four = sum[o][2 * t], *more = sum[o][2 * t + 1];
                    to[QUAD_OF_SUMS(t, row)] = make_float4(four[e], four[2 + e], more[e], more[2 + e]);
                }
            }
#endif
        __syncthreads();

        // The warps become one.
        for (int i = thread; i < HELD * QUADS; i += THREADS) {
            const int g = i / QUADS, line = 8 * o + g, place = line * QUADS + i % QUADS;
            if (line >= LINES) break;
            float top = LOWEST, total = 0.0f;
            float4 one = make_float4(0.0f, 0.0f, 0.0f, 0.0f), parts[WARPS];
            float2 theirs[WARPS];
#pragma unroll
            for (int w = 0; w < WARPS; ++w) {
                parts[w] = part[w][i];
                theirs[w] = make_float2(part_most[w][g], part_weight[w][g]);
            }
            add_parts(one, top, total, parts, theirs, WARPS);
#if E4M3
            one.x *= v_scale, one.y *= v_scale, one.z *= v_scale, one.w *= v_scale;
#endif
#if CLUSTER > 1
            whole[place] = one;
            if (i % QUADS == 0) its[line] = make_float2(top, total);
#else
            if (span == 1) {
                store(out, sequence, kv, line, i % QUADS, one, total);
            } else {
                const long long leave = (long long)item * KV_HEADS + kv;
                ((float4*)sums)[leave * LINES * QUADS + place] = one;
                if (i % QUADS == 0) weights[leave * LINES + line] = make_float2(top, total);
            }
#endif
        }
        if (o + 1 < OCTETS) __syncthreads();
    }
#if CLUSTER > 1
    (void)span;
    MEET_CLUSTER();
    merge_cluster(whole, its, rank, sequence, kv, out);
    MEET_CLUSTER();  // nobody leaves while another reads what it found
#else
    if (span > 1) merge_items(sums, weights, counters, spans[2 * sequence], span, sequence, kv, out);
#endif
}

#if CLUSTER > 1 && !defined(CPU_SHIM)
#define OF_A_CLUSTER __cluster_dims__(CLUSTER, 1, 1)
#else
#define OF_A_CLUSTER
#endif
#if !MIXED
extern "C" __global__ void OF_A_CLUSTER BOUNDS(THREADS, RESIDENT)
decode_attention(const element* q, const cached* k_cache, const cached* v_cache, const float* scales,
                 const int* table, const int* lengths, const int* items, const int* spans, element* out, float* sums,
                 float2* weights, unsigned* counters, int max_blocks, float scale) {
    attend_item(blockIdx.x, blockIdx.y, q, k_cache, v_cache, scales, table, lengths, items, spans, out, sums, weights,
                counters, max_blocks, scale);
}
#endif
