// How a warp walks through the blocks of an item, and the walk without tensor cores. It comes behind attention_parts.h.

// The blocks of 16 tokens of a warp: every WARPS-th of its item.
struct Blocks {
    const uint4 *k_cache, *v_cache;
    const int* table;
    int mine;            // where their numbers begin in the table
    int kv, rounds;      // the KV head; how many
    int last;            // tokens from the first one's beginning to the last one that is attended to
    int fresh;           // of these, how many the kernel before this one wrote
    int ahead;           // numbers come 32 at a time, one a lane, ahead of use
    const uint4 *k, *v;  // the block at hand
    int newest;          // where the last token of the sequence is, counted from the beginning of that block
};
DEVICE void next_block(Blocks& at, int round, int lane) {
    if (round % LANES == 0) at.ahead = round + lane < at.rounds ? at.table[at.mine + (round + lane) * WARPS] : 0;
    const long long there = ((long long)SHUFFLE(at.ahead, round % LANES) * KV_HEADS + at.kv) * BLOCK * CACHED_ROW;
    at.k = at.k_cache + there;
    at.v = at.v_cache + there;
    at.newest = at.last - BLOCK * WARPS * round;
}
DEVICE int end_of(const Blocks& at) { return at.newest < BLOCK ? at.newest : BLOCK - 1; }  // its last valid token
// The last token of the block at hand that a line attends to.
DEVICE int last_of(const Blocks& at, int line) {
    return NEWEST > 1 ? at.newest - (NEWEST - 1 - line / G) : end_of(at);
}

#if !TENSOR
// What a lane loads of a token.
#if !E4M3
typedef uint4 portion;
DEVICE uint4 load_portion(const uint4* rows, int at) { return LOAD_ONCE(rows + at); }
DEVICE void read_portion(float* f, uint4 v) { unpack(f, v); }
#else
#if WIDE == 8
typedef uint2 portion;
#define WORD_OF(v, i) ((i) < 4 ? (v).x : (v).y)
#else
typedef bits32 portion;
#define WORD_OF(v, i) (v)
#endif
DEVICE portion load_portion(const uint4* rows, int at) { return ((const portion*)rows)[at]; }
DEVICE void read_portion(float* f, portion v) {
#pragma unroll
    for (int i = 0; i < WIDE; ++i) f[i] = from_e4m3(WORD_OF(v, i) >> 8 * (i % 4));
}
#endif
// The lines of octet `o` against all blocks of this warp. A token is spread over SPREAD lanes, WIDE numbers each; a warp looks
// at TOKENS of them side by side, and has UNROLL loads of keys and as many of values under way.
#define SPREAD ROW
#define TOKENS (LANES / SPREAD)
#define UNROLL (BLOCK / TOKENS < 4 ? BLOCK / TOKENS : 4)
DEVICE void walk_plain(Blocks& at, int o, const element* q, int sequence, float scale, int lane, float4* part,
                       float* part_most, float* part_weight) {
    const int group = lane / SPREAD, place = lane % SPREAD;
    float query[HELD][WIDE], sum[HELD][WIDE], most[HELD], weight[HELD];
#pragma unroll
    for (int g = 0; g < HELD; ++g) {
        const int line = 8 * o + g < LINES ? 8 * o + g : LINES - 1;
        unpack(query[g], ((const uint4*)q)[query_word(sequence, at.kv, line) + place]);
        most[g] = LOWEST;
        weight[g] = 0.0f;
#pragma unroll
        for (int i = 0; i < WIDE; ++i) query[g][i] *= scale, sum[g][i] = 0.0f;
    }
    for (int round = 0; round < at.rounds; ++round) {
        next_block(at, round, lane);
        const int end = end_of(at);
        for (int from = 0; from < BLOCK; from += UNROLL * TOKENS) {
            portion keys[UNROLL], values[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) {  // behind the end the last token is read again, and weighs nothing
                const int token = from + u * TOKENS + group, there = token < end ? token : end;
                keys[u] = load_portion(at.k, there * ROW + place);
                values[u] = load_portion(at.v, there * ROW + place);
            }
            float score[HELD][UNROLL], f[WIDE];
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) {
                read_portion(f, keys[u]);
#pragma unroll
                for (int g = 0; g < HELD; ++g) {
                    score[g][u] = query[g][0] * f[0];
#pragma unroll
                    for (int i = 1; i < WIDE; ++i) score[g][u] += query[g][i] * f[i];
                }
            }
#pragma unroll
            for (int g = 0; g < HELD; ++g) {
                float top = most[g];
#pragma unroll
                for (int u = 0; u < UNROLL; ++u) {
#pragma unroll
                    for (int mask = 1; mask < SPREAD; mask *= 2) score[g][u] += SHUFFLE_XOR(score[g][u], mask);
                    if (from + u * TOKENS + group > last_of(at, 8 * o + g)) score[g][u] = LOWEST;
                    top = fmaxf(top, score[g][u]);
                }
                const float shrink = EXP2(most[g] - top);
                most[g] = top;
                weight[g] *= shrink;
#pragma unroll
                for (int i = 0; i < WIDE; ++i) sum[g][i] *= shrink;
#pragma unroll
                for (int u = 0; u < UNROLL; ++u) weight[g] += score[g][u] = EXP2(score[g][u] - top);
            }
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) {
                read_portion(f, values[u]);
#pragma unroll
                for (int g = 0; g < HELD; ++g)
#pragma unroll
                    for (int i = 0; i < WIDE; ++i) sum[g][i] += score[g][u] * f[i];
            }
        }
    }
    // The groups of lanes, which saw different tokens, become one.
#pragma unroll
    for (int g = 0; g < HELD; ++g) {
        float top = most[g];
#pragma unroll
        for (int mask = SPREAD; mask < LANES; mask *= 2) top = fmaxf(top, SHUFFLE_XOR(top, mask));
        const float shrink = EXP2(most[g] - top);
        weight[g] *= shrink;
#pragma unroll
        for (int i = 0; i < WIDE; ++i) sum[g][i] *= shrink;
#pragma unroll
        for (int mask = SPREAD; mask < LANES; mask *= 2) {
            weight[g] += SHUFFLE_XOR(weight[g], mask);
#pragma unroll
            for (int i = 0; i < WIDE; ++i) sum[g][i] += SHUFFLE_XOR(sum[g][i], mask);
        }
        if (group == 0) {
#pragma unroll
            for (int i = 0; i < WIDE / 4; ++i)
                part[g * QUADS + place * (WIDE / 4) + i] =
                    make_float4(sum[g][4 * i], sum[g][4 * i + 1], sum[g][4 * i + 2], sum[g][4 * i + 3]);
        }
        if (lane == 0) part_most[g] = top, part_weight[g] = weight[g];
    }
}
#endif
