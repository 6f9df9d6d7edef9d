// Causal attention of prompt chunks over the paged KV cache, which already holds the chunks' own keys and values.
//
// A token at position p of its prompt attends to the keys 0 ... p: the `cached` tokens of earlier chunks and those of
// its own chunk up to itself. q, out: [tokens][KV_HEADS * G][HEAD_DIM]. k_cache, v_cache, table: as in decode_attention.cu.
// chunks: (first row of q, tokens, cached tokens, row of the table) of each. tiles: (chunk, first token in the chunk)
// of each tile of TILE tokens; one that begins behind the end of its chunk does nothing. scale: log2(e) / sqrt(HEAD_DIM).
//
// Launch: (tiles, query heads, splits) blocks of 32 * WARPS threads. With several splits each takes a share of the
// keys, and the last to finish adds them up as in decode_attention.cu: sums [tiles][heads][splits][TILE][HEAD_DIM] floats,
// weights [tiles][heads][splits][TILE] pairs, counters [tiles][heads], zero before the first launch and after each.
//
// -DSPLIT=0 leaves that out: it costs registers. The cache may have up to 2^32 / (KV_HEADS * HEAD_DIM * 2) blocks.
//
// -DTENSOR=0: a warp a token, plain cores, no splits. -DTENSOR=1: FlashAttention-2 (Dao, arXiv:2307.08691) with
// mma, keys and values through shared memory, SHARED_BYTES = 2 (TILE + 2 KEYS) (HEAD_DIM + 8) of it.
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
#ifndef SLABS
#define SLABS 1  // of 16 tokens a warp
#endif
#ifndef RESIDENT
#define RESIDENT 1
#endif
#ifndef TENSOR
#define TENSOR 0
#endif
#ifndef SPLIT
#define SPLIT 0
#endif
#ifndef MIXED
#define MIXED 0  // 1: mixed_attention.cu launches this beside decodes
#endif
#define BLOCK 16
#define THREADS (WARPS * LANES)
#define HEADS (KV_HEADS * G)
#define ROW (HEAD_DIM / WIDE)
#define LOWEST -1e30f
#define KEYS 64
#if TENSOR
#define TILE (16 * SLABS * WARPS)
#else
#define TILE WARPS
#endif

// What one thread block does: tile `tile` of query head `head`, the `split`-th of `splits` shares of its keys.
DEVICE void attend_tile(int tile, int head, int split, int splits, const element* q, const element* k_cache,
                        const element* v_cache, const int* table, const int* chunks, const int* tiles, element* out,
                        float* sums, float2* weights, unsigned* counters, int max_blocks, float scale) {
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES;
    const int kv = head / G;
    const int* chunk = chunks + 4 * tiles[2 * tile];
    const int from = tiles[2 * tile + 1], row0 = chunk[0], tokens = chunk[1], cached = chunk[2];
    const int* mine = table + (long long)chunk[3] * max_blocks;
    START_NEXT();
    AWAIT_PREVIOUS();
    if (from >= tokens) return;  // the whole block

#if !TENSOR
#define SPREAD ROW
#define SIDE_BY_SIDE (LANES / SPREAD)
    const int group = lane / SPREAD, place = lane % SPREAD;
    const int token = from + warp < tokens ? from + warp : tokens - 1, end = cached + token;  // the last key it sees
    const long long at = (long long)(row0 + token) * HEADS + head;
    float query[WIDE], sum[WIDE], most = LOWEST, weight = 0.0f, f[WIDE];
    unpack(query, ((const uint4*)q)[at * ROW + place]);
#pragma unroll
    for (int i = 0; i < WIDE; ++i) query[i] *= scale, sum[i] = 0.0f;
    for (int first = 0; first <= cached + tokens - 1; first += SIDE_BY_SIDE) {  // equally often in every warp
        const int key = first + group, there = key < end ? key : end;
        const long long word = (((long long)mine[there / BLOCK] * KV_HEADS + kv) * BLOCK + there % BLOCK) * ROW + place;
        unpack(f, ((const uint4*)k_cache)[word]);
        float score = query[0] * f[0];
#pragma unroll
        for (int i = 1; i < WIDE; ++i) score += query[i] * f[i];
#pragma unroll
        for (int mask = 1; mask < SPREAD; mask *= 2) score += SHUFFLE_XOR(score, mask);
        if (key > end) score = LOWEST;
        const float top = fmaxf(most, score), shrink = EXP2(most - top), share = EXP2(score - top);
        most = top;
        weight = weight * shrink + share;
        unpack(f, ((const uint4*)v_cache)[word]);
#pragma unroll
        for (int i = 0; i < WIDE; ++i) sum[i] = sum[i] * shrink + share * f[i];
    }
    float top = most;
#pragma unroll
    for (int mask = SPREAD; mask < LANES; mask *= 2) top = fmaxf(top, SHUFFLE_XOR(top, mask));
    const float shrink = EXP2(most - top);
    weight *= shrink;
#pragma unroll
    for (int i = 0; i < WIDE; ++i) sum[i] *= shrink;
#pragma unroll
    for (int mask = SPREAD; mask < LANES; mask *= 2) {
        weight += SHUFFLE_XOR(weight, mask);
#pragma unroll
        for (int i = 0; i < WIDE; ++i) sum[i] += SHUFFLE_XOR(sum[i], mask);
    }
#pragma unroll
    for (int i = 0; i < WIDE; ++i) sum[i] /= weight;
    if (group == 0 && from + warp < tokens) ((uint4*)out)[at * ROW + place] = pack(sum);

#elif !HAS_MMA
#error "tensor cores as used here need compute capability 8.0 or later: compile with -DTENSOR=0"
#else
#define PITCH (HEAD_DIM + 8)  // elements a row in shared memory: 16 bytes more, so that rows begin in different banks
#define DEEP (HEAD_DIM / 16)
    SHARED(element, memory);
    element *keys = memory, *values = keys + KEYS * PITCH, *queries = values + KEYS * PITCH;
    const int row = lane / 4, quarter = lane % 4;
#if !SPLIT
    splits = 1, split = 0;
#endif
    for (int i = thread; i < TILE * ROW; i += THREADS) {
        const int r = i / ROW, token = from + r < tokens ? from + r : tokens - 1;
        ((uint4*)(queries + r * PITCH))[i % ROW] = ((const uint4*)q)[((long long)(row0 + token) * HEADS + head) * ROW + i % ROW];
    }
    const int seen = cached + (from + TILE < tokens ? from + TILE : tokens);  // keys that some token of the tile sees
    const int all = (seen + KEYS - 1) / KEYS, begin = all * split / splits, stop = all * (split + 1) / splits;
    const int first_row = cached + from + warp * 16 * SLABS;  // the position of this warp's first token

#define COPY(to, cache, t)                                                                                    \
    {                                                                                                         \
        _Pragma("unroll 2") for (int i = 0; i < KEYS * ROW / THREADS; ++i) {                                    \
            const int word = thread + i * THREADS, r = word / ROW;                                            \
            int key = (t) * KEYS + r;                                                                         \
            key = key < seen ? key : seen - 1;                                                                \
            COPY_ASYNC((uint4*)(to + r * PITCH) + word % ROW,                                                 \
                       (const uint4*)cache + (((unsigned)mine[key / BLOCK] * KV_HEADS + kv) * BLOCK + key % BLOCK) * ROW + word % ROW); \
        }                                                                                                     \
        COPY_COMMIT();                                                                                        \
    }
    // Where this lane's row of each 8 x 8 matrix begins.
    const element* q_rows = queries + (warp * 16 * SLABS + lane % 16) * PITCH + lane / 16 * 8;
    const element* k_rows = keys + (lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 8;
    const element* v_rows = values + (lane % 8 + lane / 8 % 2 * 8) * PITCH + lane / 16 * 8;
    float sum[SLABS][2 * DEEP][4], most[SLABS][2], weight[SLABS][2];
#pragma unroll
    for (int s = 0; s < SLABS; ++s) {
        most[s][0] = most[s][1] = LOWEST;
        weight[s][0] = weight[s][1] = 0.0f;
#pragma unroll
        for (int i = 0; i < 2 * DEEP; ++i) sum[s][i][0] = sum[s][i][1] = sum[s][i][2] = sum[s][i][3] = 0.0f;
    }

    if (begin < stop) COPY(keys, k_cache, begin)
    for (int t = begin; t < stop; ++t) {
        COPY_WAIT(0);
        __syncthreads();
        COPY(values, v_cache, t)  // while the scores are computed
        const bool active = t * KEYS <= first_row + 16 * SLABS - 1;
        float score[SLABS][KEYS / 8][4];
        if (active) {
#pragma unroll
            for (int s = 0; s < SLABS; ++s)
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n) score[s][n][0] = score[s][n][1] = score[s][n][2] = score[s][n][3] = 0.0f;
#pragma unroll
            for (int k = 0; k < DEEP; ++k) {
                bits32 a[SLABS][4];
#pragma unroll
                for (int s = 0; s < SLABS; ++s) LOAD_MATRICES(a[s], q_rows + s * 16 * PITCH + k * 16);
#pragma unroll
                for (int n = 0; n < KEYS / 16; ++n) {
                    bits32 b[4];
                    LOAD_MATRICES(b, k_rows + n * 16 * PITCH + k * 16);
#pragma unroll
                    for (int s = 0; s < SLABS; ++s) {
                        mma(score[s][2 * n], a[s][0], a[s][1], a[s][2], a[s][3], b[0], b[1]);
                        mma(score[s][2 * n + 1], a[s][0], a[s][1], a[s][2], a[s][3], b[2], b[3]);
                    }
                }
            }
        }
        COPY_WAIT(0);
        __syncthreads();
        if (t + 1 < stop) COPY(keys, k_cache, t + 1)  // while the values are used
        if (!active) continue;
        const bool diagonal = (t + 1) * KEYS - 1 > first_row;
        bits32 p[SLABS][KEYS / 16][4];
#pragma unroll
        for (int s = 0; s < SLABS; ++s) {
            float top0 = most[s][0], top1 = most[s][1];
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n) {
                if (diagonal) {
                    const int position = first_row + s * 16 + row, key = t * KEYS + n * 8 + 2 * quarter;
                    if (key > position) score[s][n][0] = LOWEST;
                    if (key + 1 > position) score[s][n][1] = LOWEST;
                    if (key > position + 8) score[s][n][2] = LOWEST;
                    if (key + 1 > position + 8) score[s][n][3] = LOWEST;
                }
                top0 = fmaxf(top0, fmaxf(score[s][n][0], score[s][n][1]));
                top1 = fmaxf(top1, fmaxf(score[s][n][2], score[s][n][3]));
            }
            top0 = fmaxf(top0, SHUFFLE_XOR(top0, 1));
            top0 = fmaxf(top0, SHUFFLE_XOR(top0, 2));
            top1 = fmaxf(top1, SHUFFLE_XOR(top1, 1));
            top1 = fmaxf(top1, SHUFFLE_XOR(top1, 2));
            const float shrink0 = EXP2((most[s][0] - top0) * scale), shrink1 = EXP2((most[s][1] - top1) * scale);
            const float level0 = top0 * scale, level1 = top1 * scale;
            float added0 = 0.0f, added1 = 0.0f;
            most[s][0] = top0;
            most[s][1] = top1;
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n) {
                const float e0 = EXP2(score[s][n][0] * scale - level0), e1 = EXP2(score[s][n][1] * scale - level0);
                const float e2 = EXP2(score[s][n][2] * scale - level1), e3 = EXP2(score[s][n][3] * scale - level1);
                added0 += e0 + e1;
                added1 += e2 + e3;
                p[s][n / 2][n % 2 * 2] = pair(e0, e1);
                p[s][n / 2][n % 2 * 2 + 1] = pair(e2, e3);
            }
            weight[s][0] = weight[s][0] * shrink0 + added0;
            weight[s][1] = weight[s][1] * shrink1 + added1;
#pragma unroll
            for (int i = 0; i < 2 * DEEP; ++i) sum[s][i][0] *= shrink0, sum[s][i][1] *= shrink0, sum[s][i][2] *= shrink1, sum[s][i][3] *= shrink1;
        }
#pragma unroll
        for (int n = 0; n < KEYS / 16; ++n)
#pragma unroll
            for (int k = 0; k < DEEP; ++k) {
                bits32 b[4];
                LOAD_MATRICES_TURNED(b, v_rows + n * 16 * PITCH + k * 16);
#pragma unroll
                for (int s = 0; s < SLABS; ++s) {
                    mma(sum[s][2 * k], p[s][n][0], p[s][n][1], p[s][n][2], p[s][n][3], b[0], b[1]);
                    mma(sum[s][2 * k + 1], p[s][n][0], p[s][n][1], p[s][n][2], p[s][n][3], b[2], b[3]);
                }
            }
    }

#if SPLIT
    const long long place = (long long)(tile * HEADS + head) * splits;
#endif
#pragma unroll
    for (int s = 0; s < SLABS; ++s)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float total = weight[s][half];
            total += SHUFFLE_XOR(total, 1);
            total += SHUFFLE_XOR(total, 2);
            const int r = warp * 16 * SLABS + s * 16 + half * 8 + row;
#if SPLIT
            if (splits > 1) {
                float2* to = (float2*)(sums + ((place + split) * TILE + r) * HEAD_DIM) + quarter;
#pragma unroll
                for (int i = 0; i < 2 * DEEP; ++i) to[4 * i] = make_float2(sum[s][i][2 * half], sum[s][i][2 * half + 1]);
                if (quarter == 0) weights[(place + split) * TILE + r] = make_float2(most[s][half] * scale, total);
                continue;
            }
#endif
            if (from + r < tokens) {
                total = 1.0f / total;
                bits32* to = (bits32*)(out + ((long long)(row0 + from + r) * HEADS + head) * HEAD_DIM) + quarter;
#pragma unroll
                for (int i = 0; i < 2 * DEEP; ++i) to[4 * i] = pair(sum[s][i][2 * half] * total, sum[s][i][2 * half + 1] * total);
            }
        }
#if SPLIT
    if (splits == 1) return;

    __shared__ int last;
    FENCE();
    __syncthreads();
    if (thread == 0) {
        unsigned* counter = counters + tile * HEADS + head;
        last = ATOMIC_ADD(counter, 1u) == (unsigned)(splits - 1);
        if (last) *counter = 0;
    }
    __syncthreads();
    if (!last) return;
    FENCE();
    for (int i = thread; i < TILE * HEAD_DIM / 4; i += THREADS) {
        const int r = i / (HEAD_DIM / 4), part = i % (HEAD_DIM / 4);
        if (from + r >= tokens) break;
        float top = LOWEST, total = 0.0f;
        float4 merged = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int k = 0; k < splits; ++k) top = fmaxf(top, weights[(place + k) * TILE + r].x);
        for (int k = 0; k < splits; ++k) {
            const float2 its = weights[(place + k) * TILE + r];
            const float share = EXP2(its.x - top);
            const float4 one = ((const float4*)(sums + ((place + k) * TILE + r) * HEAD_DIM))[part];
            total += share * its.y;
            merged.x += share * one.x, merged.y += share * one.y, merged.z += share * one.z, merged.w += share * one.w;
        }
        total = 1.0f / total;
        uint2 both;
        both.x = pair(merged.x * total, merged.y * total);
        both.y = pair(merged.z * total, merged.w * total);
        ((uint2*)(out + ((long long)(row0 + from + r) * HEADS + head) * HEAD_DIM))[part] = both;
    }
#endif
#endif
}

#if !MIXED
extern "C" __global__ void BOUNDS(THREADS, RESIDENT)
prefill_attention(const element* q, const element* k_cache, const element* v_cache, const int* table,
                  const int* chunks, const int* tiles, element* out, float* sums, float2* weights, unsigned* counters,
                  int max_blocks, float scale) {
    attend_tile(blockIdx.x, blockIdx.y, blockIdx.z, gridDim.z, q, k_cache, v_cache, table, chunks, tiles, out, sums,
                weights, counters, max_blocks, scale);
}
#endif
