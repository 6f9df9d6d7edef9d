// Rows of a table by their numbers: embeddings of tokens, or the last hidden states of the sequences of a step.
//
// table: [any][columns]. out: [rows][columns], or with -DGROUPS=n the packed activations of skinny_gemm.cu with room for
// 8 n rows. Launch: rows x ceil(columns / WIDE / 128) blocks of 128 threads.
#ifndef GROUPS
#define GROUPS 0
#endif
#define THREADS 128

extern "C" __global__ void __launch_bounds__(THREADS)
gather(const element* table, const int* ids, element* out, int columns) {
    const int row = blockIdx.x, part = blockIdx.y * THREADS + threadIdx.x, parts = columns / WIDE;
    START_NEXT();
    AWAIT_PREVIOUS();
    if (part >= parts) return;
    const uint4 v = ((const uint4*)table)[(long long)ids[row] * parts + part];
#if GROUPS
    ((uint4*)out)[((long long)(part / 4 * GROUPS + row / 8) * 8 + row % 8) * 4 + part % 4] = v;
#else
    ((uint4*)out)[(long long)row * parts + part] = v;
#endif
}
