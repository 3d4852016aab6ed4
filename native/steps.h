// The operations of a program (program.h), each on the rows of one tick.
#pragma once
#include "product.h"
#include "program.h"

// f(first place, numbers left of n) for every register of n numbers
#define EVERY(j, m) for (int64_t j = 0, m; j < n && (m = n - j < WIDTH<S> ? n - j : WIDTH<S>); j += WIDTH<S>)

// erf(x) for |x| of any size: 1 - t exp(-x^2 + P(t)), t = 1 / (1 + |x| / 2); relative error of erfc below 1.2e-7
// (Press et al. 1992, section 6.2)
INLINE Vec<float> verf(Vec<float> x) {
    using V = Vec<float>;
    const V a = pick<float>(x < 0.0f, -x, x), t = 1.0f / (1.0f + 0.5f * a);
    V p = all(0.17087277f);
    p = p * t - 0.82215223f;
    p = p * t + 1.48851587f;
    p = p * t - 1.13520398f;
    p = p * t + 0.27886807f;
    p = p * t - 0.18628806f;
    p = p * t + 0.09678418f;
    p = p * t + 0.37409196f;
    p = p * t + 1.00002368f;
    p = p * t - 1.26551223f;
    const V c = t * vexp(p - a * a);
    return pick<float>(x < 0.0f, c - 1.0f, 1.0f - c);
}
INLINE Vec<double> verf(Vec<double> x) {
    for (int64_t i = 0; i < WIDTH<double>; ++i) x[i] = std::erf(x[i]);
    return x;
}

template <class S>
INLINE Vec<S> activated(Vec<S> x, int64_t kind) {
    switch (kind) {
        case TANH: return vtanh(x);
        case RELU: return pick<S>(x < S(0), all(S(0)), x);
        case SIGMOID: return sigmoid<S>(x);
        case GELU: return S(0.5) * x * (S(1) + verf(x * S(0.70710678118654752)));
        case GELU_TANH: return S(0.5) * x * (S(1) + vtanh(S(0.79788456080286536) * (x + S(0.044715) * x * x * x)));
        case SILU: return x * sigmoid<S>(x);
        default: return x;
    }
}

template <class S>
INLINE S total(Vec<S> v) {
    S s = 0;
    for (int64_t i = 0; i < WIDTH<S>; ++i) s += v[i];
    return s;
}

// one row of a packed product: sums that do not wait for each other
template <class S, int N, class P>
INLINE void row_panel(const S* a, const P* w, int64_t K, S* c) {
    constexpr int64_t W = WIDTH<S>;
    constexpr int SETS = N >= 4 ? 2 : N >= 2 ? 4 : 8;
    Vec<S> sum[SETS][N] = {};
    int64_t k = 0;
    for (; k + SETS <= K; k += SETS, w += SETS * N * W) {
        __builtin_prefetch(w + 512), __builtin_prefetch(w + 512 + 64 / sizeof(P));
#pragma GCC unroll 8
        for (int s = 0; s < SETS; ++s)
#pragma GCC unroll 4
            for (int j = 0; j < N; ++j) sum[s][j] += all(a[k + s]) * widened(w + (s * N + j) * W);
    }
    for (; k < K; ++k, w += N * W)
        for (int j = 0; j < N; ++j) sum[0][j] += all(a[k]) * widened(w + j * W);
    for (int j = 0; j < N; ++j) {
        for (int s = 1; s < SETS; ++s) sum[0][j] += sum[s][j];
        store(c + j * W, sum[0][j]);
    }
}

// c [n] = a [K] W; c has room for n rounded up to whole registers
template <class S, class P>
static void row_product(int64_t n, int64_t K, const S* a, const P* w, S* c) {
    for (int64_t j = 0; j < n; j += PANEL<S>, w += K * PANEL<S>) {
        const int64_t left = n - j;
        if (left > (COLS - 1) * WIDTH<S>) row_panel<S, COLS>(a, w, K, c + j);
#if COLS > 2
        else if (left > 2 * WIDTH<S>) row_panel<S, 3>(a, w, K, c + j);
        else if (left > WIDTH<S>) row_panel<S, 2>(a, w, K, c + j);
#endif
        else row_panel<S, 1>(a, w, K, c + j);
    }
}

// the sum of a [n] times b [n]
template <class S>
INLINE S dot(const S* a, const S* b, int64_t n) {
    Vec<S> s = {};
    EVERY(j, m) s += load(a + j, m) * load(b + j, m);
    return total<S>(s);
}

template <class S>
static void softmax(S* x, int64_t n) {
    S best = x[0];
    for (int64_t i = 1; i < n; ++i) best = x[i] > best ? x[i] : best;
    Vec<S> sums = {};
    EVERY(j, m) {
        const Vec<S> e = vexp(load(x + j, m) - best);
        store(x + j, e, m);
        if (m < WIDTH<S>)
            for (int64_t i = 0; i < m; ++i) sums[0] += e[i];
        else
            sums += e;
    }
    const S scale = S(1) / total<S>(sums);
    EVERY(j, m) store(x + j, load(x + j, m) * scale, m);
}

template <class S>
static void norm(int64_t kind, int64_t n, S eps, const S* x, const S* weight, const S* bias, S* out) {
    S mean = 0;
    if (kind != RMS_NORM) {
        Vec<S> s = {};
        EVERY(j, m) s += load(x + j, m);
        mean = total<S>(s) / n;
    }
    S squares = 0;
    {
        Vec<S> s = {};
        EVERY(j, m) {
            Vec<S> d = load(x + j, m) - mean;
            if (m < WIDTH<S>)
                for (int64_t i = m; i < WIDTH<S>; ++i) d[i] = 0;
            s += d * d;
        }
        squares = total<S>(s);
    }
    S scale;
    if (kind == DEVIATION_NORM)
        scale = S(1) / (std::sqrt(squares / (n > 1 ? n - 1 : 1)) + eps);
    else
        scale = S(1) / std::sqrt(squares / n + eps);
    EVERY(j, m) {
        Vec<S> y = (load(x + j, m) - mean) * scale;
        if (weight) y *= load(weight + j, m);
        if (bias) y += load(bias + j, m);
        store(out + j, y, m);
    }
}

// u [n] = the sum of `seen` values [seen, n] by the weights s
template <class S>
static void weighted(const S* s, const S* values, int64_t seen, int64_t n, S* u) {
    EVERY(j, left) {
        Vec<S> a = {}, b = {};
        int64_t i = 0;
        for (; i + 2 <= seen; i += 2) {
            a += s[i] * load(values + i * n + j, left);
            b += s[i + 1] * load(values + (i + 1) * n + j, left);
        }
        if (i < seen) a += s[i] * load(values + i * n + j, left);
        store(u + j, a + b, left);
    }
}

// v . tanh(q + k), all [n]
template <class S>
INLINE S additive(const S* v, const S* q, const S* k, int64_t n) {
    Vec<S> s = {};
    EVERY(j, m) s += load(v + j, m) * vtanh(load(q + j, m) + load(k + j, m));
    return total<S>(s);
}

// one query of one head against `seen` keys [seen, m] and values [seen, m_v]; s has room for `seen` scores
template <class S>
static void attend(const S* q, const S* keys, const S* values, const S* bias, int64_t seen, int64_t m, int64_t m_v,
                   S scale, S* s, S* u) {
    for (int64_t i = 0; i < seen; ++i) s[i] = scale * dot(q, keys + i * m, m);
    if (bias)
        for (int64_t i = 0; i < seen; ++i) s[i] += bias[i];
    softmax(s, seen);
    weighted<S>(s, values, seen, m_v, u);
}
