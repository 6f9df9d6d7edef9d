// What the products with packed weights share: a tile of 16 rows of W times a group of 8 rows of x, and the squares of x
// that a norm wants. It comes behind finish.h and before skinny_gemm.cu and split_gemm.cu.
//
// Lane 4 row + quarter has, of 32 columns, 8 of row `row` of the tile (upper), of row `row` + 8 (lower), and of row `row`
// of the group (word). With tensor cores these are two steps of mma as they are, since a dot product may add up its terms
// in any order: sum has rows `row` and `row` + 8 of the tile times rows 2 quarter and the next of the group. Without, sum
// has both rows of the tile times each row of the group, over this lane's columns.
#ifndef TENSOR
#define TENSOR 0
#endif
#ifndef NORM
#define NORM 0
#endif
#ifndef RESIDENT
#define RESIDENT 2
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef SQUARES
#define SQUARES 0  // 1: who adds to x leaves the squares of each row in parts of 16 columns, and who norms x adds them up
#endif
#if TENSOR && !HAS_MMA
#error "tensor cores as used here need compute capability 8.0 or later: compile with -DTENSOR=0"
#endif
#define EACH (TENSOR ? 4 : 16)  // sums that a lane has of a tile and a group

DEVICE float add_quarters(float x) {  // the same in the four lanes of a row
    x += SHUFFLE_XOR(x, 1);
    return x + SHUFFLE_XOR(x, 2);
}

// Adds up the parts that this warp has of the squares of each row: parts are [tiles][ROWS], sums [ROWS].
#define ROW_QUADS (GROUPS > 4 ? 16 : GROUPS > 2 ? 8 : 2 * GROUPS)  // lanes that share a part, a power of two
DEVICE void add_squares(const float* parts, int tiles, float* sums, int warp, int lane) {
    const int quad = lane % ROW_QUADS, many = LANES / ROW_QUADS;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (quad < 2 * GROUPS)
#pragma unroll 4
        for (int tile = warp * many + lane / ROW_QUADS; tile < tiles; tile += WARPS * many) {
            const float4 one = ((const float4*)parts)[tile * 2 * GROUPS + quad];
            sum.x += one.x, sum.y += one.y, sum.z += one.z, sum.w += one.w;
        }
#pragma unroll
    for (int mask = ROW_QUADS; mask < LANES; mask *= 2) {
        sum.x += SHUFFLE_XOR(sum.x, mask), sum.y += SHUFFLE_XOR(sum.y, mask);
        sum.z += SHUFFLE_XOR(sum.z, mask), sum.w += SHUFFLE_XOR(sum.w, mask);
    }
    if (lane < 2 * GROUPS) ((float4*)sums)[lane] = sum;
}

#if TENSOR && HAS_MMA
DEVICE void multiply(float* sum, uint4 upper, uint4 lower, uint4 word, const uint4*, int) {
    mma(sum, upper.x, lower.x, upper.y, lower.y, word.x, word.y);
    mma(sum, upper.z, lower.z, upper.w, lower.w, word.z, word.w);
}
// The squares of the rows of a group are the diagonal of x times itself.
DEVICE void square(float* squares, uint4 word) {
    mma(squares, word.x, 0, word.y, 0, word.x, word.y);
    mma(squares, word.z, 0, word.w, 0, word.z, word.w);
}
// The sum of squares of row `row` of the group, in one lane of the four: where `mine` says.
DEVICE float square_of_row(const float* squares, int row) { return row % 2 ? squares[1] : squares[0]; }
DEVICE bool mine(int row, int quarter) { return row / 2 == quarter; }
// Writes the sums of a tile and a group: of row m of the group and row r of the tile to to[m * pitch + r].
DEVICE void leave(float* to, int pitch, const float* sum, int row, int quarter) {
#pragma unroll
    for (int k = 0; k < 4; ++k) to[(2 * quarter + k % 2) * pitch + row + k / 2 * 8] = sum[k];
}
#else
DEVICE void multiply(float* sum, uint4 upper, uint4 lower, uint4, const uint4* words, int rows) {
    float high_row[WIDE], low_row[WIDE], f[WIDE];
    unpack(high_row, upper);
    unpack(low_row, lower);
#pragma unroll
    for (int m = 0; m < 8; ++m)
        if (m < rows) {
            unpack(f, words[4 * m + threadIdx.x % 4]);
#pragma unroll
            for (int k = 0; k < WIDE; ++k) sum[2 * m] += high_row[k] * f[k], sum[2 * m + 1] += low_row[k] * f[k];
        }
}
DEVICE void square(float* squares, uint4 word) {
    float f[WIDE];
    unpack(f, word);
#pragma unroll
    for (int k = 0; k < WIDE; ++k) squares[0] += f[k] * f[k];
}
DEVICE float square_of_row(const float* squares, int) { return add_quarters(squares[0]); }
DEVICE bool mine(int, int quarter) { return quarter == 0; }
DEVICE void leave(float* to, int pitch, const float* sum, int row, int quarter) {
#pragma unroll
    for (int m = 0; m < 8; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float s = add_quarters(sum[2 * m + half]);
            if (quarter == 0) to[m * pitch + row + 8 * half] = s;
        }
}
#endif
