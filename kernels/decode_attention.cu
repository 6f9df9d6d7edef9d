// Attention of one new token a sequence over its paged KV cache, with grouped query heads (GQA): one launch.
//
//   out[s, h] = sum over t of softmax_t(scale q[s, h] . k[t]) v[t],   t = the tokens of sequence s
//
// q, out: [sequences][KV_HEADS * G][HEAD_DIM]; query heads G h ... G h + G - 1 share KV head h. k_cache, v_cache: [blocks]
// [KV_HEADS][16][HEAD_DIM]. table: [sequences][max_blocks], the blocks of each sequence in order. lengths: tokens a
// sequence, the new one included.
//
// Sequences are cut into items of some blocks each, since one thread block cannot read a long one alone (split-K, as in
// FlashDecoding). items: (sequence, first block, blocks) of each, 0 blocks for a place that is not used; spans: (first
// item, items) of each sequence, whose items stand side by side. Each item leaves a sum that is not divided yet, with
// its largest score and its weight (online softmax: Milakov and Gimelshein, arXiv:1805.02867). The last of a sequence
// to finish, which a counter tells, adds them up. sums, weights: room for that, [items][KV_HEADS][G * HEAD_DIM] floats
// and [items][KV_HEADS][G] pairs; counters: [sequences][KV_HEADS], zero before the first launch and after every one.
//
// Launch: (places for items, KV_HEADS) blocks of 32 * WARPS threads. scale: log2(e) / sqrt(HEAD_DIM), since exp2 is what
// the hardware has. -DOUT_GROUPS=n writes `out` as the packed activations of skinny_gemm.cu with room for 8 n rows.
//
// -DTENSOR=1 computes with tensor cores: at 8 query heads a KV head the plain form has more to compute than a card can
// hide behind its reads. Both are one loop over blocks of 16 tokens; the plain one comes first.
#ifndef HEAD_DIM
#define HEAD_DIM 128
#endif
#ifndef G
#define G 4
#endif
#ifndef KV_HEADS
#define KV_HEADS 8
#endif
#ifndef WARPS
#define WARPS 4
#endif
#ifndef RESIDENT
#define RESIDENT 1  // thread blocks a multiprocessor should hold: bounds the registers
#endif
#ifndef TENSOR
#define TENSOR 0
#endif
#ifndef OUT_GROUPS
#define OUT_GROUPS 0
#endif
#ifndef MIXED
#define MIXED 0  // 1: mixed_attention.cu launches this beside a prompt chunk
#endif
#define BLOCK 16
#define THREADS (WARPS * LANES)
#define ROW (HEAD_DIM / WIDE)       // 16-byte words a row
#define QUADS (HEAD_DIM / 4)        // float4s a row of sums
#ifndef TOGETHER
#define TOGETHER 16  // parts of a sequence that are fetched side by side when they are added up
#endif
#define LOWEST -1e30f            // stands for minus infinity where differences are taken

// Four numbers of a result, at `quad` of query head `head` of sequence `sequence`.
DEVICE void store(element* out, int sequence, int head, int quad, float4 v) {
    const int column = head * HEAD_DIM + 4 * quad;
#if OUT_GROUPS
    element* to = out + (((long long)(column / 32 * OUT_GROUPS + sequence / 8) * 8 + sequence % 8) * 4 + column / 8 % 4) * 8 + column % 8;
#else
    element* to = out + (long long)sequence * KV_HEADS * G * HEAD_DIM + column;
#endif
#if ELEMENT == 2
    *(float4*)to = v;
#else
    uint2 both;
    both.x = pair(v.x, v.y);
    both.y = pair(v.z, v.w);
    *(uint2*)to = both;
#endif
}

// What one thread block does: item `item` of KV head `kv`.
DEVICE void attend_item(int item, int kv, const element* q, const element* k_cache, const element* v_cache,
                        const int* table, const int* lengths, const int* items, const int* spans, element* out,
                        float* sums, float2* weights, unsigned* counters, int max_blocks, float scale) {
    __shared__ float4 part[WARPS][G * QUADS];
    __shared__ float part_most[WARPS][G], part_weight[WARPS][G];
    __shared__ int last;
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES;
    const int sequence = items[3 * item], first = items[3 * item + 1], blocks = items[3 * item + 2];
    START_NEXT();
    if (blocks == 0) {
        AWAIT_PREVIOUS();
        return;
    }
    const int length = lengths[sequence], rounds = (blocks - warp + WARPS - 1) / WARPS;  // of this warp
    const int* mine = table + (long long)sequence * max_blocks + first + warp;
    const int span = spans[2 * sequence + 1];

    // Block numbers come 32 at a time, one a lane, ahead of use.
    int ahead = 0;
    const uint4 *k = 0, *v = 0;
    int end = 0;  // the last valid token of the block at hand
#define NEXT_BLOCK(round)                                                                                        \
    {                                                                                                            \
        if ((round) % LANES == 0) ahead = (round) + lane < rounds ? mine[((round) + lane) * WARPS] : 0;          \
        const long long at = ((long long)SHUFFLE(ahead, (round) % LANES) * KV_HEADS + kv) * BLOCK * ROW;         \
        k = (const uint4*)k_cache + at;                                                                          \
        v = (const uint4*)v_cache + at;                                                                          \
        end = length - 1 - BLOCK * (first + warp + (round) * WARPS);                                             \
        if (end >= BLOCK) end = BLOCK - 1;                                                                       \
    }

#if !TENSOR
    // A token is spread over SPREAD lanes, 16 bytes each; a warp looks at TOKENS of them side by side, and has UNROLL
    // loads of keys and as many of values under way.
#define SPREAD ROW
#define TOKENS (LANES / SPREAD)
#define UNROLL (BLOCK / TOKENS < 4 ? BLOCK / TOKENS : 4)
    const int group = lane / SPREAD, place = lane % SPREAD;
    AWAIT_PREVIOUS();
    float query[G][WIDE], sum[G][WIDE], most[G], weight[G];
#pragma unroll
    for (int g = 0; g < G; ++g) {
        unpack(query[g], ((const uint4*)q)[((long long)sequence * KV_HEADS + kv) * G * ROW + g * ROW + place]);
        most[g] = LOWEST;
        weight[g] = 0.0f;
#pragma unroll
        for (int i = 0; i < WIDE; ++i) query[g][i] *= scale, sum[g][i] = 0.0f;
    }
    for (int round = 0; round < rounds; ++round) {
        NEXT_BLOCK(round)
        for (int from = 0; from < BLOCK; from += UNROLL * TOKENS) {
            uint4 keys[UNROLL], values[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) {  // behind the end the last token is read again, and weighs nothing
                const int token = from + u * TOKENS + group, there = token < end ? token : end;
                keys[u] = LOAD_ONCE(k + there * ROW + place);
                values[u] = LOAD_ONCE(v + there * ROW + place);
            }
            float score[G][UNROLL], f[WIDE];
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) {
                unpack(f, keys[u]);
#pragma unroll
                for (int g = 0; g < G; ++g) {
                    score[g][u] = query[g][0] * f[0];
#pragma unroll
                    for (int i = 1; i < WIDE; ++i) score[g][u] += query[g][i] * f[i];
                }
            }
#pragma unroll
            for (int g = 0; g < G; ++g) {
                float top = most[g];
#pragma unroll
                for (int u = 0; u < UNROLL; ++u) {
#pragma unroll
                    for (int mask = 1; mask < SPREAD; mask *= 2) score[g][u] += SHUFFLE_XOR(score[g][u], mask);
                    if (from + u * TOKENS + group > end) score[g][u] = LOWEST;
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
                unpack(f, values[u]);
#pragma unroll
                for (int g = 0; g < G; ++g)
#pragma unroll
                    for (int i = 0; i < WIDE; ++i) sum[g][i] += score[g][u] * f[i];
            }
        }
    }
    // The groups of lanes, which saw different tokens, become one.
#pragma unroll
    for (int g = 0; g < G; ++g) {
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
                part[warp][g * QUADS + place * (WIDE / 4) + i] =
                    make_float4(sum[g][4 * i], sum[g][4 * i + 1], sum[g][4 * i + 2], sum[g][4 * i + 3]);
        }
        if (lane == 0) part_most[warp][g] = top, part_weight[warp][g] = weight[g];
    }

#elif !HAS_MMA
#error "tensor cores as used here need compute capability 8.0 or later: compile with -DTENSOR=0"
#else
    // Keys and values go from memory into mma as they were loaded: a dot product may add up its terms in any order, so
    // the 16 bytes of a lane are two pairs of its fragment, and again two. Scores S = Q K^T have the query heads as
    // rows (8 of 16 are used); what mma leaves in a lane, one head and four tokens, is what the product V^T S^T wants
    // of it. Lane 4 row + quarter.
#define PIECES (HEAD_DIM / 32)  // 16-byte words of a row that one lane loads of K
#define SIDES (HEAD_DIM / 64)   // and of V
    const int row = lane / 4, quarter = lane % 4;
    uint4 keys[2][PIECES], values[4][SIDES], query[PIECES];
#define LOAD_KEYS()                                                                   \
    {                                                                                 \
        const int above = row < end ? row : end, below = row + 8 < end ? row + 8 : end; \
        _Pragma("unroll") for (int i = 0; i < PIECES; ++i) {                          \
            keys[0][i] = LOAD_ONCE(k + above * ROW + 4 * i + quarter);                \
            keys[1][i] = LOAD_ONCE(k + below * ROW + 4 * i + quarter);                \
        }                                                                             \
    }
#define LOAD_VALUES()                                                                       \
    {                                                                                       \
        _Pragma("unroll") for (int j = 0; j < 4; ++j) {                                     \
            int token = 2 * quarter + j % 2 + j / 2 * 8;                                    \
            token = token < end ? token : end;                                              \
            _Pragma("unroll") for (int i = 0; i < SIDES; ++i)                               \
                values[j][i] = LOAD_ONCE(v + token * ROW + 8 * i + row);                    \
        }                                                                                   \
    }
    // The last block holds the new token, which the kernel before this one wrote.
    const int newest = (length - 1) / BLOCK - first - warp;
    const bool early = rounds > 0 && newest != 0;
    if (rounds > 0) { NEXT_BLOCK(0) }
    if (early) { LOAD_KEYS() LOAD_VALUES() }
    AWAIT_PREVIOUS();
    if (rounds > 0 && !early) { LOAD_KEYS() LOAD_VALUES() }
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
        query[i].x = query[i].y = query[i].z = query[i].w = 0;
        if (row < G) query[i] = ((const uint4*)q)[((long long)sequence * KV_HEADS + kv) * G * ROW + row * ROW + 4 * i + quarter];
    }
    float sum[4 * SIDES][4], most = LOWEST, weight = 0.0f;  // the weight of this lane's tokens only, until the end
#pragma unroll
    for (int i = 0; i < 4 * SIDES; ++i) sum[i][0] = sum[i][1] = sum[i][2] = sum[i][3] = 0.0f;
    for (int round = 0; round < rounds; ++round) {
        const int valid = end;
        float s[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
#pragma unroll
        for (int i = 0; i < PIECES; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                mma(s[half], query[i].x, 0, query[i].y, 0, keys[half][i].x, keys[half][i].y);
                mma(s[half], query[i].z, 0, query[i].w, 0, keys[half][i].z, keys[half][i].w);
            }
        if (round + 1 < rounds) {  // the next keys are asked for as soon as these are used, the next values likewise
            NEXT_BLOCK(round + 1)
            LOAD_KEYS()
        }
        float p0 = 2 * quarter <= valid ? s[0][0] * scale : LOWEST, p1 = 2 * quarter + 1 <= valid ? s[0][1] * scale : LOWEST;
        float p2 = 2 * quarter + 8 <= valid ? s[1][0] * scale : LOWEST, p3 = 2 * quarter + 9 <= valid ? s[1][1] * scale : LOWEST;
        float top = fmaxf(fmaxf(p0, p1), fmaxf(p2, p3));
        top = fmaxf(top, SHUFFLE_XOR(top, 1));
        top = fmaxf(top, SHUFFLE_XOR(top, 2));
        if (ANY_LANE(top > most)) {
            top = fmaxf(top, most);
            const float shrink = EXP2(most - top);
            most = top;
            weight *= shrink;
            // Sums belong to the heads 2 quarter and 2 quarter + 1; lane 4 head knows how much that one shrinks.
            const float even = SHUFFLE(shrink, 8 * quarter), odd = SHUFFLE(shrink, 8 * quarter + 4);
#pragma unroll
            for (int i = 0; i < 4 * SIDES; ++i) sum[i][0] *= even, sum[i][1] *= odd, sum[i][2] *= even, sum[i][3] *= odd;
        }
        p0 = EXP2(p0 - most), p1 = EXP2(p1 - most), p2 = EXP2(p2 - most), p3 = EXP2(p3 - most);
        weight += (p0 + p1) + (p2 + p3);
        const bits32 near = pair(p0, p1), far = pair(p2, p3);
#define ADD_VALUES(n, word)                                                                                  \
    mma(sum[4 * i + n], TAKE_LOW(values[0][i].word, values[1][i].word), TAKE_HIGH(values[0][i].word, values[1][i].word), \
        TAKE_LOW(values[2][i].word, values[3][i].word), TAKE_HIGH(values[2][i].word, values[3][i].word), near, far);
#pragma unroll
        for (int i = 0; i < SIDES; ++i) { ADD_VALUES(0, x) ADD_VALUES(1, y) ADD_VALUES(2, z) ADD_VALUES(3, w) }
        if (round + 1 < rounds) { LOAD_VALUES() }
    }
    weight += SHUFFLE_XOR(weight, 1);
    weight += SHUFFLE_XOR(weight, 2);
    if (quarter == 0 && row < G) part_most[warp][row] = most, part_weight[warp][row] = weight;
#pragma unroll
    for (int e = 0; e < 2; ++e)
        if (2 * quarter + e < G) {
            float4* to = part[warp] + (2 * quarter + e) * QUADS + 2 * row;
#pragma unroll
            for (int i = 0; i < SIDES; ++i) {
                to[16 * i] = make_float4(sum[4 * i][e], sum[4 * i][2 + e], sum[4 * i + 1][e], sum[4 * i + 1][2 + e]);
                to[16 * i + 1] = make_float4(sum[4 * i + 2][e], sum[4 * i + 2][2 + e], sum[4 * i + 3][e], sum[4 * i + 3][2 + e]);
            }
        }
#endif
    __syncthreads();

    // The warps become one.
    for (int at = thread; at < G * QUADS; at += THREADS) {
        const int g = at / QUADS;
        float top = LOWEST, weight = 0.0f;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int w = 0; w < WARPS; ++w) top = fmaxf(top, part_most[w][g]);
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            const float share = EXP2(part_most[w][g] - top);
            const float4 one = part[w][at];
            weight += share * part_weight[w][g];
            sum.x += share * one.x, sum.y += share * one.y, sum.z += share * one.z, sum.w += share * one.w;
        }
        if (span == 1) {
            const float r = 1.0f / weight;
            store(out, sequence, kv * G + g, at % QUADS, make_float4(r * sum.x, r * sum.y, r * sum.z, r * sum.w));
        } else {
            ((float4*)sums)[((long long)item * KV_HEADS + kv) * G * QUADS + at] = sum;
            if (at % QUADS == 0) weights[((long long)item * KV_HEADS + kv) * G + g] = make_float2(top, weight);
        }
    }
    if (span == 1) return;

    // Who comes last adds up all items of the sequence.
    FENCE();
    __syncthreads();
    if (thread == 0) {
        unsigned* counter = counters + sequence * KV_HEADS + kv;
        last = ATOMIC_ADD(counter, 1u) == (unsigned)(span - 1);
        if (last) *counter = 0;
    }
    __syncthreads();
    if (!last) return;
    FENCE();
    const long long base = (long long)spans[2 * sequence] * KV_HEADS + kv;
    for (int at = thread; at < G * QUADS; at += THREADS) {
        const int g = at / QUADS;
        float top = LOWEST, weight = 0.0f;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        // Many are asked for before the first is needed: one after the other, each would take a trip to the second cache.
        for (int from = 0; from < span; from += TOGETHER) {
            float2 its[TOGETHER];
            float4 one[TOGETHER];
            float most = top;
#pragma unroll
            for (int u = 0; u < TOGETHER; ++u) {
                const long long part = base + (long long)(from + u < span ? from + u : span - 1) * KV_HEADS;
                its[u] = weights[part * G + g];
                one[u] = ((const float4*)sums)[part * G * QUADS + at];
            }
#pragma unroll
            for (int u = 0; u < TOGETHER; ++u) most = fmaxf(most, its[u].x);
            const float shrink = EXP2(top - most);
            top = most, weight *= shrink;
            sum.x *= shrink, sum.y *= shrink, sum.z *= shrink, sum.w *= shrink;
#pragma unroll
            for (int u = 0; u < TOGETHER; ++u) {
                const float share = from + u < span ? EXP2(its[u].x - top) : 0.0f;
                weight += share * its[u].y;
                sum.x += share * one[u].x, sum.y += share * one[u].y, sum.z += share * one[u].z, sum.w += share * one[u].w;
            }
        }
        const float r = 1.0f / weight;
        store(out, sequence, kv * G + g, at % QUADS, make_float4(r * sum.x, r * sum.y, r * sum.z, r * sum.w));
    }
}

#if !MIXED
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
decode_attention(const element* q, const element* k_cache, const element* v_cache, const int* table,
                 const int* lengths, const int* items, const int* spans, element* out, float* sums, float2* weights,
                 unsigned* counters, int max_blocks, float scale) {
    attend_item(blockIdx.x, blockIdx.y, q, k_cache, v_cache, table, lengths, items, spans, out, sums, weights, counters,
                max_blocks, scale);
}
#endif
