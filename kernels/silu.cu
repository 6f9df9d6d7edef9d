// The gate of Llama's MLP: y = silu(gate) * up, silu(x) = x / (1 + exp(-x)). Shazeer, arXiv:2002.05202 (SwiGLU).
//
// gate_up: [rows][2 * columns], gates first. y: [rows][columns]. columns: a multiple of WIDE. Comes behind row_norm.h.
// Launch: rows x ceil(columns / WIDE / THREADS) blocks of THREADS threads.
//
// -DNORM=1: gate_up are sums over rows of x, [rows][hidden], that count as normed without a weight; x is read before the
// kernel before this one is done, and must not be written by it.
#ifndef NORM
#define NORM 0
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
silu(const element* gate_up, element* y, int columns, const element* x, int hidden, float epsilon) {
    const int part = blockIdx.y * THREADS + threadIdx.x, parts = columns / WIDE;
    const bool inside = part < parts;
#if NORM
    const uint4* normed = (const uint4*)(x + (long long)blockIdx.x * hidden);
    uint4 held[HELD];
    hold_row(held, normed, hidden / WIDE);
#endif
    START_NEXT();
    AWAIT_PREVIOUS();
    const uint4* row = (const uint4*)gate_up + (long long)blockIdx.x * 2 * parts;
    const uint4 first = row[inside ? part : 0], second = row[parts + (inside ? part : 0)];
#if NORM
    const float norm = norm_of_row(held, normed, hidden / WIDE, epsilon);
#endif
    if (!inside) return;
    float gate[WIDE], up[WIDE];
    unpack(gate, first);
    unpack(up, second);
#pragma unroll
    for (int k = 0; k < WIDE; ++k) {
#if NORM
        gate[k] *= norm, up[k] *= norm;
#endif
        gate[k] *= up[k] / (1.0f + EXP2(-1.44269504f * gate[k]));
    }
    ((uint4*)y)[(long long)blockIdx.x * parts + part] = pack(gate);
}
