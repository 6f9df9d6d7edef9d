// y = x W^T for few rows x: as fast as W can be read, with what stands before and after it in a transformer folded in.
//
// W (N x K) lies packed, once for all steps, so that every load of a warp is 512 bytes in a row: [N / 16 tiles][K / 32]
// [2 halves][32 lanes] of 16 bytes; lane 4 r + p of half h holds row 8 h + r of the tile, columns 8 p ... 8 p + 7 of the
// 32. x (up to 8 GROUPS rows) likewise: [K / 32][GROUPS][32 lanes], lane 4 r + p of group i: row 8 i + r. Such words are
// two k-steps of an mma fragment as they are, since a dot product may add up its terms in any order.
//
// A thread block computes TILES tiles of 16 columns of y; its 8 warps share K, and each asks for its next weights before
// it uses those at hand. Launch: N / 16 / TILES blocks of 256 threads. K: a multiple of 32 * DEPTH. With many rows x is
// more to fetch than W, from the second cache: two tiles share what is fetched.
//
// -DNORM=1: rows of x count as divided by sqrt(mean(x^2) + epsilon): the factor comes in at the end, and the weight of
// the norm belongs into W. With -DSQUARES=1 it is made of squares that the kernel before, with FINISH 1, has left:
// [K / 16][8 GROUPS]. -DFINISH: what becomes of the sums, see finish.h, which comes before.
//
// -DTENSOR=0 is the same on plain cores, for up to 8 rows.
#ifndef DEPTH
#define DEPTH 4
#endif
#ifndef TILES
#define TILES 1
#endif
#define THREADS (WARPS * LANES)
#define PITCH (16 * TILES + 1)  // floats between the sums of two rows of x

extern "C" __global__ void BOUNDS(THREADS, RESIDENT)
skinny_gemm(const element* x, const element* w, element* y, int m_rows, int n_columns, int k_columns, float epsilon,
            cached* k_cache, cached* v_cache, const float2* turns, const int* positions, const int* slots,
            const float* scales, float* squares, int heads, int kv_heads) {
    __shared__ float tile_sums[WARPS][ROWS * PITCH];
#if NORM
    __shared__ __align__(16) float row_squares[WARPS][ROWS];
#endif
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES, row = lane / 4, quarter = lane % 4;
    const int steps = k_columns / (32 * DEPTH), first_tile = blockIdx.x * TILES;
    const long long pieces = k_columns / 32;
    const uint4* weights = (const uint4*)w + (first_tile * pieces + warp * DEPTH) * 64 + lane;  // to be loaded next
    const uint4* inputs = (const uint4*)x + warp * DEPTH * GROUPS * 32 + lane;

    uint4 next[DEPTH][2 * TILES];  // of each tile the upper and the lower 8 rows
#define LOAD_WEIGHTS()                                                                                             \
    {                                                                                                              \
        _Pragma("unroll") for (int j = 0; j < DEPTH; ++j) _Pragma("unroll") for (int h = 0; h < 2 * TILES; ++h)    \
            next[j][h] = LOAD_ONCE(weights + h / 2 * pieces * 64 + j * 64 + h % 2 * 32);                           \
        weights += WARPS * DEPTH * 64;                                                                             \
    }
    int left = (steps - warp + WARPS - 1) / WARPS;  // steps of this warp that are not done
    if (left > 0) LOAD_WEIGHTS()  // weights do not depend on the kernel before: do not wait for it
    START_NEXT();
    AWAIT_PREVIOUS();

#if !TENSOR && (TILES > 1 || GROUPS > 1)
#error "the form without tensor cores computes one tile a block, of up to 8 rows"
#endif
    float sum[TILES][GROUPS][EACH];
#pragma unroll
    for (int r = 0; r < TILES; ++r)
#pragma unroll
        for (int i = 0; i < GROUPS; ++i)
#pragma unroll
            for (int k = 0; k < EACH; ++k) sum[r][i][k] = 0.0f;
#if NORM && SQUARES
    add_squares(squares, k_columns / 16, row_squares[warp], warp, lane);
#elif NORM
    float own[GROUPS][4];
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) own[i][0] = own[i][1] = own[i][2] = own[i][3] = 0.0f;
#endif

#pragma unroll 1
    for (; left > 0; --left, inputs += WARPS * DEPTH * GROUPS * 32) {
        uint4 now[DEPTH][2 * TILES];
#pragma unroll
        for (int j = 0; j < DEPTH; ++j)
#pragma unroll
            for (int h = 0; h < 2 * TILES; ++h) now[j][h] = next[j][h];
        if (left > 1) LOAD_WEIGHTS()
#pragma unroll
        for (int j = 0; j < DEPTH; ++j) {
            const uint4* words = inputs + j * GROUPS * 32;
            uint4 word[GROUPS];
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) word[i] = words[32 * i];
#if NORM && !SQUARES
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) square(own[i], word[i]);
#endif
#pragma unroll
            for (int i = 0; i < GROUPS; ++i)
#pragma unroll
                for (int r = 0; r < TILES; ++r)
                    multiply(sum[r][i], now[j][2 * r], now[j][2 * r + 1], word[i], words - lane, m_rows);
        }
    }

#pragma unroll
    for (int r = 0; r < TILES; ++r)
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) leave(tile_sums[warp] + 8 * i * PITCH + 16 * r, PITCH, sum[r][i], row, quarter);
#if NORM && !SQUARES
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
        const float its = square_of_row(own[i], row);
        if (mine(row, quarter)) row_squares[warp][8 * i + row] = its;
    }
#endif
    __syncthreads();

    // Each thread finishes two sums at a time: rows i and i + 8 of a tile, for one row m of x.
    for (int from = thread - lane; from < 8 * TILES * m_rows; from += THREADS) {  // all lanes come to the shuffles
        const int at = from + lane < 8 * TILES * m_rows ? from + lane : 8 * TILES * m_rows - 1;
        const int i = at % 8, r = at / 8 % TILES, m = at / (8 * TILES), tile = first_tile + r;
        float first = 0.0f, second = 0.0f;
#pragma unroll
        for (int k = 0; k < WARPS; ++k) {
            const float* its = tile_sums[k] + m * PITCH + 16 * r + i;
            first += its[0], second += its[8];
        }
#if NORM
        float total = 0.0f;
#pragma unroll
        for (int k = 0; k < WARPS; ++k) total += row_squares[k][m];
        const float factor = RSQRT(total / k_columns + epsilon);
        first *= factor;
        second *= factor;
#endif
        if (at == from + lane)
            first = finish(tile, i, m, first, second, y, n_columns, k_cache, v_cache, turns, positions, slots, scales, heads,
                           kv_heads);
#if FINISH == 1 && SQUARES
#pragma unroll
        for (int mask = 1; mask < 8; mask *= 2) first += SHUFFLE_XOR(first, mask);
        if (i == 0 && at == from + lane) squares[tile * ROWS + m] = first;
#endif
    }
}
