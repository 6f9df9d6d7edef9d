// The walk on tensor cores: all lines of an item against the blocks of a warp. It comes behind attention_walk.h.
//
// Keys and values go from memory into mma as they were loaded: a dot product may add up its terms in any order, so the 16
// bytes of a lane are two pairs of its fragment, and again two. Scores S = Q K^T have the lines as rows, 16 in an mma; what
// it leaves in a lane, one line and four tokens, is what the product V^T S^T wants of it. Lane 4 row + quarter.
#if TENSOR
#if !HAS_MMA
#error "tensor cores as used here need compute capability 8.0 or later: compile with -DTENSOR=0"
#else
#define PIECES (HEAD_DIM / 32)  // 16-byte words of a row that one lane loads of K
#define SIDES (HEAD_DIM / 64)   // and of V
#define PAIRS ((OCTETS + 1) / 2)
#ifndef QUERIES_SHARED
#define QUERIES_SHARED (OCTETS > 2)  // where registers do not suffice for them
#endif
// sum, most, weight: what each line of an octet has after all blocks of this warp; weights of this lane's tokens only.
DEVICE void walk_tensor(Blocks& at, const element* q, int sequence, float scale, int lane, float (*sum)[4 * SIDES][4],
                        float* most, float* weight) {
    const int row = lane / 4, quarter = lane % 4;
    uint4 keys[2][PIECES], values[4][SIDES];
#define LOAD_KEYS()                                                                   \
    {                                                                                 \
        const int end = end_of(at), above = row < end ? row : end, below = row + 8 < end ? row + 8 : end; \
        _Pragma("unroll") for (int i = 0; i < PIECES; ++i) {                          \
            keys[0][i] = LOAD_ONCE(at.k + above * ROW + 4 * i + quarter);                     \
            keys[1][i] = LOAD_ONCE(at.k + below * ROW + 4 * i + quarter);                     \
        }                                                                             \
    }
#define LOAD_VALUES()                                                                       \
    {                                                                                       \
        const int end = end_of(at);                                                         \
        _Pragma("unroll") for (int j = 0; j < 4; ++j) {                                     \
            int token = 2 * quarter + j % 2 + j / 2 * 8;                                    \
            token = token < end ? token : end;                                              \
            _Pragma("unroll") for (int i = 0; i < SIDES; ++i)                               \
                values[j][i] = LOAD_ONCE(at.v + token * ROW + 8 * i + row);                    \
        }                                                                                   \
    }
    // The last blocks hold the new tokens, which the kernel before this one wrote.
    const int rounds = at.rounds;
    const bool early = rounds > 0 && at.last - (at.fresh - 1) >= BLOCK;
    if (rounds > 0) next_block(at, 0, lane);
    if (early) { LOAD_KEYS() LOAD_VALUES() }
    AWAIT_PREVIOUS();
    if (rounds > 0 && !early) { LOAD_KEYS() LOAD_VALUES() }
#if QUERIES_SHARED
    __shared__ uint4 query[2 * PAIRS][PIECES][LANES];
#define QUERY(octet, i) query[octet][i][lane]
    for (int i = threadIdx.x; i < 2 * PAIRS * PIECES * LANES; i += THREADS) {
        const int line = i / LANES / PIECES * 8 + i % LANES / 4;
        uint4 word;
        word.x = word.y = word.z = word.w = 0;
        if (line < LINES) word = ((const uint4*)q)[query_word(sequence, at.kv, line) + i / LANES % PIECES * 4 + i % 4];
        query[i / LANES / PIECES][i / LANES % PIECES][i % LANES] = word;
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
            if (8 * o + row < LINES)
                query[o][i] = ((const uint4*)q)[query_word(sequence, at.kv, 8 * o + row) + 4 * i + quarter];
        }
#endif
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
        for (int o = 0; o < OCTETS; ++o) last[o] = last_of(at, 8 * o + row);
        // The next keys are asked for as soon as these are used, where there are registers; the next values likewise.
        if (OCTETS < 3 && round + 1 < rounds) { next_block(at, round + 1, lane); LOAD_KEYS() }
#pragma unroll
        for (int o = 0; o < OCTETS; ++o) {
            const float *here = s[0][o / 2] + o % 2 * 2, *there = s[1][o / 2] + o % 2 * 2;
            const int behind = last[o] - 2 * quarter;
            float p0 = behind >= 0 ? here[0] * scale : LOWEST, p1 = behind >= 1 ? here[1] * scale : LOWEST;
            float p2 = behind >= 8 ? there[0] * scale : LOWEST, p3 = behind >= 9 ? there[1] * scale : LOWEST;
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
        if (OCTETS > 2 && round + 1 < rounds) { next_block(at, round + 1, lane); LOAD_KEYS() }
#define ADD_VALUES(n, word)                                                                                         \
    {                                                                                                               \
        const bits32 v0 = values[0][i].word, v1 = values[1][i].word, v2 = values[2][i].word, v3 = values[3][i].word; \
        const bits32 a0 = TAKE_LOW(v0, v1), a1 = TAKE_HIGH(v0, v1), a2 = TAKE_LOW(v2, v3), a3 = TAKE_HIGH(v2, v3);   \
        _Pragma("unroll") for (int o = 0; o < OCTETS; ++o) mma(sum[o][4 * i + n], a0, a1, a2, a3, near[o], far[o]);  \
    }
#pragma unroll
        for (int i = 0; i < SIDES; ++i) { ADD_VALUES(0, x) ADD_VALUES(1, y) ADD_VALUES(2, z) ADD_VALUES(3, w) }
        if (round + 1 < rounds) { LOAD_VALUES() }
    }
}
#endif
#endif
