// Attention of one new token a sequence over a paged KV cache of 8-bit numbers (e4m3), each head with a scale of its own.
//
//   out[s, h] = v_scale sum over t of softmax_t(scale k_scale q[s, h] . k[t]) v[t],   t = the tokens of sequence s
//
// k_cache, v_cache: [blocks][KV_HEADS][16][HEAD_DIM] bytes. scales: [2][KV_HEADS], of keys and of values. All else, and
// the launch, is as in decode_attention.cu: items of work, whose sums the last of a sequence to finish adds up.
//
// e4m3 is a sign, 4 bits of exponent and 3 of mantissa: every number is one of fp16, too. So both products are of fp16,
// whatever q and out hold. -DTENSOR=1 computes with tensor cores, for heads of 128 numbers.
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
#define RESIDENT 1
#endif
#ifndef TENSOR
#define TENSOR 0
#endif
#define BLOCK 16
#define THREADS (WARPS * LANES)
#define QUADS (HEAD_DIM / 4)  // float4s a row of sums
#define LOWEST -1e30f         // stands for minus infinity where differences are taken

// An e4m3 number in the low 8 bits. No float on the way is below 2^-6: compilers may be told that such small ones are 0.
DEVICE float from_e4m3(bits32 bits) {
    const bits32 size = bits & 0x7fu;
    const float number = size >= 8 ? AS_FLOAT((size << 20) + 0x3c000000u) : AS_FLOAT(0x3c800000u | size << 20) - 0x1p-6f;
    return bits & 0x80u ? -number : number;
}

DEVICE void store(element* out, int sequence, int head, int quad, float4 v) {
    element* to = out + ((long long)sequence * KV_HEADS * G + head) * HEAD_DIM + 4 * quad;
#if ELEMENT == 2
    *(float4*)to = v;
#else
    uint2 both;
    both.x = pair(v.x, v.y);
    both.y = pair(v.z, v.w);
    *(uint2*)to = both;
#endif
}

#if TENSOR && !HAS_MMA
#error "tensor cores as used here need compute capability 8.0 or later: compile with -DTENSOR=0"
#endif
#if TENSOR && HEAD_DIM != 128
#error "the form with tensor cores is for heads of 128 numbers: compile with -DTENSOR=0"
#endif
#if TENSOR && HAS_MMA
// A 16 x 8 product of what 16 bytes of a lane hold of keys: b of four steps of 16 in k.
DEVICE void score(float* s, const bits32* query, uint4 keys) {
    mma_halves(s, query[0], 0, query[1], 0, halves(keys.x), halves(keys.x >> 16));
    mma_halves(s, query[2], 0, query[3], 0, halves(keys.y), halves(keys.y >> 16));
    mma_halves(s, query[4], 0, query[5], 0, halves(keys.z), halves(keys.z >> 16));
    mma_halves(s, query[6], 0, query[7], 0, halves(keys.w), halves(keys.w >> 16));
}
// Four dimensions of four tokens of values times their shares.
DEVICE void add_values(float (*sum)[4], bits32 v0, bits32 v1, bits32 v2, bits32 v3, bits32 near, bits32 far) {
    const bits32 a = MIX_LOW(v0, v1), b = MIX_LOW(v2, v3), c = MIX_HIGH(v0, v1), d = MIX_HIGH(v2, v3);
    mma_halves(sum[0], halves(a), halves(a >> 16), halves(b), halves(b >> 16), near, far);
    mma_halves(sum[1], halves(c), halves(c >> 16), halves(d), halves(d >> 16), near, far);
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
fp8_attention(const element* q, const unsigned char* k_cache, const unsigned char* v_cache, const float* scales,
              const int* table, const int* lengths, const int* items, const int* spans, element* out, float* sums,
              float2* weights, unsigned* counters, int max_blocks, float scale) {
    __shared__ float4 part[WARPS][G * QUADS];
    __shared__ float part_most[WARPS][G], part_weight[WARPS][G];
    __shared__ int last;
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES;
    const int item = blockIdx.x, kv = blockIdx.y;
    const int sequence = items[3 * item], first = items[3 * item + 1], blocks = items[3 * item + 2];
    START_NEXT();
    AWAIT_PREVIOUS();
    if (blocks == 0) return;
    const int mine_blocks = (blocks - warp + WARPS - 1) / WARPS;  // of this warp
    const int newest = lengths[sequence] - 1 - BLOCK * (first + warp);  // the last token, counted from the first of these
    const int mine = sequence * max_blocks + first + warp;
    const float k_scale = scales[kv] * scale * E4M3_UNIT;

    // Block numbers come 32 at a time, one a lane. at: of the block, in 16 bytes; end: its last valid token.
    int ahead = 0;
#define FIND_BLOCK(n, at, end)                                                                                    \
    {                                                                                                             \
        if ((n) % LANES == 0) ahead = (n) + lane < mine_blocks ? table[mine + ((n) + lane) * WARPS] : 0;           \
        at = ((bits32)SHUFFLE(ahead, (n) % LANES) * KV_HEADS + kv) * (BLOCK * HEAD_DIM / 16);                     \
        end = newest - BLOCK * WARPS * (n);                                                                       \
        if (end >= BLOCK) end = BLOCK - 1;                                                                        \
    }

#if !TENSOR
    // A token is spread over SPREAD lanes, 8 numbers each.
#define SPREAD (HEAD_DIM / 8)
#define TOKENS (LANES / SPREAD)
    const int group = lane / SPREAD, place = lane % SPREAD;
    float query[G][8], sum[G][8], most[G], weight[G];
#pragma unroll
    for (int g = 0; g < G; ++g) {
        most[g] = LOWEST, weight[g] = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            query[g][i] = to_float(q[((long long)(sequence * KV_HEADS + kv) * G + g) * HEAD_DIM + 8 * place + i]) * (k_scale / E4M3_UNIT);
            sum[g][i] = 0.0f;
        }
    }
    for (int n = 0; n < mine_blocks; ++n) {
        bits32 at;
        int end;
        FIND_BLOCK(n, at, end)
#pragma unroll 2
        for (int from = 0; from < BLOCK; from += TOKENS) {
            const int token = from + group, there = token < end ? token : end;
            const uint2 keys = ((const uint2*)((const uint4*)k_cache + at))[there * SPREAD + place];
            const uint2 values = ((const uint2*)((const uint4*)v_cache + at))[there * SPREAD + place];
#define NUMBER(words, i) from_e4m3((i < 4 ? words.x : words.y) >> 8 * (i % 4))
            float f[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) f[i] = NUMBER(keys, i);
            float share[G];
#pragma unroll
            for (int g = 0; g < G; ++g) {
                float dot = 0.0f;
#pragma unroll
                for (int i = 0; i < 8; ++i) dot += query[g][i] * f[i];
#pragma unroll
                for (int mask = 1; mask < SPREAD; mask *= 2) dot += SHUFFLE_XOR(dot, mask);
                if (token > end) dot = LOWEST;
                const float top = fmaxf(most[g], dot), shrink = EXP2(most[g] - top);
                share[g] = token > end ? 0.0f : EXP2(dot - top);
                most[g] = top;
                weight[g] = weight[g] * shrink + share[g];
#pragma unroll
                for (int i = 0; i < 8; ++i) sum[g][i] *= shrink;
            }
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const float value = NUMBER(values, i) * (1.0f / E4M3_UNIT);
#pragma unroll
                for (int g = 0; g < G; ++g) sum[g][i] += share[g] * value;
            }
        }
    }
#pragma unroll
    for (int g = 0; g < G; ++g) {
        float top = most[g];
#pragma unroll
        for (int mask = SPREAD; mask < LANES; mask *= 2) top = fmaxf(top, SHUFFLE_XOR(top, mask));
        const float shrink = EXP2(most[g] - top);
        weight[g] *= shrink;
#pragma unroll
        for (int i = 0; i < 8; ++i) sum[g][i] *= shrink;
#pragma unroll
        for (int mask = SPREAD; mask < LANES; mask *= 2) {
            weight[g] += SHUFFLE_XOR(weight[g], mask);
#pragma unroll
            for (int i = 0; i < 8; ++i) sum[g][i] += SHUFFLE_XOR(sum[g][i], mask);
        }
        if (group == 0) {
            part[warp][g * QUADS + 2 * place] = make_float4(sum[g][0], sum[g][1], sum[g][2], sum[g][3]);
            part[warp][g * QUADS + 2 * place + 1] = make_float4(sum[g][4], sum[g][5], sum[g][6], sum[g][7]);
        }
        if (lane == 0) part_most[warp][g] = top, part_weight[warp][g] = weight[g];
    }

#elif HAS_MMA
    // As in decode_attention.cu, but 16 bytes are 16 numbers: of a key, b of four steps; of a value, 16 dimensions.
    const int row = lane / 4, quarter = lane % 4;
    bits32 query[2][8];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const element* from = q + ((long long)(sequence * KV_HEADS + kv) * G + row) * HEAD_DIM + 16 * (4 * i + quarter);
#pragma unroll
        for (int m = 0; m < 8; ++m)
            query[i][m] = row < G ? half_pair(to_float(from[2 * m]), to_float(from[2 * m + 1])) : 0;
    }
    uint4 keys[2][2], values[4];
    bits32 at = 0;
    int end = 0;
#define LOAD_KEYS()                                                                          \
    {                                                                                        \
        const uint4* k = (const uint4*)k_cache + at;                                         \
        const int upper = row < end ? row : end, lower = row + 8 < end ? row + 8 : end;      \
        _Pragma("unroll") for (int i = 0; i < 2; ++i) {                                      \
            keys[0][i] = LOAD_ONCE(k + upper * 8 + 4 * i + quarter);                         \
            keys[1][i] = LOAD_ONCE(k + lower * 8 + 4 * i + quarter);                         \
        }                                                                                    \
    }
#define LOAD_VALUES()                                                                        \
    {                                                                                        \
        const uint4* v = (const uint4*)v_cache + at;                                         \
        _Pragma("unroll") for (int j = 0; j < 4; ++j) {                                      \
            int token = 2 * quarter + j % 2 + j / 2 * 8;                                     \
            token = token < end ? token : end;                                               \
            values[j] = LOAD_ONCE(v + token * 8 + row);                                      \
        }                                                                                    \
    }
    if (mine_blocks > 0) { FIND_BLOCK(0, at, end) LOAD_KEYS() LOAD_VALUES() }
    float sum[8][4], most = LOWEST, weight = 0.0f;  // the weight of this lane's tokens only, until the end
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i][0] = sum[i][1] = sum[i][2] = sum[i][3] = 0.0f;
    for (int n = 0; n < mine_blocks; ++n) {
        const int valid = end;
        float s[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            score(s[half], query[0], keys[half][0]);
            score(s[half], query[1], keys[half][1]);
        }
        if (n + 1 < mine_blocks) {  // the next keys are asked for as soon as these are used, the next values likewise
            FIND_BLOCK(n + 1, at, end)
            LOAD_KEYS()
        }
        // Of this lane are head `row` and the tokens 2 quarter and the next, and 8 behind these.
        float p0 = 2 * quarter <= valid ? s[0][0] * k_scale : LOWEST, p1 = 2 * quarter + 1 <= valid ? s[0][1] * k_scale : LOWEST;
        float p2 = 2 * quarter + 8 <= valid ? s[1][0] * k_scale : LOWEST, p3 = 2 * quarter + 9 <= valid ? s[1][1] * k_scale : LOWEST;
        float top = fmaxf(fmaxf(p0, p1), fmaxf(p2, p3));
        top = fmaxf(top, SHUFFLE_XOR(top, 1));
        top = fmaxf(top, SHUFFLE_XOR(top, 2));
        if (ANY_LANE(top > most)) {
            top = fmaxf(top, most);
            const float shrink = EXP2(most - top);
            most = top;
            weight *= shrink;
            const float even = SHUFFLE(shrink, 8 * quarter), odd = SHUFFLE(shrink, 8 * quarter + 4);
#pragma unroll
            for (int i = 0; i < 8; ++i) sum[i][0] *= even, sum[i][1] *= odd, sum[i][2] *= even, sum[i][3] *= odd;
        }
        p0 = EXP2(p0 - most), p1 = EXP2(p1 - most), p2 = EXP2(p2 - most), p3 = EXP2(p3 - most);
        weight += (p0 + p1) + (p2 + p3);
        const bits32 near = half_pair(p0, p1), far = half_pair(p2, p3);
        add_values(sum + 0, values[0].x, values[1].x, values[2].x, values[3].x, near, far);
        add_values(sum + 2, values[0].y, values[1].y, values[2].y, values[3].y, near, far);
        add_values(sum + 4, values[0].z, values[1].z, values[2].z, values[3].z, near, far);
        add_values(sum + 6, values[0].w, values[1].w, values[2].w, values[3].w, near, far);
        if (n + 1 < mine_blocks) { LOAD_VALUES() }
    }
    weight += SHUFFLE_XOR(weight, 1);
    weight += SHUFFLE_XOR(weight, 2);
    if (quarter == 0 && row < G) part_most[warp][row] = most, part_weight[warp][row] = weight;
#pragma unroll
    for (int e = 0; e < 2; ++e)
        if (2 * quarter + e < G) {
            float4* to = part[warp] + (2 * quarter + e) * QUADS + 4 * row;
#pragma unroll
            for (int m = 0; m < 4; ++m)
                to[m] = make_float4(sum[2 * m][e], sum[2 * m][2 + e], sum[2 * m + 1][e], sum[2 * m + 1][2 + e]);
        }
#endif
    __syncthreads();

    // The warps become one.
    const int span = spans[2 * sequence + 1];
    const float v_scale = scales[KV_HEADS + kv] * E4M3_UNIT;
    for (int at = thread; at < G * QUADS; at += THREADS) {
        const int g = at / QUADS;
        float top = LOWEST, all = 0.0f;
        float4 whole = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int w = 0; w < WARPS; ++w) top = fmaxf(top, part_most[w][g]);
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            const float share = EXP2(part_most[w][g] - top);
            const float4 one = part[w][at];
            all += share * part_weight[w][g];
            whole.x += share * one.x, whole.y += share * one.y, whole.z += share * one.z, whole.w += share * one.w;
        }
        if (span == 1) {
            const float r = v_scale / all;
            store(out, sequence, kv * G + g, at % QUADS, make_float4(r * whole.x, r * whole.y, r * whole.z, r * whole.w));
        } else {
            ((float4*)sums)[((long long)item * KV_HEADS + kv) * G * QUADS + at] = whole;
            if (at % QUADS == 0) weights[((long long)item * KV_HEADS + kv) * G + g] = make_float2(top, all);
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
        float top = LOWEST, all = 0.0f;
        float4 whole = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int i = 0; i < span; ++i) top = fmaxf(top, weights[(base + (long long)i * KV_HEADS) * G + g].x);
#pragma unroll 8
        for (int i = 0; i < span; ++i) {
            const long long from = base + (long long)i * KV_HEADS;
            const float2 its = weights[from * G + g];
            const float4 one = ((const float4*)sums)[from * G * QUADS + at];
            const float share = EXP2(its.x - top);
            all += share * its.y;
            whole.x += share * one.x, whole.y += share * one.y, whole.z += share * one.z, whole.w += share * one.w;
        }
        const float r = v_scale / all;
        store(out, sequence, kv * G + g, at % QUADS, make_float4(r * whole.x, r * whole.y, r * whole.z, r * whole.w));
    }
}
