// Products of a few rows with a matrix read straight from its codes, each weight byte once.
//
// Rows become 16-bit integers, one scale per block of the matrix's format, held as two planes of signed bytes:
// x = scale * (256 * upper + lower), |256 * upper + lower| <= 127 * 256, so |error of x| <= block maximum / 65024.
// With unsigned weights v = 2 w + 12, sum(w x) = scale / 2 * (sum(v x) - 12 sum(x)); the sums over a block are exact
// integers, and the terms of all blocks are added in float32. A row's operations do not depend on the other rows.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "matrix.h"

namespace hideaway {

inline constexpr int kFewRows = 4;      // rows that share one decoding of the weights
inline constexpr int kAhead = 4096;     // bytes of codes prefetched ahead, beyond what the hardware does
inline constexpr float kMost = 32512.0f;  // 127 * 256

// Rows as planes, scales and corrections, padded with zeros to whole groups.
template <class Format>
struct IntegerRows {
    int64_t padded = 0;
    std::vector<int8_t> planes;      // (rows, padded / 64, 4, 32)
    std::vector<float> scales;       // (rows, padded / block): half the block's scale
    std::vector<float> corrections;  // (rows, padded / block): -12 times the block's sum of integers

    void resize(int64_t rows, int64_t columns) {
        padded = round_up(columns, kGroup);
        planes.resize(static_cast<size_t>(rows * padded * 2));
        scales.resize(static_cast<size_t>(rows * padded / Format::kBlock));
        corrections.resize(scales.size());
    }
    const int8_t* planes_of(int64_t row) const { return planes.data() + row * padded * 2; }
    const float* scales_of(int64_t row) const { return scales.data() + row * (padded / Format::kBlock); }
    const float* corrections_of(int64_t row) const { return corrections.data() + row * (padded / Format::kBlock); }

    void set_row(int64_t row, const float* values, int64_t columns) {
        int8_t* to = planes.data() + row * padded * 2;
        float* scale_to = scales.data() + row * (padded / Format::kBlock);
        float* correction_to = corrections.data() + row * (padded / Format::kBlock);
        for (int64_t start = 0; start < padded; start += kUnit) {
            float x[kUnit] = {};
            const int64_t count = std::clamp<int64_t>(columns - start, 0, kUnit);
            if (count > 0) std::memcpy(x, values + start, static_cast<size_t>(count) * sizeof(float));
            set_unit(x, to + start * 2, scale_to + start / Format::kBlock, correction_to + start / Format::kBlock);
        }
    }

  private:
    // Loops of fixed length over arrays, so that the compiler turns each into a few vector instructions.
    static void set_unit(const float (&x)[kUnit], int8_t* to, float* scale_to, float* correction_to) {
        constexpr int block = Format::kBlock;
        constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
        int32_t magnitude[kUnit], bits[kUnit];
        float shifted[kUnit];
        std::memcpy(magnitude, x, sizeof x);
        for (int start = 0; start < kUnit; start += block) {
            int32_t most[8] = {};
            for (int i = 0; i < block; i += 8)
                for (int j = 0; j < 8; ++j) most[j] = std::max(most[j], magnitude[start + i + j] & 0x7fffffff);
            for (int j = 1; j < 8; ++j) most[0] = std::max(most[0], most[j]);
            const bool finite = most[0] < 0x7f800000;
            float largest;
            std::memcpy(&largest, most, sizeof largest);
            largest = std::max(largest, 0x1p-80f);  // the reciprocal is finite, products with scales normal
            const float inverse = finite ? kMost / largest : 0.0f;
            for (int i = start; i < start + block; ++i) shifted[i] = x[i] * inverse + kRound;
            scale_to[start / block] =
                finite ? largest / (2.0f * kMost) : std::numeric_limits<float>::quiet_NaN();
        }
        std::memcpy(bits, shifted, sizeof bits);
        int16_t low[kUnit / 2], high[kUnit / 2];
        for (int i = 0; i < kUnit / 2; ++i) {
            low[i] = static_cast<int16_t>(bits[2 * i]);
            high[i] = static_cast<int16_t>(bits[2 * i + 1]);
        }
        for (int i = 0; i < kUnit / 2; ++i) to[i] = static_cast<int8_t>(static_cast<int16_t>(low[i] + 128) >> 8);
        for (int i = 0; i < kUnit / 2; ++i) to[i + 32] = static_cast<int8_t>(static_cast<int16_t>(high[i] + 128) >> 8);
        for (int i = 0; i < kUnit / 2; ++i) to[i + 64] = static_cast<int8_t>(low[i]);
        for (int i = 0; i < kUnit / 2; ++i) to[i + 96] = static_cast<int8_t>(high[i]);
        for (int start = 0; start < kUnit; start += block) {
            int32_t total = 0;
            for (int i = start / 2; i < (start + block) / 2; ++i) total += low[i] + high[i];
            correction_to[start / block] = -12.0f * static_cast<float>(total);
        }
    }
};

// Sums of R rows with one output, taken group by group.
template <class Format, int R>
struct RowSums {
    using Scales = typename Format::Scales;
    const int8_t* planes[R];
    const float* scales[R];
    const float* corrections[R];
    Float8 even[R], odd[R];

    RowSums(const IntegerRows<Format>& rows, int64_t first) {
        for (int r = 0; r < R; ++r) {
            planes[r] = rows.planes_of(first + r);
            scales[r] = rows.scales_of(first + r);
            corrections[r] = rows.corrections_of(first + r);
            even[r] = odd[r] = broadcast(0.0f);
        }
    }

    template <int i>
    inline void unit(const uint8_t* codes, const Scales (&products)[R], int64_t group) {
        const Shifted weights = shifted64(codes);
        for (int r = 0; r < R; ++r) {
            const Float8 dot = dot64(weights, planes[r] + group * 2 * kGroup + i * 2 * kUnit);
            Float8& total = i % 2 ? odd[r] : even[r];
            total = fma(dot, Format::template of_unit<i>(products[r]), total);
        }
    }

    inline void begin(const Scales& weight_scales, int64_t group, Scales (&products)[R]) {
        for (int r = 0; r < R; ++r) {
            for (int part = 0; part < Format::kGroupScales / 8; ++part) {
                const int64_t at = group * Format::kGroupScales + part * 8;
                products[r].part[part] = mul(weight_scales.part[part], load(scales[r] + at));
                odd[r] = fma(products[r].part[part], load(corrections[r] + at), odd[r]);
            }
        }
    }
};

// out[r] = row (first + r) times output `output` of the matrix, without the format's per-tensor factor.
template <class Format, int R>
[[gnu::noinline]] void few_products(const Matrix& matrix, int64_t output, const IntegerRows<Format>& rows, int64_t first,
                         float (&out)[R]) {
    const uint8_t* codes = matrix.codes + output * matrix.codes_stride();
    const uint8_t* scales = matrix.scales + output * (matrix.columns / Format::kBlock);
    RowSums<Format, R> sums(rows, first);
    const int64_t groups = matrix.columns / kGroup, blocks = matrix.columns / Format::kBlock;
    typename Format::Scales products[R];
    for (int64_t group = 0; group < groups; ++group) {
        const uint8_t* at = codes + group * (kGroup / 2);
        prefetch(at + kAhead);
        prefetch(at + kAhead + 64);
        sums.begin(group_scales<Format>(scales, blocks, group), group, products);
        sums.template unit<0>(at, products, group);
        sums.template unit<1>(at + 32, products, group);
        sums.template unit<2>(at + 64, products, group);
        sums.template unit<3>(at + 96, products, group);
    }
    const int64_t left = matrix.columns - groups * kGroup;
    if (left > 0) {
        sums.begin(group_scales<Format>(scales, blocks, groups), groups, products);
        const uint8_t* at = codes + groups * (kGroup / 2);
        uint8_t padded[kUnit / 2];
        const auto whole = [&](int i) {  // the codes of unit i, followed by zeros where the row ends inside it
            if (left >= (i + 1) * kUnit) return at + i * (kUnit / 2);
            copy_padded(padded, at + i * (kUnit / 2), (left - i * kUnit) / 2);
            return static_cast<const uint8_t*>(padded);
        };
        sums.template unit<0>(whole(0), products, groups);
        if (left > kUnit) sums.template unit<1>(whole(1), products, groups);
        if (left > 2 * kUnit) sums.template unit<2>(whole(2), products, groups);
        if (left > 3 * kUnit) sums.template unit<3>(whole(3), products, groups);
    }
    for (int r = 0; r < R; ++r) out[r] = sum(add(sums.even[r], sums.odd[r]));
}

}  // namespace hideaway
