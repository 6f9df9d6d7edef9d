// The walk on tensor cores: all lines of an item against the blocks of a warp. It comes behind attention_walk.h.
//
// Keys and values go from memory into mma as they were loaded: a dot product may add up its terms in any order, so the 16
// bytes of a lane are two pairs of its fragment, and again two. Scores S = Q K^T have the lines as rows, 16 in an mma; what
// it leaves in a lane, one line and four tokens, is what the product V^T S^T wants of it. Lane 4 row + quarter.
//
// Every 8-bit number is one of fp16, too: with E4M3 both products are of fp16, whatever q and out hold, 16 bytes of a key
// are four steps, and of a value 16 dimensions.
#if TENSOR
#if !HAS_MMA
#error "tensor cores as used here need compute capability 8.0 or later: compile with -DTENSOR=0"
#else
#if E4M3 && HEAD_DIM != 128
#error "8-bit numbers and tensor cores are for heads of 128: compile with -DTENSOR=0"
#endif
#define PIECES (HEAD_DIM / 32)  // 16-byte words of a query that one lane has, and pairs of mma that it takes
#define SUMS (HEAD_DIM / 16)    // 16 rows of V^T each
DEVICE bits32 word_of(uint4 v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
#if E4M3
#define MMA mma_halves
#define PAIR half_pair
#define OF_KEYS (PIECES / 2)  // 16-byte words of a row that one lane loads of K
#define SIDES 1               // and of V
#define WORD_OF_QUERY(i, quarter) (2 * (4 * ((i) / 2) + (quarter)) + (i) % 2)
#define QUAD_OF_SUMS(t, row) (4 * (row) + (t))  // which four dimensions sums 2 t and 2 t + 1 are
DEVICE uint4 key_of(const uint4* keys, int i) {
    const bits32 near = word_of(keys[i / 2], i % 2 * 2), far = word_of(keys[i / 2], i % 2 * 2 + 1);
    uint4 v;
    v.x = halves(near), v.y = halves(near >> 16), v.z = halves(far), v.w = halves(far >> 16);
    return v;
}
DEVICE uint4 value_of(const uint4 (*values)[SIDES], int n) {
    const bits32 v0 = word_of(values[0][0], n / 2), v1 = word_of(values[1][0], n / 2);
    const bits32 v2 = word_of(values[2][0], n / 2), v3 = word_of(values[3][0], n / 2);
    const bits32 near = n % 2 ? MIX_HIGH(v0, v1) : MIX_LOW(v0, v1), far = n % 2 ? MIX_HIGH(v2, v3) : MIX_LOW(v2, v3);
    uint4 a;
    a.x = halves(near), a.y = halves(near >> 16), a.z = halves(far), a.w = halves(far >> 16);
    return a;
}
DEVICE bits32 halves_of(bits32 two) { return half_pair(low(two), high(two)); }
DEVICE uint4 query_of(uint4 v) {
#if ELEMENT == 0
    v.x = halves_of(v.x), v.y = halves_of(v.y), v.z = halves_of(v.z), v.w = halves_of(v.w);
#endif
    return v;
}
#else
#define MMA mma
#define PAIR pair
#define OF_KEYS PIECES
#define SIDES (HEAD_DIM / 64)
#define WORD_OF_QUERY(i, quarter) (4 * (i) + (quarter))
#define QUAD_OF_SUMS(t, row) (16 * ((t) / 2) + 2 * (row) + (t) % 2)
DEVICE uint4 key_of(const uint4* keys, int i) { return keys[i]; }
DEVICE uint4 value_of(const uint4 (*values)[SIDES], int n) {
    const bits32 v0 = word_of(values[0][n / 4], n % 4), v1 = word_of(values[1][n / 4], n % 4);
    const bits32 v2 = word_of(values[2][n / 4], n % 4), v3 = word_of(values[3][n / 4], n % 4);
    uint4 a;
    a.x = TAKE_LOW(v0, v1), a.y = TAKE_HIGH(v0, v1), a.z = TAKE_LOW(v2, v3), a.w = TAKE_HIGH(v2, v3);
    return a;
}
DEVICE uint4 query_of(uint4 v) { return v; }
#endif
#define PAIRS ((OCTETS + 1) / 2)
#ifndef QUERIES_SHARED
#define QUERIES_SHARED (OCTETS > 2)  // where registers do not suffice for them
#endif
// sum, most, weight: what each line of an octet has after all blocks of this warp; weights of this lane's tokens only.
DEVICE void walk_tensor(Blocks& at, const element* q, int sequence, float scale, int lane, float (*sum)[SUMS][4],
                        float* most, float* weight) {
    const int row = lane / 4, quarter = lane % 4;
    uint4 keys[2][OF_KEYS], values[4][SIDES];
#define LOAD_KEYS()                                                                   \
    {                                                                                 \
        const int end = end_of(at), above = row < end ? row : end, below = row + 8 < end ? row + 8 : end; \
        _Pragma("unroll") for (int i = 0; i < OF_KEYS; ++i) {                         \
            keys[0][i] = LOAD_ONCE(at.k + above * CACHED_ROW + 4 * i + quarter);              \
            keys[1][i] = LOAD_ONCE(at.k + below * CACHED_ROW + 4 * i + quarter);              \
        }                                                                             \
    }
#define LOAD_VALUES()                                                                       \
    {                                                                                       \
        const int end = end_of(at);                                                         \
        _Pragma("unroll") for (int j = 0; j < 4; ++j) {                                     \
            int token = 2 * quarter + j % 2 + j / 2 * 8;                                    \
            token = token < end ? token : end;                                              \
            _Pragma("unroll") for (int i = 0; i < SIDES; ++i)                               \
                values[j][i] = LOAD_ONCE(at.v + token * CACHED_ROW + 8 * i + row);             \
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
        const int place = WORD_OF_QUERY(i / LANES % PIECES, i % 4);
        if (line < LINES) word = query_of(((const uint4*)q)[query_word(sequence, at.kv, line) + place]);
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
                query[o][i] = query_of(((const uint4*)q)[query_word(sequence, at.kv, 8 * o + row) + WORD_OF_QUERY(i, quarter)]);
        }
#endif
#pragma unroll
    for (int o = 0; o < OCTETS; ++o) {
        most[o] = LOWEST, weight[o] = 0.0f;
#pragma unroll
        for (int i = 0; i < SUMS; ++i) sum[o][i][0] = sum[o][i][1] = sum[o][i][2] = sum[o][i][3] = 0.0f;
    }
    for (int round = 0; round < rounds; ++round) {
        float s[2][PAIRS][4];
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int p = 0; p < PAIRS; ++p) s[half][p][0] = s[half][p][1] = s[half][p][2] = s[half][p][3] = 0.0f;
#pragma unroll
        for (int i = 0; i < PIECES; ++i) {
            const uint4 key[2] = {key_of(keys[0], i), key_of(keys[1], i)};
#pragma unroll
            for (int p = 0; p < PAIRS; ++p) {
                const uint4 upper = QUERY(2 * p, i), lower = QUERY(2 * p + 1, i);
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    MMA(s[half][p], upper.x, lower.x, upper.y, lower.y, key[half].x, key[half].y);
                    MMA(s[half][p], upper.z, lower.z, upper.w, lower.w, key[half].z, key[half].w);
                }
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
                for (int i = 0; i < SUMS; ++i)
                    sum[o][i][0] *= even, sum[o][i][1] *= odd, sum[o][i][2] *= even, sum[o][i][3] *= odd;
            }
            // A line whose tokens here are all behind it gets weights of 1, which the parts before it make to nothing.
            p0 = EXP2(p0 - most[o]), p1 = EXP2(p1 - most[o]), p2 = EXP2(p2 - most[o]), p3 = EXP2(p3 - most[o]);
            weight[o] += (p0 + p1) + (p2 + p3);
            near[o] = PAIR(p0, p1), far[o] = PAIR(p2, p3);
        }
        if (OCTETS > 2 && round + 1 < rounds) { next_block(at, round + 1, lane); LOAD_KEYS() }
#pragma unroll
        for (int n = 0; n < SUMS; ++n) {
            const uint4 a = value_of(values, n);
#pragma unroll
            for (int o = 0; o < OCTETS; ++o) MMA(sum[o][n], a.x, a.y, a.z, a.w, near[o], far[o]);
        }
        if (round + 1 < rounds) { LOAD_VALUES() }
    }
}
#endif
#endif
