// y = x W^T for up to 64 rows x, with packed weights and activations as in skinny_gemm.cu: for rows so many that x, which
// every block of that kernel fetches from the second cache, would be more to fetch than W.
//
// A thread block computes WARPS tiles of 16 columns of y, a tile a warp, so that x is fetched once for all of them: into
// shared memory, PIECES times 32 columns at a time, STAGES of those under way. -DCLUSTER=n: n blocks share these tiles, each
// over its part of K, and add up out of each other's shared memory (compute capability 9.0); where W has few rows, that
// gives work to all multiprocessors without fetching x more often.
//
// Launch: (N / 16 / WARPS rounded up, times CLUSTER) blocks of 32 * WARPS threads; shared memory: see `shared_bytes`
// in course/gpu/ops/split_gemm.py. K: a multiple of 32 * PIECES. NORM, FINISH: as in skinny_gemm.cu. -DTENSOR=0 is the
// same on plain cores, for up to 32 rows.
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
#define THREADS (WARPS * LANES)
#define STAGE (PIECES * GROUPS * LANES)  // words of 16 bytes
#define PITCH (16 * WARPS + 4)           // floats between the sums of two rows of x, so that they lie in different banks
#define SUMS (ROWS * PITCH)

#if CLUSTER > 1 && !defined(CPU_SHIM)
#define OF_A_CLUSTER __cluster_dims__(CLUSTER, 1, 1)
#else
#define OF_A_CLUSTER
#endif
#if CLUSTER > 1
#define FROM(mine, rank, stride) FROM_PEER(mine, rank, stride)
#else
#define FROM(mine, rank, stride) (*(mine))
#endif

extern "C" __global__ void OF_A_CLUSTER BOUNDS(THREADS, RESIDENT)
split_gemm(const element* x, const element* w, element* y, int m_rows, int n_columns, int k_columns, float epsilon,
           cached* k_cache, cached* v_cache, const float2* turns, const int* positions, const int* slots,
           const float* scales, float* squares, int heads, int kv_heads) {
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
    __shared__ __align__(16) float all_sums[CLUSTER][SUMS], all_squares[CLUSTER][ROWS];
    float *sums = all_sums[rank], *row_squares = all_squares[rank];
    (void)row_squares;
#else
#if NORM && !SQUARES
    __shared__ float row_squares[ROWS];
#endif
    float* sums = (float*)ring;  // once the products are done
#endif

    uint4 next[PIECES][2];  // the upper and the lower 8 rows of the tile
#define LOAD_WEIGHTS(j)                                                                                   \
    next[j][0] = LOAD_ONCE(weights + (j) * 64), next[j][1] = LOAD_ONCE(weights + (j) * 64 + 32)
#ifndef COPY_ASYNC
#define COPY_ASYNC(to, from) (*(to) = *(from))
#define COPY_COMMIT()
#define COPY_WAIT(groups)
#endif
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

    float sum[GROUPS][EACH];
#pragma unroll
    for (int i = 0; i < GROUPS; ++i)
#pragma unroll
        for (int k = 0; k < EACH; ++k) sum[i][k] = 0.0f;
#if NORM && SQUARES
    __shared__ __align__(16) float parts_squares[WARPS][ROWS];
    add_squares(squares, k_columns / 16, parts_squares[warp], warp, lane);
#elif NORM
#define TURNS ((GROUPS + WARPS - 1) / WARPS)  // this warp looks after the squares of group warp, warp + WARPS ...
    float own[TURNS][4];
#pragma unroll
    for (int n = 0; n < TURNS; ++n) own[n][0] = own[n][1] = own[n][2] = own[n][3] = 0.0f;
#endif
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        COPY_WAIT(STAGES - 2);
        __syncthreads();
        FETCH(step + STAGES - 1)
        weights += PIECES * 64;
        const uint4* here = ring + step % STAGES * STAGE;
#pragma unroll
        for (int j = 0; j < PIECES; ++j) {
            const uint4 upper = next[j][0], lower = next[j][1];
            if (step + 1 < steps) LOAD_WEIGHTS(j);
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                const uint4* words = here + (j * GROUPS + i) * LANES;
                multiply(sum[i], upper, lower, words[lane], words, 8);
            }
#if NORM && !SQUARES
#pragma unroll
            for (int n = 0; n < TURNS; ++n)
                if (warp + n * WARPS < GROUPS) square(own[n], here[(j * GROUPS + warp + n * WARPS) * LANES + lane]);
#endif
        }
    }
    COPY_WAIT(0);
    __syncthreads();  // the ring becomes the room for sums
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) leave(sums + 8 * i * PITCH + 16 * warp, PITCH, sum[i], row, quarter);
#if NORM && !SQUARES
#pragma unroll
    for (int n = 0; n < TURNS; ++n) {
        const float its = square_of_row(own[n], row);
        if (mine(row, quarter) && warp + n * WARPS < GROUPS) row_squares[8 * (warp + n * WARPS) + row] = its;
    }
#endif
#if CLUSTER > 1
    MEET_CLUSTER();
#else
    __syncthreads();
#endif
#if defined(CPU_SHIM)
    if (rank < CLUSTER - 1) return;  // the blocks run one after the other, and the last adds up everything
    for (int at = thread; at < 2 * WARPS * m_rows; at += THREADS) {
#else
    for (int at = rank * THREADS + thread; at < 2 * WARPS * m_rows; at += THREADS * CLUSTER) {
#endif
        // Four pairs at a time: rows i ... i + 3 of a tile and the 8 below them, for one row m of x.
        const int i = at % 2 * 4, r = at / 2 % WARPS, m = at / (2 * WARPS);
        if (first_tile + r >= tiles) continue;
        const float4* from = (const float4*)(sums + m * PITCH + 16 * r + i);
        float4 upper = make_float4(0.0f, 0.0f, 0.0f, 0.0f), lower = upper;
#pragma unroll
        for (int u = 0; u < CLUSTER; ++u) {
            const float4 one = FROM(from, u, SUMS / 4), other = FROM(from + 2, u, SUMS / 4);
            upper.x += one.x, upper.y += one.y, upper.z += one.z, upper.w += one.w;
            lower.x += other.x, lower.y += other.y, lower.z += other.z, lower.w += other.w;
        }
        float factor = 1.0f;
#if NORM
        float total = 0.0f;
#pragma unroll
#if SQUARES
        for (int u = 0; u < WARPS; ++u) total += parts_squares[u][m];
#else
        for (int u = 0; u < CLUSTER; ++u) total += FROM(row_squares + m, u, ROWS);
#endif
        factor = RSQRT(total / k_columns + epsilon);
#endif
        const float firsts[4] = {upper.x, upper.y, upper.z, upper.w}, seconds[4] = {lower.x, lower.y, lower.z, lower.w};
#pragma unroll
        for (int k = 0; k < 4; ++k)
            finish(first_tile + r, i + k, m, firsts[k] * factor, seconds[k] * factor, y, n_columns, k_cache, v_cache, turns,
                   positions, slots, scales, heads, kv_heads);
    }
#if CLUSTER > 1
    MEET_CLUSTER();  // nobody leaves while another reads its sums
#endif
}
