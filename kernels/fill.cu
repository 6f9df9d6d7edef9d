// Random numbers that depend on nothing but their place: out[i] is uniform in [-bound, bound), from the bits of
// (first + i) and the seed mixed as in splitmix64 (Steele, Lea and Flood, OOPSLA 2014). A CPU gets the same bits.
//
// Launch: any number of blocks of 256 threads.
#define THREADS 256

extern "C" __global__ void __launch_bounds__(THREADS)
fill(element* out, long long count, unsigned long long first, unsigned long long seed, float bound) {
    const long long stride = (long long)gridDim.x * THREADS;
    for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < count; i += stride) {
        unsigned long long z = (first + i) * 0x9e3779b97f4a7c15ull + seed * 0xd1342543de82ef95ull;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        z ^= z >> 31;
        out[i] = to_element(bound * ((int)(z >> 40) - (1 << 23)) * 0x1p-23f);
    }
}
