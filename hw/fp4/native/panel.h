// Products of any number of rows with a panel of outputs whose weights are decoded to float32 once per 64 rows.
//
// For each (row, output) eight lanes accumulate x[k] w[k], k ascending, by fused multiply-add, then sum(): the same
// operations whatever the number of rows, outputs or threads, so a row's result is a function of the row alone.
#pragma once

#include <vector>

#include "matrix.h"

namespace hideaway {

inline constexpr int kPanelRows = 64;     // rows a decoded tile serves; their slice of x stays in the level-2 cache
inline constexpr int kPanelOutputs = 32;  // outputs of a panel; their accumulators stay in the level-2 cache
inline constexpr int kTile = 4;           // outputs multiplied at a time
inline constexpr int kDepth = 3 * kGroup;  // columns of a tile: 12 KiB of weights in the level-1 cache

constexpr int kDecodeAhead = 2048;        // bytes of codes prefetched ahead

struct PanelScratch {
    std::vector<float> tile = std::vector<float>(kTile * kDepth);
    std::vector<float> sums = std::vector<float>(kPanelRows * kPanelOutputs * 8);
};

// Weights [start, start + depth) of one output as float32, value * (scale * factor) with `factor` the format's
// per-tensor one (1 in mxfp4); followed by zeros up to a multiple of 32.
template <class Format>
[[gnu::noinline]] void decode(const Matrix& matrix, int64_t output, float factor, int64_t start, int64_t depth, float* to) {
    constexpr int block = Format::kBlock;
    const int64_t row_blocks = matrix.columns / block;
    const uint8_t* codes = matrix.codes + output * matrix.codes_stride() + start / 2;
    const uint8_t* bytes = matrix.scales + output * row_blocks;
    const auto step = [&](const uint8_t* from, float* into, const float* scale) {
        const Float32x32 values = values32(from);
        for (int part = 0; part < 4; ++part) {
            store(into + 8 * part, mul(values.part[part], broadcast(scale[8 * part / block])));
        }
    };
    for (int64_t at = 0; at < depth; at += kGroup) {
        const auto scales = group_scales<Format>(bytes, row_blocks, (start + at) / kGroup);
        float scale[Format::kGroupScales];
        for (int part = 0; part < Format::kGroupScales / 8; ++part) {
            store(scale + 8 * part, mul(scales.part[part], broadcast(factor)));
        }
        prefetch(codes + at / 2 + kDecodeAhead);
        prefetch(codes + at / 2 + kDecodeAhead + 64);
        const int64_t here = std::min<int64_t>(depth - at, kGroup);
        int64_t k = 0;
        for (; k + 32 <= here; k += 32) step(codes + (at + k) / 2, to + at + k, scale + k / block);
        if (k < here) {
            uint8_t padded[16];
            copy_padded(padded, codes + (at + k) / 2, (here - k) / 2);
            step(padded, to + at + k, scale + k / block);
        }
    }
}

// sums[r][o] += x[r] w[o] lane by lane over `depth` columns, R rows and kTile outputs.
template <int R>
[[gnu::noinline]] void multiply(const float* x, int64_t x_stride, const float* tile, int64_t depth, float* sums,
                     int64_t sums_stride) {
    Float8 total[R][kTile];
    for (int r = 0; r < R; ++r)
        for (int o = 0; o < kTile; ++o) total[r][o] = load(sums + r * sums_stride + o * 8);
    for (int64_t k = 0; k < depth; k += 8) {
        Float8 row[R];
        for (int r = 0; r < R; ++r) row[r] = load(x + r * x_stride + k);
        for (int o = 0; o < kTile; ++o) {
            const Float8 weight = load(tile + o * kDepth + k);
            for (int r = 0; r < R; ++r) total[r][o] = fma(row[r], weight, total[r][o]);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int o = 0; o < kTile; ++o) store(sums + r * sums_stride + o * 8, total[r][o]);
}

struct Output {
    int64_t index;  // row of the matrix
    float factor;   // the format's per-tensor factor
};

// out[r * kPanelOutputs + o] = row r times outputs[o]. x has `rows` rows of `x_stride` floats, zeros beyond the
// columns up to a multiple of 32; rows <= kPanelRows.
template <class Format>
[[gnu::noinline]] void panel_products(const Matrix& matrix, const Output* outputs, int count, const float* x, int64_t x_stride,
                           int rows, PanelScratch& scratch, float* out) {
    constexpr int64_t stride = kPanelOutputs * 8;
    float* sums = scratch.sums.data();
    std::fill(sums, sums + rows * stride, 0.0f);
    for (int64_t start = 0; start < matrix.columns; start += kDepth) {
        const int64_t depth = std::min<int64_t>(kDepth, matrix.columns - start);
        const int64_t padded = round_up(depth, 32);
        for (int first = 0; first < count; first += kTile) {
            for (int o = 0; o < kTile; ++o) {  // past the last output the last is repeated and not read back
                const Output& output = outputs[std::min(first + o, count - 1)];
                decode<Format>(matrix, output.index, output.factor, start, depth, scratch.tile.data() + o * kDepth);
            }
            const float* tile = scratch.tile.data();
            float* to = sums + first * 8;
            int r = 0;
            for (; r + 3 <= rows; r += 3) {
                multiply<3>(x + r * x_stride + start, x_stride, tile, padded, to + r * stride, stride);
            }
            if (rows - r == 2) multiply<2>(x + r * x_stride + start, x_stride, tile, padded, to + r * stride, stride);
            if (rows - r == 1) multiply<1>(x + r * x_stride + start, x_stride, tile, padded, to + r * stride, stride);
        }
    }
    for (int r = 0; r < rows; ++r)
        for (int o = 0; o < count; ++o) out[r * kPanelOutputs + o] = sum(load(sums + r * stride + o * 8));
}

}  // namespace hideaway
