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
        constexpr int block = Format::kBlock;
        int8_t* to = planes.data() + row * padded * 2;
        float* scale_to = scales.data() + row * (padded / block);
        float* correction_to = corrections.data() + row * (padded / block);
        for (int64_t start = 0; start < padded; start += block) {
            float x[block] = {};
            const int64_t count = std::clamp<int64_t>(columns - start, 0, block);
            std::memcpy(x, values + (count ? start : 0), static_cast<size_t>(count) * sizeof(float));
            int32_t bits[block], integer[block];
            std::memcpy(bits, x, sizeof x);
            int32_t most = 0;
            for (int i = 0; i < block; ++i) most = std::max(most, bits[i] & 0x7fffffff);
            const bool finite = most < 0x7f800000;
            float largest;
            std::memcpy(&largest, &most, sizeof largest);
            largest = std::max(largest, 0x1p-100f);  // keeps the reciprocal finite
            const float inverse = finite ? kMost / largest : 0.0f;
            int32_t total = 0;
            for (int i = 0; i < block; ++i) {
                integer[i] = finite ? static_cast<int32_t>(std::nearbyint(x[i] * inverse)) : 0;
                total += integer[i];
            }
            int8_t* unit = to + start / kUnit * (2 * kUnit) + start % kUnit / 2;
            for (int i = 0; i < block / 2; ++i) {
                const int32_t low = integer[2 * i], high = integer[2 * i + 1];
                const int32_t low_upper = (low + 128) >> 8, high_upper = (high + 128) >> 8;
                unit[i] = static_cast<int8_t>(low_upper);
                unit[i + 32] = static_cast<int8_t>(high_upper);
                unit[i + 64] = static_cast<int8_t>(low - 256 * low_upper);
                unit[i + 96] = static_cast<int8_t>(high - 256 * high_upper);
            }
            scale_to[start / block] = finite ? largest / (2.0f * kMost) : std::numeric_limits<float>::quiet_NaN();
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
inline void few_products(const Matrix& matrix, int64_t output, const IntegerRows<Format>& rows, int64_t first,
                         float (&out)[R]) {
    const uint8_t* codes = matrix.codes + output * matrix.codes_stride();
    const uint8_t* scales = matrix.scales + output * (matrix.columns / Format::kBlock);
    RowSums<Format, R> sums(rows, first);
    const int64_t groups = matrix.columns / kGroup;
    typename Format::Scales products[R];
    for (int64_t group = 0; group < groups; ++group) {
        const uint8_t* at = codes + group * (kGroup / 2);
        prefetch(at + kAhead);
        prefetch(at + kAhead + 64);
        sums.begin(Format::scales(scales + group * Format::kGroupScales), group, products);
        sums.template unit<0>(at, products, group);
        sums.template unit<1>(at + 32, products, group);
        sums.template unit<2>(at + 64, products, group);
        sums.template unit<3>(at + 96, products, group);
    }
    const int64_t left = matrix.columns - groups * kGroup;
    if (left > 0) {
        sums.begin(group_scales<Format>(scales, matrix.columns / Format::kBlock, groups), groups, products);
        const uint8_t* at = codes + groups * (kGroup / 2);
        uint8_t padded[kUnit / 2] = {};
        const auto whole = [&](int i) {  // the codes of unit i, followed by zeros where the row ends inside it
            if (left >= (i + 1) * kUnit) return at + i * (kUnit / 2);
            copy_bytes(padded, at + i * (kUnit / 2), (left - i * kUnit) / 2);
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
