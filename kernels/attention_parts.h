// Sizes of attention of the newest tokens, where its results go, and how the parts of a sequence become one result.
// It comes before attention_walk.h, attention_tensor.h and decode_attention.cu.
//
// A sequence has NEWEST new tokens, G query heads share a KV head: LINES = NEWEST * G queries look at the same keys. Line
// r G + g is head g of new token r. They are added up eight at a time, as a tensor core takes them.
#ifndef HEAD_DIM
#define HEAD_DIM 128
#endif
#ifndef G
#define G 4
#endif
#ifndef KV_HEADS
#define KV_HEADS 8
#endif
#ifndef NEWEST
#define NEWEST 1  // more: drafts are verified
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
#ifndef CLUSTER
#define CLUSTER 1  // more: so many blocks share a sequence and merge in shared memory
#endif
#ifndef SHARERS
#define SHARERS 1  // more: so many clusters share the new tokens of a sequence, NEWEST each
#endif
#ifndef MIXED
#define MIXED 0  // 1: mixed_attention.cu launches this beside a prompt chunk
#endif
#define BLOCK 16
#define THREADS (WARPS * LANES)
#define ROW (HEAD_DIM / WIDE)  // 16-byte words a row
#define CACHED_ROW (E4M3 ? HEAD_DIM / 16 : ROW)
#define QUADS (HEAD_DIM / 4)   // float4s a row of sums
#define LINES (NEWEST * G)
#define OCTETS ((LINES + 7) / 8)
#define HELD (LINES < 8 ? LINES : 8)
#define LOWEST -1e30f  // stands for minus infinity where differences are taken
#ifndef TOGETHER
#define TOGETHER 16  // parts of a sequence that are fetched side by side when they are added up
#endif

// Where the query of a line is, in words of 16 bytes.
DEVICE long long query_word(int sequence, int kv, int line) {
    return (((long long)sequence * NEWEST + line / G) * KV_HEADS * G + kv * G + line % G) * ROW;
}

// Four numbers of a result, at `quad` of a line of KV head `kv`, divided by their weight.
DEVICE void store(element* out, int sequence, int kv, int line, int quad, float4 v, float weight) {
    const int row = sequence * NEWEST + line / G, column = (kv * G + line % G) * HEAD_DIM + 4 * quad;
    const float r = 1.0f / weight;
    v = make_float4(r * v.x, r * v.y, r * v.z, r * v.w);
#if OUT_GROUPS
    element* to = out + (((long long)(column / 32 * OUT_GROUPS + row / 8) * 8 + row % 8) * 4 + column / 8 % 4) * 8 + column % 8;
#else
    element* to = out + (long long)row * KV_HEADS * G * HEAD_DIM + column;
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

// Adds `many` parts, each with its largest score and its weight, to what was there.
DEVICE void add_parts(float4& sum, float& top, float& weight, const float4* parts, const float2* its, int many) {
    float most = top;
#pragma unroll
    for (int u = 0; u < many; ++u) most = fmaxf(most, its[u].x);
    const float shrink = EXP2(top - most);
    top = most, weight *= shrink;
    sum.x *= shrink, sum.y *= shrink, sum.z *= shrink, sum.w *= shrink;
#pragma unroll
    for (int u = 0; u < many; ++u) {
        const float share = EXP2(its[u].x - top);
        weight += share * its[u].y;
        sum.x += share * parts[u].x, sum.y += share * parts[u].y, sum.z += share * parts[u].z, sum.w += share * parts[u].w;
    }
}

#if CLUSTER > 1
// Each block of the cluster adds up its share of the lines from the shared memory of all. `whole`, `its`: what this block
// found. On the CPU the blocks run one after the other, and the last adds up everything.
DEVICE void merge_cluster(const float4* whole, const float2* its, int rank, int sequence, int kv, element* out) {
    const int each = (LINES * QUADS + CLUSTER - 1) / CLUSTER;
#if defined(CPU_SHIM)
    if (rank < CLUSTER - 1) return;
    const int begin = 0, end = LINES * QUADS;
#else
    const int begin = rank * each, end = begin + each < LINES * QUADS ? begin + each : LINES * QUADS;
#endif
    (void)each;
    for (int at = begin + threadIdx.x; at < end; at += THREADS) {
        float4 parts[CLUSTER], sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        float2 theirs[CLUSTER];
        float top = LOWEST, weight = 0.0f;
#pragma unroll
        for (int u = 0; u < CLUSTER; ++u) {
            theirs[u] = FROM_PEER(its + at / QUADS, u, LINES);
            parts[u] = FROM_PEER(whole + at, u, LINES * QUADS);
        }
        add_parts(sum, top, weight, parts, theirs, CLUSTER);
        store(out, sequence, kv, at / QUADS, at % QUADS, sum, weight);
    }
}
#endif

// Who comes last, which a counter tells, adds up all items of the sequence, which stand side by side in `sums`.
DEVICE void merge_items(const float* sums, const float2* weights, unsigned* counters, int first, int span, int sequence,
                        int kv, element* out) {
    __shared__ int last;
    FENCE();
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned* counter = counters + sequence * KV_HEADS + kv;
        last = ATOMIC_ADD(counter, 1u) == (unsigned)(span - 1);
        if (last) *counter = 0;
    }
    __syncthreads();
    if (!last) return;
    FENCE();
    const long long base = (long long)first * KV_HEADS + kv;
    for (int at = threadIdx.x; at < LINES * QUADS; at += THREADS) {
        float top = LOWEST, weight = 0.0f;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        // Many are asked for before the first is needed: one after the other, each would take a trip to the second cache.
        for (int from = 0; from < span; from += TOGETHER) {
            float2 its[TOGETHER];
            float4 one[TOGETHER];
#pragma unroll
            for (int u = 0; u < TOGETHER; ++u) {
                const long long part = base + (long long)(from + u < span ? from + u : span - 1) * KV_HEADS;
                its[u] = weights[part * LINES + at / QUADS];
                one[u] = ((const float4*)sums)[part * LINES * QUADS + at];
                if (from + u >= span) its[u].x = LOWEST, its[u].y = 0.0f;
            }
            add_parts(sum, top, weight, one, its, TOGETHER);
        }
        store(out, sequence, kv, at / QUADS, at % QUADS, sum, weight);
    }
}
