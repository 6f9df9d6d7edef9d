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
//
// scale: log2(e) / sqrt(HEAD_DIM), since exp2 is what the hardware has. -DOUT_GROUPS=n writes `out` as the packed
// activations of skinny_gemm.cu with room for 8 n rows.
//
// -DTENSOR=1 computes with tensor cores: at 8 queries a KV head the plain form has more to compute than a card can hide
// behind its reads. Both are one loop over blocks of 16 tokens; the plain one comes first, and walks once for every eight
// lines.
// What one thread block does: item `item` of KV head `kv`.
DEVICE void attend_item(int item, int kv, const element* q, const element* k_cache, const element* v_cache,
                        const int* table, const int* lengths, const int* items, const int* spans, element* out,
                        float* sums, float2* weights, unsigned* counters, int max_blocks, float scale) {
    __shared__ float4 part[WARPS][HELD * QUADS];
    __shared__ float part_most[WARPS][HELD], part_weight[WARPS][HELD];
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES;
#if CLUSTER > 1
    const int sequence = item / CLUSTER, rank = item % CLUSTER, length = lengths[sequence];
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
    const int length = lengths[sequence], span = spans[2 * sequence + 1];
#endif
    const int rounds = (blocks - warp + WARPS - 1) / WARPS;  // of this warp
    const int* mine = table + (long long)sequence * max_blocks + first + warp;

    // Block numbers come 32 at a time, one a lane, ahead of use.
    int ahead = 0;
    const uint4 *k = 0, *v = 0;
    int end = 0;  // the last valid token of the block at hand
#if NEWEST > 1
    int newest = 0;  // how far the last token of the sequence is behind the beginning of that block
#define NOTE_NEWEST() newest = end
#define LAST_OF(line) (newest - (NEWEST - 1 - (line) / G))  // the last token that the line attends to, from there
#else
#define NOTE_NEWEST()
#define LAST_OF(line) end
#endif
#define NEXT_BLOCK(round)                                                                                        \
    {                                                                                                            \
        if ((round) % LANES == 0) ahead = (round) + lane < rounds ? mine[((round) + lane) * WARPS] : 0;          \
        const long long at = ((long long)SHUFFLE(ahead, (round) % LANES) * KV_HEADS + kv) * BLOCK * ROW;         \
        k = (const uint4*)k_cache + at;                                                                          \
        v = (const uint4*)v_cache + at;                                                                          \
        end = length - 1 - BLOCK * (first + warp + (round) * WARPS);                                             \
        NOTE_NEWEST();                                                                                           \
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
#elif !HAS_MMA
#error "tensor cores as used here need compute capability 8.0 or later: compile with -DTENSOR=0"
#else
    // Keys and values go from memory into mma as they were loaded: a dot product may add up its terms in any order, so
    // the 16 bytes of a lane are two pairs of its fragment, and again two. Scores S = Q K^T have the lines as rows, 16
    // in an mma; what it leaves in a lane, one line and four tokens, is what the product V^T S^T wants of it. Lane 4 row +
    // quarter.
#define PIECES (HEAD_DIM / 32)  // 16-byte words of a row that one lane loads of K
#define SIDES (HEAD_DIM / 64)   // and of V
#define PAIRS ((OCTETS + 1) / 2)
#ifndef QUERIES_SHARED
#define QUERIES_SHARED (OCTETS > 2)  // where registers do not suffice for them
#endif
    const int row = lane / 4, quarter = lane % 4;
    uint4 keys[2][PIECES], values[4][SIDES];
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
    // The last blocks hold the new tokens, which the kernel before this one wrote.
    const int written = (length - NEWEST) / BLOCK - first - warp;
    const bool early = rounds > 0 && written > 0;
    if (rounds > 0) { NEXT_BLOCK(0) }
    if (early) { LOAD_KEYS() LOAD_VALUES() }
    AWAIT_PREVIOUS();
    if (rounds > 0 && !early) { LOAD_KEYS() LOAD_VALUES() }
#if QUERIES_SHARED
    __shared__ uint4 query[2 * PAIRS][PIECES][LANES];
#define QUERY(octet, i) query[octet][i][lane]
    for (int at = thread; at < 2 * PAIRS * PIECES * LANES; at += THREADS) {
        const int line = at / LANES / PIECES * 8 + at % LANES / 4;
        uint4 word;
        word.x = word.y = word.z = word.w = 0;
        if (line < LINES) word = ((const uint4*)q)[query_word(sequence, kv, line) + at / LANES % PIECES * 4 + at % 4];
        query[at / LANES / PIECES][at / LANES % PIECES][at % LANES] = word;
    }
    __syncthreads();
#else
    uint4 query[2 * PAIRS][PIECES];
#define QUERY(octet, i) query[octet][i]
#pragma unroll
    for (int o = 0; o < 2 * PAIRS; ++o)
#pragma unroll
        for (int i = 0; i < PIECES; ++i) {
            query[o][i].x = query[o][i].y = query[o][i].z = query[o][i].w = 0;
            if (8 * o + row < LINES) query[o][i] = ((const uint4*)q)[query_word(sequence, kv, 8 * o + row) + 4 * i + quarter];
        }
#endif
    float sum[OCTETS][4 * SIDES][4], most[OCTETS], weight[OCTETS];  // weights of this lane's tokens only, until the end
#pragma unroll
    for (int o = 0; o < OCTETS; ++o) {
        most[o] = LOWEST, weight[o] = 0.0f;
#pragma unroll
        for (int i = 0; i < 4 * SIDES; ++i) sum[o][i][0] = sum[o][i][1] = sum[o][i][2] = sum[o][i][3] = 0.0f;
    }
    for (int round = 0; round < rounds; ++round) {
        float s[2][PAIRS][4];
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int p = 0; p < PAIRS; ++p) s[half][p][0] = s[half][p][1] = s[half][p][2] = s[half][p][3] = 0.0f;
#pragma unroll
        for (int i = 0; i < PIECES; ++i)
#pragma unroll
            for (int p = 0; p < PAIRS; ++p) {
                const uint4 upper = QUERY(2 * p, i), lower = QUERY(2 * p + 1, i);
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    mma(s[half][p], upper.x, lower.x, upper.y, lower.y, keys[half][i].x, keys[half][i].y);
                    mma(s[half][p], upper.z, lower.z, upper.w, lower.w, keys[half][i].z, keys[half][i].w);
                }
            }
        bits32 near[OCTETS], far[OCTETS];
        int last[OCTETS];
#pragma unroll
        for (int o = 0; o < OCTETS; ++o) last[o] = LAST_OF(8 * o + row);
        // The next keys are asked for as soon as these are used, where there are registers; the next values likewise.
        if (OCTETS < 3 && round + 1 < rounds) { NEXT_BLOCK(round + 1) LOAD_KEYS() }
#pragma unroll
        for (int o = 0; o < OCTETS; ++o) {
            const float *here = s[0][o / 2] + o % 2 * 2, *there = s[1][o / 2] + o % 2 * 2;
            float p0 = 2 * quarter <= last[o] ? here[0] * scale : LOWEST, p1 = 2 * quarter + 1 <= last[o] ? here[1] * scale : LOWEST;
            float p2 = 2 * quarter + 8 <= last[o] ? there[0] * scale : LOWEST, p3 = 2 * quarter + 9 <= last[o] ? there[1] * scale : LOWEST;
            float top = fmaxf(fmaxf(p0, p1), fmaxf(p2, p3));
            top = fmaxf(top, SHUFFLE_XOR(top, 1));
            top = fmaxf(top, SHUFFLE_XOR(top, 2));
            if (ANY_LANE(top > most[o])) {
                top = fmaxf(top, most[o]);
                const float shrink = EXP2(most[o] - top);
                most[o] = top;
                weight[o] *= shrink;
                // Sums belong to the lines 2 quarter and 2 quarter + 1; lane 4 line knows how much that one shrinks.
                const float even = SHUFFLE(shrink, 8 * quarter), odd = SHUFFLE(shrink, 8 * quarter + 4);
#pragma unroll
                for (int i = 0; i < 4 * SIDES; ++i)
                    sum[o][i][0] *= even, sum[o][i][1] *= odd, sum[o][i][2] *= even, sum[o][i][3] *= odd;
            }
            // A line whose tokens here are all behind it gets weights of 1, which the parts before it make to nothing.
            p0 = EXP2(p0 - most[o]), p1 = EXP2(p1 - most[o]), p2 = EXP2(p2 - most[o]), p3 = EXP2(p3 - most[o]);
            weight[o] += (p0 + p1) + (p2 + p3);
            near[o] = pair(p0, p1), far[o] = pair(p2, p3);
        }
        if (OCTETS > 2 && round + 1 < rounds) { NEXT_BLOCK(round + 1) LOAD_KEYS() }
#define ADD_VALUES(n, word)                                                                                    \
    {                                                                                                          \
        const bits32 a0 = TAKE_LOW(values[0][i].word, values[1][i].word), a1 = TAKE_HIGH(values[0][i].word, values[1][i].word); \
        const bits32 a2 = TAKE_LOW(values[2][i].word, values[3][i].word), a3 = TAKE_HIGH(values[2][i].word, values[3][i].word); \
        _Pragma("unroll") for (int o = 0; o < OCTETS; ++o) mma(sum[o][4 * i + n], a0, a1, a2, a3, near[o], far[o]); \
    }
#pragma unroll
        for (int i = 0; i < SIDES; ++i) { ADD_VALUES(0, x) ADD_VALUES(1, y) ADD_VALUES(2, z) ADD_VALUES(3, w) }
        if (round + 1 < rounds) { LOAD_VALUES() }
    }
#endif

#if TENSOR
#pragma unroll
#else
#pragma unroll 1
#endif
    for (int o = 0; o < OCTETS; ++o) {
#if !TENSOR
        float query[HELD][WIDE], sum[HELD][WIDE], most[HELD], weight[HELD];
#pragma unroll
        for (int g = 0; g < HELD; ++g) {
            const int line = 8 * o + g < LINES ? 8 * o + g : LINES - 1;
            unpack(query[g], ((const uint4*)q)[query_word(sequence, kv, line) + place]);
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
                float score[HELD][UNROLL], f[WIDE];
#pragma unroll
                for (int u = 0; u < UNROLL; ++u) {
                    unpack(f, keys[u]);
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
                        if (from + u * TOKENS + group > LAST_OF(8 * o + g)) score[g][u] = LOWEST;
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
                    part[warp][g * QUADS + place * (WIDE / 4) + i] =
                        make_float4(sum[g][4 * i], sum[g][4 * i + 1], sum[g][4 * i + 2], sum[g][4 * i + 3]);
            }
            if (lane == 0) part_most[warp][g] = top, part_weight[warp][g] = weight[g];
        }
#else
        weight[o] += SHUFFLE_XOR(weight[o], 1);
        weight[o] += SHUFFLE_XOR(weight[o], 2);
        if (quarter == 0 && row < HELD) part_most[warp][row] = most[o], part_weight[warp][row] = weight[o];
#pragma unroll
        for (int e = 0; e < 2; ++e)
            if (2 * quarter + e < HELD) {
                float4* to = part[warp] + (2 * quarter + e) * QUADS + 2 * row;
#pragma unroll
                for (int i = 0; i < SIDES; ++i) {
                    const float(*four)[4] = sum[o] + 4 * i;
                    to[16 * i] = make_float4(four[0][e], four[0][2 + e], four[1][e], four[1][2 + e]);
                    to[16 * i + 1] = make_float4(four[2][e], four[2][2 + e], four[3][e], four[3][2 + e]);
                }
            }
#endif
        __syncthreads();

        // The warps become one.
        for (int at = thread; at < HELD * QUADS; at += THREADS) {
            const int g = at / QUADS, line = 8 * o + g, place_of = line * QUADS + at % QUADS;
            if (line >= LINES) break;
            float top = LOWEST, total = 0.0f;
            float4 one = make_float4(0.0f, 0.0f, 0.0f, 0.0f), parts[WARPS];
            float2 theirs[WARPS];
#pragma unroll
            for (int w = 0; w < WARPS; ++w) {
                parts[w] = part[w][at];
                theirs[w] = make_float2(part_most[w][g], part_weight[w][g]);
            }
            add_parts(one, top, total, parts, theirs, WARPS);
#if CLUSTER > 1
            whole[place_of] = one;
            if (at % QUADS == 0) its[line] = make_float2(top, total);
#else
            if (span == 1) {
                store(out, sequence, kv, line, at % QUADS, one, total);
            } else {
                const long long leave = (long long)item * KV_HEADS + kv;
                ((float4*)sums)[leave * LINES * QUADS + place_of] = one;
                if (at % QUADS == 0) weights[leave * LINES + line] = make_float2(top, total);
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
extern "C" __global__ void OF_A_CLUSTER __launch_bounds__(THREADS, RESIDENT)
decode_attention(const element* q, const element* k_cache, const element* v_cache, const int* table,
                 const int* lengths, const int* items, const int* spans, element* out, float* sums, float2* weights,
                 unsigned* counters, int max_blocks, float scale) {
    attend_item(blockIdx.x, blockIdx.y, q, k_cache, v_cache, table, lengths, items, spans, out, sums, weights, counters,
                max_blocks, scale);
}
#endif
