// Rows of a table by their numbers: embeddings of tokens, or the last hidden states of the sequences of a step.
//
// table: [any][columns]. out: [rows][columns], or with -DGROUPS=n the packed activations of skinny_gemm.cu with room for
// 8 n rows; then with -DSQUARES=1 squares gets those of each row in parts of 16 columns, [columns / 16][8 n]. Launch: rows x ceil(columns / WIDE / 128) blocks of 128 threads.
#ifndef GROUPS
#define GROUPS 0
#endif
#ifndef SQUARES
#define SQUARES 0
#endif
#define THREADS 128

extern "C" __global__ void __launch_bounds__(THREADS)
gather(const element* table, const int* ids, element* out, float* squares, int columns) {
    const int row = blockIdx.x, part = blockIdx.y * THREADS + threadIdx.x, parts = columns / WIDE;
    START_NEXT();
    AWAIT_PREVIOUS();
    const uint4 v = ((const uint4*)table)[(long long)ids[row] * parts + (part < parts ? part : 0)];
#if GROUPS && SQUARES
    float f[WIDE], its = 0.0f;
    unpack(f, v);
#pragma unroll
    for (int k = 0; k < WIDE; ++k) its += f[k] * f[k];
    its += SHUFFLE_XOR(its, 1);  // packed numbers are of 16 bits: two words are 16 of them
    if (part < parts && part % 2 == 0) squares[part / 2 * (8 * GROUPS) + row] = its;
#else
    (void)squares;
#endif
    if (part >= parts) return;
#if GROUPS
    ((uint4*)out)[((long long)(part / 4 * GROUPS + row / 8) * 8 + row % 8) * 4 + part % 4] = v;
#else
    ((uint4*)out)[(long long)row * parts + part] = v;
#endif
}
