// y = x W^T for up to 64 rows x, with packed weights and activations as in skinny_gemm.cu: for rows so many that x, which
// every block of that kernel fetches from the second cache, would be more to fetch than W.
//
// A thread block computes WARPS tiles of 16 columns of y, a tile a warp, so that x is fetched once for all of them: into
// shared memory, PIECES times 32 columns at a time, STAGES of those under way. -DCLUSTER=n: n blocks share these tiles, each
// over its part of K, and add up out of each other's shared memory (compute capability 9.0); where W has few rows, that
// gives work to all multiprocessors without fetching x more often.
//
// Launch: (N / 16 / WARPS rounded up, times CLUSTER) blocks of 32 * WARPS threads; shared memory: see `shared_bytes`
// in course/gpu/ops/split_gemm.py. K: a multiple of 32 * PIECES. NORM, FINISH: as in skinny_gemm.cu. Tensor cores only.
#ifndef PIECES
#define PIECES 4
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef CLUSTER
#define CLUSTER 1
#endif
#ifndef NORM
#define NORM 0
#endif
#ifndef RESIDENT
#define RESIDENT 2
#endif
#define THREADS (WARPS * LANES)
#define STAGE (PIECES * GROUPS * LANES)  // words of 16 bytes
#define PITCH (ROWS + 1)                 // floats between two columns of sums, so that they lie in different banks
#define SUMS (16 * WARPS * PITCH)

#if CLUSTER > 1 && !defined(CPU_SHIM)
#define OF_A_CLUSTER __cluster_dims__(CLUSTER, 1, 1)
#else
#define OF_A_CLUSTER
#endif

extern "C" __global__ void OF_A_CLUSTER __launch_bounds__(THREADS, RESIDENT)
split_gemm(const element* x, const element* w, element* y, int m_rows, int n_columns, int k_columns, float epsilon,
           element* k_cache, element* v_cache, const float2* turns, const int* positions, const int* slots, int heads,
           int kv_heads) {
#if !HAS_MMA
#error "this product needs tensor cores of compute capability 8.0 or later: take skinny_gemm.cu"
#else
    SHARED(uint4, ring);
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES, row = lane / 4, quarter = lane % 4;
    const int rank = blockIdx.x % CLUSTER, first_tile = blockIdx.x / CLUSTER * WARPS, tiles = n_columns / 16;
    const int all_steps = k_columns / (32 * PIECES), first_step = all_steps * rank / CLUSTER;
    const int steps = all_steps * (rank + 1) / CLUSTER - first_step;
    // A warp behind the last tile reads the last one, and nobody takes its sums.
    const int tile = first_tile + warp < tiles ? first_tile + warp : tiles - 1;
    const uint4* weights = (const uint4*)w + ((long long)tile * (k_columns / 32) + first_step * PIECES) * 64 + lane;
    const uint4* inputs = (const uint4*)x + (long long)first_step * STAGE;
#if defined(CPU_SHIM)
    __shared__ float all_sums[CLUSTER][SUMS], all_squares[CLUSTER][ROWS];
    float *sums = all_sums[rank], *row_squares = all_squares[rank];
    (void)row_squares;
#else
#if NORM
    __shared__ float row_squares[ROWS];
#endif
    float* sums = (float*)ring;  // once the products are done
#endif

    uint4 next[PIECES][2];  // the upper and the lower 8 rows of the tile
#define LOAD_WEIGHTS(j)                                                                                   \
    next[j][0] = LOAD_ONCE(weights + (j) * 64), next[j][1] = LOAD_ONCE(weights + (j) * 64 + 32)
#define FETCH(step)                                                                                       \
    {                                                                                                     \
        if ((step) < steps)                                                                               \
            _Pragma("unroll 1") for (int at = thread; at < STAGE; at += THREADS)                                              \
                COPY_ASYNC(ring + (step) % STAGES * STAGE + at, inputs + (long long)(step) * STAGE + at); \
        COPY_COMMIT();                                                                                    \
    }
    if (steps > 0) {  // weights do not depend on the kernel before: do not wait for it
#pragma unroll
        for (int j = 0; j < PIECES; ++j) LOAD_WEIGHTS(j);
    }
    START_NEXT();
    AWAIT_PREVIOUS();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) FETCH(s)

    float sum[GROUPS][4];
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) sum[i][0] = sum[i][1] = sum[i][2] = sum[i][3] = 0.0f;
#if NORM
#define TURNS ((GROUPS + WARPS - 1) / WARPS)  // this warp looks after the squares of group warp, warp + WARPS ...
    float squares[TURNS][4];
#pragma unroll
    for (int n = 0; n < TURNS; ++n) squares[n][0] = squares[n][1] = squares[n][2] = squares[n][3] = 0.0f;
#endif
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        COPY_WAIT(STAGES - 2);
        __syncthreads();
        FETCH(step + STAGES - 1)
        weights += PIECES * 64;
        const uint4* here = ring + step % STAGES * STAGE + lane;
#pragma unroll
        for (int j = 0; j < PIECES; ++j) {
            const uint4 upper = next[j][0], lower = next[j][1];
            if (step + 1 < steps) LOAD_WEIGHTS(j);
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                const uint4 word = here[(j * GROUPS + i) * LANES];
                mma(sum[i], upper.x, lower.x, upper.y, lower.y, word.x, word.y);
                mma(sum[i], upper.z, lower.z, upper.w, lower.w, word.z, word.w);
            }
#if NORM
#pragma unroll
            for (int n = 0; n < TURNS; ++n)
                if (warp + n * WARPS < GROUPS) {  // the squares are the diagonal of x times itself
                    const uint4 word = here[(j * GROUPS + warp + n * WARPS) * LANES];
                    mma(squares[n], word.x, 0, word.y, 0, word.x, word.y);
                    mma(squares[n], word.z, 0, word.w, 0, word.z, word.w);
                }
#endif
        }
    }
    COPY_WAIT(0);
    __syncthreads();  // the ring becomes the room for sums
#pragma unroll
    for (int i = 0; i < GROUPS; ++i)
#pragma unroll
        for (int k = 0; k < 4; ++k)
            sums[(16 * warp + row + k / 2 * 8) * PITCH + 8 * i + 2 * quarter + k % 2] = sum[i][k];
#if NORM
#pragma unroll
    for (int n = 0; n < TURNS; ++n)
        if (row / 2 == quarter && warp + n * WARPS < GROUPS)
            row_squares[8 * (warp + n * WARPS) + row] = row % 2 ? squares[n][1] : squares[n][0];
#endif
#if CLUSTER > 1
    MEET_CLUSTER();
#else
    __syncthreads();
#endif
#if defined(CPU_SHIM)
    if (rank < CLUSTER - 1) return;  // the blocks run one after the other, and the last adds up everything
    for (int at = thread; at < 8 * WARPS * m_rows; at += THREADS) {
#else
    for (int at = rank * THREADS + thread; at < 8 * WARPS * m_rows; at += THREADS * CLUSTER) {
#endif
        // Two sums at a time: rows i and i + 8 of a tile, for one row m of x.
        const int i = at % 8, r = at / 8 % WARPS, m = at / (8 * WARPS);
        if (first_tile + r >= tiles) continue;
        const int upper = (16 * r + i) * PITCH + m, lower = upper + 8 * PITCH;
        float first = 0.0f, second = 0.0f;
#if CLUSTER > 1
#pragma unroll
        for (int u = 0; u < CLUSTER; ++u) {
            first += FROM_PEER(sums + upper, u, SUMS);
            second += FROM_PEER(sums + lower, u, SUMS);
        }
#else
        first = sums[upper], second = sums[lower];
#endif
#if NORM
        float total = 0.0f;
#if CLUSTER > 1
#pragma unroll
        for (int u = 0; u < CLUSTER; ++u) total += FROM_PEER(row_squares + m, u, ROWS);
#else
        total = row_squares[m];
#endif
        const float factor = RSQRT(total / k_columns + epsilon);
        first *= factor;
        second *= factor;
#endif
        finish(first_tile + r, i, m, first, second, y, n_columns, k_cache, v_cache, turns, positions, slots, heads, kv_heads);
    }
#if CLUSTER > 1
    MEET_CLUSTER();  // nobody leaves while another reads its sums
#endif
#endif
}
