// The gate of Llama's MLP: y = silu(gate) * up, silu(x) = x / (1 + exp(-x)). Shazeer, arXiv:2002.05202 (SwiGLU).
//
// gate_up: [rows][2 * columns], gates first. y: [rows][columns]. Launch: rows x ceil(columns / WIDE / 128) blocks of 128
// threads. columns: a multiple of WIDE.
#define THREADS 128

extern "C" __global__ void __launch_bounds__(THREADS) silu(const element* gate_up, element* y, int columns) {
    const int part = blockIdx.y * THREADS + threadIdx.x, parts = columns / WIDE;
    START_NEXT();
    AWAIT_PREVIOUS();
    if (part >= parts) return;
    const uint4* row = (const uint4*)gate_up + (long long)blockIdx.x * 2 * parts;
    float gate[WIDE], up[WIDE];
    unpack(gate, row[part]);
    unpack(up, row[parts + part]);
#pragma unroll
    for (int k = 0; k < WIDE; ++k) gate[k] *= up[k] / (1.0f + EXP2(-1.44269504f * gate[k]));
    ((uint4*)y)[(long long)blockIdx.x * parts + part] = pack(gate);
}
