// The choice of a token from logits, as decode/choose.py does it, and the noise of decode/noise.py.
#pragma once
#include <algorithm>

#include "steps.h"

INLINE uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}
// a number in [0, 1) of a row and a tick
INLINE double uniform(uint64_t key, int64_t tick) {
    return double(mix(key + uint64_t(tick + 1) * 0x9E3779B97F4A7C15ull) >> 12) * 0x1p-52;
}

// e^x for x <= 0, exactly 0 where that is less than any float
template <class S>
INLINE Vec<S> chance(Vec<S> x) {
    return pick<S>(x < S(-86), all(S(0)), vexp(x));
}

// the largest of x [n]; NaN if there is one
template <class S>
static S largest(const S* x, int64_t n) {
    Vec<S> best = all(-S(INFINITY));
    Int<S> bad = {};
    EVERY(j, m) {
        Vec<S> v = load(x + j, m);
        bad |= v != v;
        if (m < WIDTH<S>)
            for (int64_t i = m; i < WIDTH<S>; ++i) v[i] = -S(INFINITY);
        best = pick<S>(v > best, v, best);
    }
    S found = best[0];
    for (int64_t i = 0; i < WIDTH<S>; ++i) {
        if (bad[i]) return S(NAN);
        found = best[i] > found ? best[i] : found;
    }
    return found;
}

// sum of e^(x - best), in blocks whose sums are added in double precision; the terms go to e where that is given
template <class S>
static double chances(const S* x, int64_t n, S best, S* e) {
    double sum = 0;
    for (int64_t at = 0; at < n; at += 512) {
        const int64_t end = at + 512 < n ? at + 512 : n;
        Vec<S> s = {};
        for (int64_t j = at; j < end; j += WIDTH<S>) {
            const int64_t m = end - j;
            Vec<S> v = chance<S>(load(x + j, m) - best);
            if (e) store(e + j, v, m);
            if (m < WIDTH<S>)
                for (int64_t i = m; i < WIDTH<S>; ++i) v[i] = 0;
            s += v;
        }
        for (int64_t i = 0; i < WIDTH<S>; ++i) sum += double(s[i]);
    }
    return sum;
}

// -inf for all but the k likeliest, the first of equals; `order` has room for n numbers
template <class S>
static void keep_top_k(S* l, int64_t n, int64_t k, S* order) {
    if (k >= n) return;
    std::memcpy(order, l, n * sizeof(S));
    std::nth_element(order, order + (k - 1), order + n, [](S a, S b) { return a > b; });
    const S least = order[k - 1];
    int64_t left = k;
    for (int64_t j = 0; j < n; ++j) left -= l[j] > least;
    for (int64_t j = 0; j < n; ++j)
        if (l[j] < least || (l[j] == least && left-- <= 0)) l[j] = -S(INFINITY);
}

// -inf outside the nucleus: the fewest likeliest whose probability is at least p, the first of equals first; the largest
// of l is 0, and e has room for 2 n numbers
template <class S>
static void keep_top_p(S* l, int64_t n, double p, S* e) {
    const double enough = p * chances(l, n, S(0), e);
    S* heap = e + n;
    std::memcpy(heap, e, n * sizeof(S));
    std::make_heap(heap, heap + n);
    double inside = 0;
    S least = 1;
    int64_t equals = 0;
    for (int64_t left = n; left && (inside < enough || !equals); --left) {
        equals = heap[0] == least ? equals + 1 : 1;
        least = heap[0];
        inside += double(least);
        std::pop_heap(heap, heap + left);
    }
    for (int64_t j = 0; j < n; ++j)
        if (e[j] < least || (e[j] == least && equals-- <= 0)) l[j] = -S(INFINITY);
}

// a sample from e^l, whose largest is 1: the first whose cumulative chance exceeds u times the whole
template <class S>
static int64_t sampled(const S* l, int64_t n, double u, S* e) {
    const double level = u * chances(l, n, S(0), e);
    double sum = 0;
    int64_t last = 0;
    for (int64_t j = 0; j < n; ++j) {
        if (e[j] <= 0) continue;
        sum += double(e[j]), last = j;
        if (sum > level) return j;
    }
    return last;  // by rounding alone
}

// the token of a row with outputs y, and its log-probability under the model as it is; -1: none can be chosen
template <class S>
static int64_t chosen(const Drawing& d, int64_t row, double u, double* log_p) {
    const int64_t n = d.n_choices;
    const S* y = static_cast<const S*>(d.y) + row * n;
    S *l = static_cast<S*>(d.room), *e = l + n;
    const S best = largest(y, n);
    if (!std::isfinite(best)) return -1;
    const S all_of = best + S(std::log(chances<S>(y, n, best, nullptr)));
    for (int64_t j = 0; j < n; ++j) l[j] = y[j] - all_of;
    for (int64_t j = 0; j < d.n_never; ++j) l[d.never[j]] = -S(INFINITY);
    if (d.seen) {
        const uint8_t* seen = d.seen + row * n;
        for (int64_t j = 0; j < n; ++j)
            if (seen[j]) l[j] *= S(d.penalty);
    }
    const S top = largest(l, n);
    if (!std::isfinite(top)) return -1;
    int64_t token = 0;
    if (d.temperature == 0) {
        while (l[token] != top) ++token;
    } else {
        for (int64_t j = 0; j < n; ++j) l[j] = S((double(l[j]) - double(top)) / d.temperature);
        if (d.top_k > 0) keep_top_k(l, n, d.top_k, e);
        if (d.top_p < 1) keep_top_p(l, n, d.top_p, e);
        token = sampled(l, n, u, e);
    }
    *log_p = double(y[token] - all_of);
    return token;
}
