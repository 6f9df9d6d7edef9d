// Tensor cores, copies into shared memory that pass no register, and kernels that start early: what compute capability
// 8.0 and 9.0 brought. The CPU shim computes the same by hand; HAS_MMA is 0 where there is nothing of it.
#if defined(CPU_SHIM)
#define HAS_MMA 1
#define COPY_ASYNC(to, from) (*(to) = *(from))
#define COPY_COMMIT()
#define COPY_WAIT(groups)
#define LOAD_MATRICES(r, row) shim::load_matrices(r, row, false, __LINE__)
#define LOAD_MATRICES_TURNED(r, row) shim::load_matrices(r, row, true, __LINE__)
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define HAS_MMA 1
DEVICE bits32 shared_address(const void* pointer) { return (bits32)__cvta_generic_to_shared(pointer); }
// 16 bytes from global to shared memory, without passing through registers; COPY_WAIT(n): all but the last n groups
// have arrived.
#define COPY_ASYNC(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from))
#define COPY_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define COPY_WAIT(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
// Four 8x8 matrices of 16-bit numbers from shared memory: lane i gives the address of row i % 8 of matrix i / 8.
#define LOAD_MATRICES(r, row)                                                                      \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"                 \
                 : "=r"((r)[0]), "=r"((r)[1]), "=r"((r)[2]), "=r"((r)[3]) : "r"(shared_address(row)))
#define LOAD_MATRICES_TURNED(r, row)                                                               \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"           \
                 : "=r"((r)[0]), "=r"((r)[1]), "=r"((r)[2]), "=r"((r)[3]) : "r"(shared_address(row)))
#else
#define HAS_MMA 0
#endif

// Programmatic dependent launch: a kernel may start while the one before it drains. It must not touch what that one
// writes before AWAIT_PREVIOUS, which every thread reaches; without such a launch both are nothing.
#if !defined(CPU_SHIM) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define START_NEXT() asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define AWAIT_PREVIOUS() asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define START_NEXT()
#define AWAIT_PREVIOUS()
#endif

// Blocks of a cluster (compute capability 9.0), which is CLUSTER of them side by side: all meet; and numbers that stand at
// the same place of another block's shared memory. On the CPU the blocks run one after the other, each keeps `stride`
// numbers behind those of the one before, and only the last may look.
#if defined(CPU_SHIM)
#define MEET_CLUSTER() __syncthreads()
#define FROM_PEER(mine, rank, stride) (*((mine) - (CLUSTER - 1 - (rank)) * (stride)))
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define MEET_CLUSTER() \
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory")
DEVICE bits32 peer_address(const void* mine, int rank) {
    bits32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(mine)), "r"(rank));
    return there;
}
DEVICE float4 from_peer(const float4* mine, int rank) {
    float4 v;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(peer_address(mine, rank)));
    return v;
}
DEVICE float2 from_peer(const float2* mine, int rank) {
    float2 v;
    asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(peer_address(mine, rank)));
    return v;
}
DEVICE float from_peer(const float* mine, int rank) {
    float v;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(peer_address(mine, rank)));
    return v;
}
#define FROM_PEER(mine, rank, stride) from_peer(mine, rank)
#endif

// c (16 x 8, float) += a (16 x 16) b (16 x 8), by a group of lanes. Lane 4 g + t holds, as pairs of neighbours in k:
// a0: row g, k 2t; a1: row g + 8, k 2t; a2: row g, k 2t + 8; a3: row g + 8, k 2t + 8; b0: column g, k 2t; b1: column g,
// k 2t + 8; c[0], c[1]: row g, columns 2t, 2t + 1; c[2], c[3]: row g + 8. (PTX ISA, mma.m16n8k16.)
#if defined(CPU_SHIM)
DEVICE void mma(float* c, bits32 a0, bits32 a1, bits32 a2, bits32 a3, bits32 b0, bits32 b1) {
    const bits32 mine[6] = {a0, a1, a2, a3, b0, b1};
    shim::mma(c, mine, low, high, 0);
}
DEVICE float low_half(bits32 pair) { return from_fp16((bits16)(pair & 0xffffu)); }
DEVICE float high_half(bits32 pair) { return from_fp16((bits16)(pair >> 16)); }
DEVICE bits32 half_pair(float first, float second) { return to_fp16(first) | (bits32)to_fp16(second) << 16; }
DEVICE void mma_halves(float* c, bits32 a0, bits32 a1, bits32 a2, bits32 a3, bits32 b0, bits32 b1) {
    const bits32 mine[6] = {a0, a1, a2, a3, b0, b1};
    shim::mma(c, mine, low_half, high_half, 0);
}
#elif HAS_MMA
#if ELEMENT == 0
#define MMA_TYPE "bf16.bf16"
#else
#define MMA_TYPE "f16.f16"
#endif
DEVICE void mma(float* c, bits32 a0, bits32 a1, bits32 a2, bits32 a3, bits32 b0, bits32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
// The same of fp16 numbers, whatever the kernel works on, and two numbers as fp16.
DEVICE void mma_halves(float* c, bits32 a0, bits32 a1, bits32 a2, bits32 a3, bits32 b0, bits32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
DEVICE bits32 half_pair(float first, float second) {
    bits32 both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}
#endif
